"""Incremental passes: statistics of every item replace those of its last visit (Neal, Hinton 1998).

    lam = prior + sum of what is remembered of the items visited
                + (items not visited yet) / N * (lam - prior where these passes began)

The passes before are stochastic steps, whose estimate stands for items until their first visit.  So
the parameters stand for all items at all times, and are an exact sum from the end of the first of
these passes on, but for additions that threads over-write where there are several rows.  Nothing
decays: what is left is coordinate ascent, a batch at a time (Hughes and Sudderth 2013, who remember
statistics of batches).

On several processes each worker has items of its own in these passes, whatever `sharding` says, and
remembers these only.  There must be a master that adds every change once: strategies ``"decay"``
and ``"displacement"`` with a `global_rate` of 1 and float32 statistics.  When a worker is lost
those that are left begin to remember anew, with one more pass if the last one had begun.  So does a
fit that is resumed by or from workers; in one process a checkpoint holds what is remembered, and
the fit goes on as if nothing had happened.
"""

from __future__ import annotations

import numpy as np

from dpsvi.errors import check_flag
from dpsvi.estimators.remembering import Place, Remembering
from dpsvi.kernels.memory import untouched
from dpsvi.training.items import count
from dpsvi.training.state import State

SHARE = 2  # one pass of so many is incremental, the last ones


class Incremental(Remembering):
    """The part of an estimator that makes incremental passes.

    It has a parameter `incremental` and defines ``_remembering(model) -> Model``, the model whose
    statistics are changes of what its local step keeps in the memories of
    :class:`dpsvi.base.Shared`.  There each item is a row of `item_memory`.  Behind these rows lies
    what stands for an item that was not visited yet, which its row must tell: ``lam - prior`` where
    these passes began, one row after the other, divided by the number of items.
    """

    def _check_incremental(self) -> None:
        check_flag("incremental", self.incremental)
        if self.incremental:
            self._check_knows_end("incremental passes")
            self._check_counts_once("incremental passes")

    def _train_passes(self, items, rng, monitor, total=None) -> None:
        n_incremental = self.max_iter // SHARE if self.incremental else 0
        if total is not None or not n_incremental:
            super()._train_passes(items, rng, monitor, total)
            return
        model, phase, n_passes = self._state.model, self._resumed_phase(), self.max_iter
        if phase is None:
            n_passes -= n_incremental
            if n_passes and self._train(self._state, items, n_passes, rng, monitor):
                return
            phase = {"done": n_passes, "draws": 1}
        self._train_kept(items, Place(**phase), rng, monitor)
        self._state.model = model

    def _remember(self, items) -> None:
        state, n = self._state, count(items)
        model = self._remembering(state.model)._replace(learner="incremental")
        estimate, width = state.learned(), model.item_memory
        memory = untouched((n + -(-estimate.size // width), width), model.real)
        memory[n:].reshape(-1)[: estimate.size] = estimate.ravel() / n
        self._state = State.resume(
            model, estimate, self._n_threads, step=state.step, items=state.items
        )
        self._state.shared = self._state.shared._replace(
            item_memory=memory,
            value_memory=untouched((len(items.index), model.value_memory), np.uint16),
        )

    def _part(self, place) -> int:
        return self.max_iter - place.done

    def _end_part(self, items, place, ended, monitor) -> bool:
        return ended

    def _stand_for_all(self, items) -> None:
        """They do at all times."""
