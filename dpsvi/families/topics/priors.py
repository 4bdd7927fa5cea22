"""The priors of a topic model's estimator: as given, or learned by a fit.

Eta is learned after every pass, from the topics as they are by then; from the sixth pass on it
only falls.  It is learned once more, and alpha with it, when all passes have been made; then it may
rise, for no pass follows in which topics could lose tokens
(:mod:`dpsvi.families.topics.learned_priors`).
"""

from __future__ import annotations

import math
import numbers

import numpy as np

from dpsvi.families.topics.learned_priors import learned_concentration, learned_eta

TINY = float(np.finfo(np.float32).tiny)  # a prior below it is 0 in the kernels
A_LITTLE = 1e-9  # of a pass: what counting by parts may miss of a whole one
FORMING = 5  # passes after which a larger eta would come of topics that lose their tokens


class Priors:
    """The part of a topic model's estimator that knows priors.

    An estimator names by `_alpha_parameter` the one whose value "auto" has the prior of the
    documents learned, and defines

    * ``_first_alpha()``: its value while topics are fitted;
    * ``_model(n_words, alpha, eta) -> Model``: the model with these priors;
    * ``_used_priors(model) -> (alpha, eta)``: those of a model.
    """

    _alpha_parameter: str
    _learned: dict  # by an earlier fit, which this one goes on from; while a fit runs
    _learns_until: int  # passes after each of which eta is learned; 0: only when all are made

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
        learned = {} if self._empties_topics() else self._learned
        return self._model(n_words, self._first_alpha(), learned.get("eta", self._first_eta()))

    def _empties_topics(self) -> bool:
        """Whether eta is one that empties topics, and so is to stay as it is while a fit runs."""
        return self._default().word_prior > 0

    def _begin_part(self, done: int, n_passes: int) -> None:
        """Let eta be learned after each of the `n_passes` passes that follow `done` ones.

        Without a master each node has priors of its own, and only those of one could be changed.
        """
        super()._begin_part(done, n_passes)
        fixed = self._masterless() or self._empties_topics()
        learns = self._learns("topic_word_prior") and not fixed
        self._learns_until = done + n_passes if learns else 0

    def _reached(self, epoch: float, state) -> None:
        """Learn eta, if a pass has ended since the fit's observer looked last."""
        super()._reached(epoch, state)
        before = self.history_[-1]["epoch"] if self.history_ else 0.0
        passes = math.floor(epoch + A_LITTLE)
        if math.floor(before + A_LITTLE) < passes <= self._learns_until:
            used, eta = self._used_priors(state.model)[1], self._learned_eta(state)
            self._set_priors(state.model, eta=eta if passes <= FORMING else min(eta, used))

    def _learned_eta(self, state) -> float:
        return learned_eta(state, self.n_components, self._first_eta())

    def _learn_priors(self, items, rng) -> None:
        """Learn the priors that are to be learned; the topics have been fitted."""
        state = self._state
        if self._learns("topic_word_prior"):
            self._use_priors(eta=self._learned_eta(state))
        if self._learns(self._alpha_parameter):
            alpha = self._alpha(state)
            used = float(alpha.sum())
            found = learned_concentration(state, items, alpha / used, used, rng, self._n_threads)
            self._use_priors(alpha=found / used * self._used_priors(state.model)[0])

    def _learned_priors(self) -> dict:
        """What an earlier fit has learned: arguments of :meth:`_use_priors`."""
        named = {"alpha": self._alpha_parameter, "eta": "topic_word_prior"}
        found = {
            key: getattr(self, f"{name}_") for key, name in named.items() if self._learns(name)
        }
        if np.ndim(found.get("eta", 0.0)):
            del found["eta"]  # of each word: it was given
        return found

    def _use_learned_priors(self) -> None:
        """Have the priors that an earlier fit has learned, for this one learns no more.

        It is one pass over a stream, or was interrupted; what it has learned of eta is kept.
        """
        kept = {"eta"} if self._learns_until else set()
        self._use_priors(**{key: it for key, it in self._learned.items() if key not in kept})

    def _use_priors(self, alpha=None, eta=None) -> None:
        """Let the fitted model have the priors given."""
        self._state.model = self._with_priors(self._state.model, alpha, eta)

    def _set_priors(self, model, alpha=None, eta=None) -> None:
        """Change `model` in place: engines have its arrays, and send them to workers."""
        new = self._with_priors(model, alpha, eta)
        model.hyper[:] = new.hyper
        model.prior[...] = new.prior

    def _with_priors(self, model, alpha, eta):
        """A model as `model` is, but for the priors that are given."""
        used_alpha, used_eta = self._used_priors(model)
        return self._model(
            model.shape[0] - model.common_rows, used_alpha if alpha is None else alpha,
            used_eta if eta is None else eta,
        )  # fmt: skip
