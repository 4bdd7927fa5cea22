"""The priors of a topic model's estimator: as given, or learned when a fit has ended."""

from __future__ import annotations

import numbers

import numpy as np

from dpsvi.families.topics.learned_priors import learned_concentration, learned_eta
from dpsvi.kernels.fold import ETA

TINY = float(np.finfo(np.float32).tiny)  # a prior below it is 0 in the kernels


class Priors:
    """The part of a topic model's estimator that knows priors.

    An estimator names by `_alpha_parameter` the one whose value "auto" has the prior of the
    documents learned, and says by ``_alpha_place(model)`` where that stands in ``model.hyper``.
    """

    _alpha_parameter: str

    def _first_eta(self) -> float:
        prior = self.topic_word_prior
        if prior is None or (isinstance(prior, str) and prior == "auto"):
            return self._default().eta(self.n_components)
        number = isinstance(prior, numbers.Real) and not isinstance(prior, bool)
        if not number or not TINY < prior < np.inf:
            raise ValueError(f"topic_word_prior must be > 0, 'auto' or None, got {prior!r}")
        return float(prior)

    def _learns(self, prior: str) -> bool:
        return isinstance(getattr(self, prior), str)

    def _learn_priors(self, items, rng) -> None:
        """Learn the priors that are to be learned; the topics have been fitted."""
        state = self._state
        if self._learns("topic_word_prior"):
            self._use_priors(eta=learned_eta(state, self.n_components))
        if self._learns(self._alpha_parameter):
            alpha = self._alpha(state)
            used = float(alpha.sum())
            found = learned_concentration(state, items, alpha / used, used, rng, self._n_threads)
            self._use_priors(alpha=found / used * state.model.hyper[self._alpha_place(state.model)])

    def _learned_priors(self) -> dict:
        """What an earlier fit has learned: arguments of :meth:`_use_priors`."""
        named = {"alpha": self._alpha_parameter, "eta": "topic_word_prior"}
        return {key: getattr(self, f"{name}_") for key, name in named.items() if self._learns(name)}

    def _use_priors(self, alpha=None, eta=None) -> None:
        """Let the fitted model have the priors given."""
        model = self._state.model
        if alpha is not None:
            model.hyper[self._alpha_place(model)] = alpha
        if eta is not None:
            n_rows = len(model.prior) - model.common_rows
            model.hyper[model.shape[1] + ETA] = model.prior[:n_rows] = eta
