"""Annealed priors of LDA: large ones are asked for at once, but topics are found with small ones.

A prior of .1 for each of 1,000 topics weighs as much as 100 tokens: documents of fewer tokens then
belong to all topics alike, and topics that are alike stay so.  So a fit looks for topics with no
larger priors than the default ones, and takes those it was given for the last third of the
passes, over which the parameters are averaged.  The objective at the end is the one that was asked
for; what changes is the optimum that is found (after deterministic annealing, Rose 1998).  The
mean-field step, which is the paper's, steps whose sizes the user gives, and clusters without a
master are left as they are.

`python -m experiments.annealing` compares both.
"""

from __future__ import annotations

import numpy as np

from dpsvi.families.topics.defaults import default_alpha
from dpsvi.families.topics.priors import A_LITTLE

SHARE = 2, 3  # of the passes are made with small priors; then the parameters begin to average


class AnnealedPriors:
    """The part of LDA's estimator that begins with small priors."""

    _asked: tuple | None = None  # priors, and the pass from which on they hold; while a fit runs

    def _first_priors(self, alpha, eta) -> tuple:
        """The priors that a fit begins with, where `alpha` and `eta` (None: any) are asked for."""
        most = default_alpha(self.n_components)
        alpha = alpha * min(1.0, most / float(np.mean(alpha)))
        if eta is not None and np.ndim(eta) == 0:  # else each word has its own, which is knowledge
            eta = min(eta, self._default().eta(self.n_components))
        return alpha, eta

    def _begin_part(self, done: int, n_passes: int) -> None:
        """Give the model its first priors, for `n_passes` passes that follow `done` ones."""
        super()._begin_part(done, n_passes)
        if self.local_step == "mean_field":
            return
        if self._state.step and self._asked is None:
            return  # it goes on from topics that an earlier fit has found
        if self.early_stopping or not self._free_schedule():
            return  # the step sizes know of no last third
        if self._masterless():
            return
        if self._asked is not None:  # by the part before
            asked = self._asked[:-1]
        else:
            alpha, eta = self._used_priors(self._state.model)
            asked = alpha.copy(), None if self._learns("topic_word_prior") else np.copy(eta)
        first = self._first_priors(*asked)
        turn = SHARE[0] * n_passes // SHARE[1]
        if turn and any(np.any(np.not_equal(*pair)) for pair in zip(asked, first, strict=True)):
            self._asked = (*asked, done + turn)
            self._set_priors(self._state.model, *first)

    def _reached(self, epoch, state) -> None:
        """Take the priors that were asked for, if their time has come."""
        super()._reached(epoch, state)
        if self._asked is not None and epoch >= self._asked[-1] - A_LITTLE:
            *asked, _ = self._asked
            self._set_priors(state.model, *asked)
            self._asked = (*asked, np.inf)  # once is enough

    def _end_annealing(self) -> None:
        """Give the fitted model the priors that were asked for, however the fit has ended."""
        if self._asked is not None:
            self._use_priors(*self._asked[:-1])
            del self._asked
