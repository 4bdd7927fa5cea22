"""The last passes of LDA with kept responsibilities: from step to step and sum to sum.

The first pass adds every token's responsibilities to the stochastic estimate; from then on the
parameters are the sum of what is kept (:mod:`dpsvi.models.lda.responsibilities`).  They are summed
up anew after that pass, now and then, since lost writes of many passes would add up, and at the
end.  Summing is a job like any other, so that it needs nothing of an engine that it had not: every
worker adds up what it keeps.
"""

from __future__ import annotations

import numpy as np

from dpsvi.estimators.remembering import Place, Remembering
from dpsvi.families.topics.matrix import FLOAT
from dpsvi.kernels.jit import as_items
from dpsvi.kernels.memory import untouched
from dpsvi.models.lda.model import with_responsibilities
from dpsvi.models.lda.responsibilities import UNIT, sum_of
from dpsvi.training.items import count
from dpsvi.training.job import Job
from dpsvi.training.ledger import Ledger
from dpsvi.training.schedules import constant
from dpsvi.training.state import State

__all__ = ["KeptPasses", "Place"]

# The last passes, which keep responsibilities: one of so many, and no fewer than these.
KEPT_SHARE, FEWEST_KEPT = 10, 2
RESUM_PASSES = 32  # between exact sums of what is kept


class KeptPasses(Remembering):
    """The part of LDA's estimator that makes the passes with kept responsibilities."""

    def _n_kept(self) -> int:
        """How many passes these are; the first one never is."""
        if not self.keep_responsibilities:
            return 0
        return max(0, min(max(FEWEST_KEPT, self.max_iter // KEPT_SHARE), self.max_iter - 1))

    def _part(self, place) -> int:
        return min(self.max_iter - place.done, RESUM_PASSES if place.summed else 1)

    def _end_part(self, items, place, ended, monitor) -> bool:
        if ended and not place.summed:
            # In the middle: the mean of both sums, which stands for all documents.
            self._stand_for_all(items)
        else:
            self._sum_kept(items, monitor)
        return ended

    def _remember(self, items) -> None:
        state, n_values = self._state, len(items.index)
        model = with_responsibilities(state.model)
        state.renormalise()
        workers = self._engine().options is not None
        self._state = State.resume(
            model, state.shared.rows, self._n_threads, count(items), 0 if workers else n_values,
            state.step, state.items,
        )  # fmt: skip
        if workers:  # each uses the part of its own documents
            memory = untouched((n_values, model.value_memory), np.uint16)
            self._state.shared = self._state.shared._replace(value_memory=memory)

    def _stand_for_all(self, items) -> None:
        """Scale the parameters such that they hold as many tokens as the documents."""
        state = self._state
        state.renormalise()
        rows = state.shared.rows
        tokens = items.value.sum(dtype=np.float64)
        rows *= FLOAT.type(tokens / rows.sum(dtype=np.float64))
        state.recount()

    def _sum_kept(self, items, monitor) -> None:
        """Make the parameters the sum of what is kept, in float64."""
        state, n_items = self._state, count(items)
        total, seconds = sum_of(state), []
        job = Job(
            total, as_items(*items, total.model.real),
            Ledger(n_items, self._resolve_batch_size(n_items), 1, seed=0), constant(1.0),
            observer=lambda event: seconds.append(event.seconds), cluster=self.cluster,
        )  # fmt: skip
        self._engine().fit(job)
        state.shared.rows[...] = total.shared.rows / UNIT
        state.recount()
        monitor.add_seconds(sum(seconds))
