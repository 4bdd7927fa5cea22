"""The hidden Markov model as arrays, and what they stand for."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from dpsvi.base import Model
from dpsvi.expfam import by_dimension
from dpsvi.families.mixtures.incomplete import has_gaps
from dpsvi.kernels.hyper import pack
from dpsvi.models.hmm.chunk import scratch
from dpsvi.models.hmm.local import (
    CATEGORICAL,
    Options,
    Weights,
    changes,
    changes_with_gaps,
    expect,
    local,
    local_with_gaps,
    options_of,
    split,
)


def from_arrays(shape, prior, hyper) -> Model:
    """The model with these arrays of :func:`make_model`; errors if they are no such arrays."""
    options = options_of(hyper)
    n = options.n_features
    gaps = options.kind != CATEGORICAL and _has_own_counts(options)
    return Model(
        name="hmm", shape=shape, prior=prior, hyper=hyper,
        local=local_with_gaps if gaps else local,
        scratch=partial(scratch, options.n_components, n, n + options.marked),
        nonnegative=options.kind == CATEGORICAL,
    )  # fmt: skip


def remembering(model: Model) -> Model:
    """The model whose local step remembers the statistics of each item, and gives their changes."""
    steps = {local: changes, local_with_gaps: changes_with_gaps}
    return model._replace(local=steps.get(model.local, model.local), item_memory=model.shape[1])


def make_model(kind, marked, floor, origins, start, trans, states) -> Model:
    """The hidden Markov model as a :class:`dpsvi.base.Model`.

    Parameters
    ----------
    kind : {GAUSSIAN, CATEGORICAL}
    marked : bool
        Items are windows, each of their steps preceded by its mark.
    floor : float64 array, (D,)
        See :meth:`dpsvi.families.mixtures.components.Prior.floor`; D is 1 and this and `origins`
        mean nothing for symbols.
    origins : float64 array, (K, D)
        Where each state counts from.
    start, trans, states : float64 arrays, (K,), (K, K), (K, width)
        Natural parameters of the prior; ``states[:, 0]`` are visits made beforehand.
    """
    prior = np.concatenate([start, trans.ravel(), states.ravel()])
    hyper = pack(Options(kind, marked, *origins.shape, floor, origins, prior))
    return from_arrays((1, prior.size), prior[None], hyper)


def with_gaps(model: Model, learned):
    """The model for steps with gaps, and ``lam - prior`` of `learned` as it counts there."""
    options = options_of(model.hyper)
    n_components, n = options.n_components, options.n_features

    def spread(vector):
        start, trans, states = split(vector, n_components)
        return np.concatenate([start, trans.ravel(), by_dimension.spread(states, n).ravel()])

    if options.kind == CATEGORICAL or _has_own_counts(options):
        return model, learned
    prior, learned = spread(options.prior), spread(learned[0])
    hyper = pack(options._replace(prior=prior))
    return from_arrays((1, prior.size), prior[None], hyper), learned[None]


def _has_own_counts(options):
    states = split(options.prior, options.n_components)[2]
    return by_dimension.has_own_counts(states, options.n_features)


class Posterior(NamedTuple):
    """q(start, transitions, emissions)."""

    start: np.ndarray  # u, (K,)
    trans: np.ndarray  # U, (K, K)
    states: np.ndarray  # natural parameters, (K, width)
    weights: Weights  # the same as a sweep takes it, ``weights.states`` in standard form


def read(state) -> Posterior:
    """The posterior that a :class:`~dpsvi.training.state.State` stands for."""
    return _read(state.shared.totals.sum(axis=0), state.scale, state.model)


def read_for(state, items):
    """Weights to sweep these items with, and whether there are gaps, as a sweep takes that."""
    weights, options = read(state).weights, options_of(state.model.hyper)
    if options.kind == CATEGORICAL:
        return weights, None
    if _has_own_counts(options):
        return weights, 1
    if not has_gaps(items.value):
        return weights, None
    states = by_dimension.spread_standard(weights.states, options.n_features)
    return weights._replace(states=states), 1


def read_prior(model: Model) -> Posterior:
    """The prior of a model, in the same form."""
    return _read(np.zeros(model.shape[1]), 1.0, model)


def _read(sums, scale, model) -> Posterior:
    options = options_of(model.hyper)
    n, prior = options.n_components, options.prior
    expected, visits = np.empty(len(prior)), np.empty(n)
    expect(sums, scale, model.hyper, expected, visits)
    weights = Weights(options.kind, options.origins, *split(expected, n), visits)
    return Posterior(*split(prior + scale * sums, n), weights)
