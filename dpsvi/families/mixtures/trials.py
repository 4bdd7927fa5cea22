"""Moves of the components of a mixture, tried on a sample of points."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpsvi.base import Items
from dpsvi.families.mixtures import incomplete
from dpsvi.families.mixtures.components import Prior
from dpsvi.families.mixtures.mixture import component_prior, options_of, posterior
from dpsvi.families.mixtures.restructuring import Restructuring, Trial, sweep
from dpsvi.training.items import count, points_and_weights


class View(NamedTuple):
    """A sample of points, on which moves of components are tried."""

    items: Items
    points: np.ndarray  # (n, D), with values in their gaps
    given: np.ndarray  # the same as they are
    weight: np.ndarray | None  # (n,)
    prior: Prior


class Moving(Restructuring):
    """The part of the estimator that moves components."""

    def _look(self, items, state, rng):
        X, weight = points_and_weights(items, self.n_features_in_)
        view = View(items, X, X, weight, component_prior(state.model.hyper))
        if not incomplete.has_gaps(X):
            return view
        points = np.empty(X.shape)
        q = posterior(state, self._expect)
        incomplete.refill(points, X, self._responsibilities(state, view), q, rng)
        return view._replace(points=points)

    def _responsibilities(self, state, view):
        resp = np.empty((count(view.items), options_of(state.model.hyper).n_components))
        self._bounds(state, view.items, resp)
        return resp

    def _try(self, view, resp, total):
        mass = mass_of(total / count(view.items), view.weight)
        state = self._state_of(view.points, view.given, mass * resp, view.prior)
        sweep(state, view.items, total)
        return Trial(state, self._lower_bound(state, view.items, total))


def mass_of(scale, weight):
    """What each point counts if one of weight 1 counts `scale`: a number, or (n, 1)."""
    return scale if weight is None else scale * weight[:, None]
