"""States that merge, are deleted and born while a hidden Markov model is fitted.

A move is made on the posteriors of single steps, gamma_t.  What follows from pairs of them, the
transitions, is first taken as if neighbours were independent, ``xi_t = gamma_{t-1} gamma_t^T``; the
sweeps of forward-backward with which the move is tried find the right ones.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpsvi.base import Items
from dpsvi.expfam import by_dimension
from dpsvi.expfam.gaussian import statistics
from dpsvi.families.mixtures.incomplete import filled, has_gaps
from dpsvi.families.mixtures.restructuring import Restructuring, Trial, sweep
from dpsvi.models.hmm.chunk import BEGINS
from dpsvi.models.hmm.local import CATEGORICAL, options_of, split
from dpsvi.models.hmm.sequences import Steps
from dpsvi.training.items import count
from dpsvi.training.state import State


class View(NamedTuple):
    """Sequences, or windows, on which moves of states are tried."""

    items: Items
    steps: Steps
    begins: np.ndarray  # bool, (n_steps,): whether a sequence does
    points: np.ndarray  # (n_steps, D): as proposals see them; of a symbol, 1 in its column
    state: State  # of the fit, whose model stays
    weight = None  # of a step: none counts more than another


class Moving(Restructuring):
    """The part of the estimator that moves states."""

    def _sample_size(self, items) -> int:
        n_steps = len(items.value) // (self.n_features_in_ + self._marked)
        return -(-super()._sample_size(items) * count(items) // max(1, n_steps))

    @property
    def _marked(self) -> int:
        return int(self._started["window"] is not None)

    def _look(self, items, state, rng):
        steps = Steps.of(items, self.n_features_in_, self._marked)
        begins = np.zeros(len(steps.X), bool)
        begins[steps.offsets[:-1]] = True
        if self._marked:
            begins &= items.value.reshape(len(steps.X), -1)[:, 0] >= BEGINS
        options, points = options_of(state.model.hyper), steps.X
        if options.kind == CATEGORICAL:
            n_symbols = split(options.prior, options.n_components)[2].shape[1] - 1
            points = (points == np.arange(n_symbols)).astype(np.float64)
        elif has_gaps(points):
            points = filled(points, rng, points)
        return View(items, steps, begins, points, state)

    def _responsibilities(self, state, view):
        return self._infer(state, view.items, self._marked, posteriors=True)[1]

    def _try(self, view, resp, total):
        options = options_of(view.state.model.hyper)
        goes_on = ~np.isin(np.arange(1, len(resp)), view.steps.offsets)
        pairs = resp[:-1][goes_on].T @ resp[1:][goes_on]
        emissions = _statistics(view, resp, options)
        learned = [resp[view.begins].sum(axis=0), pairs.ravel(), emissions.ravel()]
        learned = total / count(view.items) * np.concatenate(learned)
        state = State.resume(view.state.model, learned[None], 1)
        sweep(state, view.items, total)
        return Trial(state, self._lower_bound(state, view.items, total))


def _statistics(view, resp, options):
    """Of the emissions of each state, (K, width)."""
    prior = split(options.prior, options.n_components)[2]
    if options.kind == CATEGORICAL:
        return np.hstack([resp.sum(axis=0)[:, None], resp.T @ view.points])
    n = options.n_features
    if by_dimension.has_own_counts(prior, n):
        return by_dimension.statistics(view.steps.X, resp, options.origins)
    return statistics(view.points, resp, options.origins, prior.shape[1] == 2 * n + 3)
