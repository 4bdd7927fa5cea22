"""The priors of a topic model's estimator: as given, or learned when a fit has ended."""

from __future__ import annotations

import numbers

import numpy as np

from dpsvi.families.topics.learned_priors import learned_concentration, learned_eta

TINY = float(np.finfo(np.float32).tiny)  # a prior below it is 0 in the kernels


class Priors:
    """The part of a topic model's estimator that knows priors.

    An estimator names by `_alpha_parameter` the one whose value "auto" has the prior of the
    documents learned, and defines

    * ``_first_alpha()``: its value while topics are fitted;
    * ``_model(n_words, alpha, eta) -> Model``: the model with these priors;
    * ``_used_priors(model) -> (alpha, eta)``: those of a model.
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

    def _make(self, n_words):
        """The model with the priors that topics are fitted with."""
        return self._model(n_words, self._first_alpha(), self._first_eta())

    def _learn_priors(self, items, rng) -> None:
        """Learn the priors that are to be learned; the topics have been fitted."""
        state = self._state
        if self._learns("topic_word_prior"):
            self._use_priors(eta=learned_eta(state, self.n_components))
        if self._learns(self._alpha_parameter):
            alpha = self._alpha(state)
            used = float(alpha.sum())
            found = learned_concentration(state, items, alpha / used, used, rng, self._n_threads)
            self._use_priors(alpha=found / used * self._used_priors(state.model)[0])

    def _learned_priors(self) -> dict:
        """What an earlier fit has learned: arguments of :meth:`_use_priors`."""
        named = {"alpha": self._alpha_parameter, "eta": "topic_word_prior"}
        return {key: getattr(self, f"{name}_") for key, name in named.items() if self._learns(name)}

    def _use_priors(self, alpha=None, eta=None) -> None:
        """Let the fitted model have the priors given."""
        state = self._state
        used_alpha, used_eta = self._used_priors(state.model)
        state.model = self._model(
            self._n_words(state), used_alpha if alpha is None else alpha,
            used_eta if eta is None else eta,
        )  # fmt: skip
