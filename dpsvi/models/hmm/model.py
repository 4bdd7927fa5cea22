"""The hidden Markov model as arrays, and what they stand for."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from dpsvi.base import Model
from dpsvi.kernels.hyper import pack
from dpsvi.models.hmm.chunk import scratch
from dpsvi.models.hmm.local import (
    CATEGORICAL,
    Options,
    Weights,
    expect,
    local,
    options_of,
    split,
)


def from_arrays(shape, prior, hyper) -> Model:
    """The model with these arrays of :func:`make_model`; errors if they are no such arrays."""
    options = options_of.py_func(hyper)
    n = options.n_features
    return Model(
        name="hmm", shape=shape, prior=prior, hyper=hyper, local=local,
        scratch=partial(scratch, options.n_components, n, n + options.marked),
        nonnegative=options.kind == CATEGORICAL,
    )  # fmt: skip


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


class Posterior(NamedTuple):
    """q(start, transitions, emissions)."""

    start: np.ndarray  # u, (K,)
    trans: np.ndarray  # U, (K, K)
    states: np.ndarray  # natural parameters, (K, width)
    weights: Weights  # the same as a sweep takes it, ``weights.states`` in standard form


def read(state) -> Posterior:
    """The posterior that a :class:`~dpsvi.training.state.State` stands for."""
    return _read(state.shared.totals.sum(axis=0), state.scale, state.model)


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
