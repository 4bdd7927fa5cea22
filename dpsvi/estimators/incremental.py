"""Incremental passes: statistics of every item replace those of its last visit (Neal, Hinton 1998).

    lam = prior + sum of what is remembered of the items visited
                + (items not visited yet) / N * (lam - prior where these passes began)

The passes before are stochastic steps, whose estimate stands for items until their first visit; so
the parameters always stand for all items, and at the end of the first of these passes they are an
exact sum.  Nothing decays: full steps of coordinate ascent are left, for each item at a time
(Hughes and Sudderth 2013 remember batches instead of items).

What a lost worker remembered is lost with it.  Then, and where a fit is resumed on a cluster, all
begin to remember anew: the parameters that are there are the next estimate.
"""

from __future__ import annotations

import numpy as np

from dpsvi.errors import LostMemoryError, ModelFormatError, check_flag
from dpsvi.estimators.items import count
from dpsvi.kernels.memory import untouched
from dpsvi.training.state import State

SHARE = 2  # one pass of so many is incremental, the last ones


class Incremental:
    """The part of an estimator of a model of one row that makes incremental passes.

    It has the parameter `incremental`, and defines ``_memory(model) -> int``, the numbers that
    its local step remembers of an item where :attr:`dpsvi.base.Shared.item_memory` has rows.  They
    divide those of the row of parameters, which is kept behind all items, divided by their
    number: what an item is taken for that was not visited yet, one whose memory is 0.
    """

    def _check_incremental(self) -> None:
        check_flag("incremental", self.incremental)
        if self.incremental:
            self._check_counts_once("incremental passes")

    def _train_passes(self, items, rng, monitor, total=None) -> None:
        n_incremental = self.max_iter // SHARE
        if not self.incremental or total is not None or not n_incremental:
            super()._train_passes(items, rng, monitor, total)
            return
        phase, done = self._resumed_phase(), self.max_iter - n_incremental
        if phase is None:
            if self._train(self._state, items, done, rng, monitor):
                return
        else:
            done = phase["done"]
        model = self._state.model
        self._replace_statistics(items, done, rng, monitor)
        self._state.model = model

    def _replace_statistics(self, items, done, rng, monitor) -> None:
        """Make the incremental passes that are left when `done` passes are made."""
        self._remember(items)
        if self._checkpoint is not None:
            done = self._resume_incremental(items, done, monitor)
        while True:
            first = self._state.items
            try:
                self._train(
                    self._state, items, self.max_iter - done, rng, monitor, phase={"done": done}
                )
                return
            except LostMemoryError:
                done += (self._state.items - first) // count(items)
                done = self._begin_anew(items, done, monitor)

    def _remember(self, items) -> None:
        """Go on with an empty memory."""
        state, n = self._state, count(items)
        model = state.model
        width = self._memory(model)
        model = model._replace(item_memory=width, learner="incremental")
        estimate = state.learned()
        memory = untouched((n + estimate.size // width, width), model.real)
        memory[n:] = estimate.reshape(-1, width) / n
        self._state = State.resume(
            model, estimate, self._n_threads, step=state.step, items=state.items
        )
        self._state.shared = self._state.shared._replace(item_memory=memory)

    def _resume_incremental(self, items, done, monitor) -> int:
        """Passes that are made where the fit goes on from a checkpoint of these passes."""
        checkpoint = self._checkpoint
        if done >= self.max_iter:
            raise ModelFormatError(
                f"{checkpoint.path}: pass {done + 1} had begun, max_iter is {self.max_iter} now"
            )
        if len(checkpoint.arrays["item_memory"]) and not self._engine().options:
            return done  # the passes go on as if nothing had happened
        n_left = self.max_iter - done
        passes = self._restore_checkpoint(self._state, count(items), n_left, monitor).passes
        return self._begin_anew(items, done + passes.n_done // passes.steps_a_pass, monitor)

    def _begin_anew(self, items, done, monitor) -> int:
        """Forget what is remembered; a pass at least is left to visit all items again."""
        done = min(done, self.max_iter - 1)
        self._remember(items)
        monitor.epoch = float(done)
        monitor.start_phase()
        return done
