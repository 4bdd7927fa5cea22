"""Incremental passes: statistics of every item replace those of its last visit (Neal, Hinton 1998).

    lam = prior + sum of what is remembered of the items visited
                + (items not visited yet) / N * (lam - prior where these passes began)

The passes before are stochastic steps, whose estimate stands for items until their first visit.  So
the parameters stand for all items at all times, and are an exact sum from the end of the first of
these passes on.  Nothing decays: what is left is coordinate ascent, a batch at a time (Hughes and
Sudderth 2013, who remember statistics of batches).

On several processes each worker has items of its own in these passes, whatever `sharding` says, and
remembers these only.  There must be a master that adds every change once: strategies ``"decay"``
and ``"displacement"`` with a `global_rate` of 1 and float32 statistics.  What a lost worker
remembered is lost with it.  Then, and where a fit is resumed on a cluster or from one, all begin to
remember anew: the parameters that are there are the next estimate, and a pass at least is made.  In
one process checkpoints hold what is remembered.
"""

from __future__ import annotations

import numpy as np

from dpsvi.errors import LostMemoryError, ModelFormatError, check_flag
from dpsvi.estimators.items import count
from dpsvi.kernels.memory import untouched
from dpsvi.training.state import State

SHARE = 2  # one pass of so many is incremental, the last ones


class Incremental:
    """The part of an estimator that makes incremental passes.

    It has a parameter `incremental` and defines ``_remembering(model) -> Model``, the model whose
    statistics are changes of what its local step keeps in the memories of
    :class:`dpsvi.base.Shared`.  There each item is a row of `item_memory`, which is 0 until its
    first visit.  Behind these rows lies what stands for such an item: all of ``lam - prior`` where
    these passes began, one row after the other, divided by the number of items.
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
        if phase is not None:
            done = phase["done"]
        elif self._train(self._state, items, done, rng, monitor):
            return
        model = self._state.model
        self._replace_statistics(items, done, rng, monitor)
        self._state.model = model

    def _replace_statistics(self, items, done, rng, monitor) -> None:
        """Make the incremental passes that are left when `done` passes are made."""
        self._remember(items)
        if self._checkpoint is not None:
            done = self._resume_incremental(items, done, monitor)
        while True:
            first, n_left = self._state.items, self.max_iter - done
            try:
                self._train(self._state, items, n_left, rng, monitor, phase={"done": done})
                return
            except LostMemoryError:
                done += (self._state.items - first) // count(items)
                done = self._begin_anew(items, done, monitor)

    def _remember(self, items) -> None:
        """Go on with empty memories."""
        state, n = self._state, count(items)
        model = self._remembering(state.model)._replace(learner="incremental")
        estimate = state.learned()
        width = model.item_memory
        memory = untouched((n + -(-estimate.size // width), width), model.real)
        memory[n:].reshape(-1)[: estimate.size] = estimate.ravel() / n
        self._state = State.resume(
            model, estimate, self._n_threads, step=state.step, items=state.items
        )
        self._state.shared = self._state.shared._replace(
            item_memory=memory,
            value_memory=untouched((len(items.index), model.value_memory), np.uint16),
        )

    def _resume_incremental(self, items, done, monitor) -> int:
        """Passes that are made where the fit goes on from a checkpoint of these passes."""
        checkpoint = self._checkpoint
        if done >= self.max_iter:
            raise ModelFormatError(
                f"{checkpoint.path}: pass {done + 1} had begun, max_iter is {self.max_iter} now"
            )
        values = checkpoint.arrays.get("value_memory")
        if values is not None and len(values) != len(items.index):
            raise ModelFormatError(
                f"{checkpoint.path}: is of {len(values)} values, in this fit there are "
                f"{len(items.index)}"
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
