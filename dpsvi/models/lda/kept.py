"""The last passes of LDA with kept responsibilities: from step to step and sum to sum.

The first pass adds every token's responsibilities to the stochastic estimate; from then on the
parameters are the sum of what is kept (:mod:`dpsvi.models.lda.responsibilities`).  They are summed
up anew after that pass, now and then, since lost writes of many passes would add up, and at the
end.  Summing is a job like any other, so that it needs nothing of an engine that it had not: every
worker adds up what it keeps.

What a lost worker kept is lost, and its documents would be counted twice at others.  Then, and
where a fit is resumed on a cluster, all begin anew from the parameters that are there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpsvi.errors import LostMemoryError, ModelFormatError
from dpsvi.estimators.items import count
from dpsvi.families.topics.matrix import FLOAT
from dpsvi.kernels.jit import as_items
from dpsvi.kernels.memory import untouched
from dpsvi.models.lda.model import with_responsibilities
from dpsvi.models.lda.responsibilities import UNIT, sum_of
from dpsvi.training.job import Job
from dpsvi.training.ledger import Passes
from dpsvi.training.schedules import constant
from dpsvi.training.state import State

# The last passes, which keep responsibilities: one of so many, and no fewer than these.
KEPT_SHARE, FEWEST_KEPT = 10, 2
RESUM_PASSES = 32  # between exact sums of what is kept


class Place(NamedTuple):
    """Where a fit is, between two calls of the engine."""

    done: int  # passes
    draws: int  # seeds that passes have had
    summed: bool = False  # whether the parameters are a sum of what is kept


class KeptPasses:
    """The part of LDA's estimator that makes the passes with kept responsibilities."""

    def _n_kept(self) -> int:
        """How many passes these are; the first one never is."""
        if not self.keep_responsibilities:
            return 0
        return max(0, min(max(FEWEST_KEPT, self.max_iter // KEPT_SHARE), self.max_iter - 1))

    def _train_kept(self, items, place: Place, rng, monitor) -> None:
        """Make all passes that are left; what interrupts them leaves a model of all documents."""
        try:
            self._make_passes(items, place, rng, monitor)
        except KeyboardInterrupt as interrupt:  # between two calls of the engine
            self._interrupt(interrupt, self._state)
        if self.interrupted_:
            self._stand_for_all(items)

    def _make_passes(self, items, place, rng, monitor) -> None:
        self._remember(with_responsibilities(self._state.model), items)
        if self._checkpoint is not None:
            place = self._resume_kept(items, place, rng, monitor)
        while place.done < self.max_iter:
            few = min(self.max_iter - place.done, RESUM_PASSES if place.summed else 1)
            first = self._state.items
            try:
                ended = self._train(
                    self._state, items, few, rng, monitor, phase=place._asdict()
                )  # fmt: skip
                if self.interrupted_:
                    return
                if ended and not place.summed:
                    # In the middle: the mean of both sums, which stands for all documents.
                    self._stand_for_all(items)
                    return
                self._sum_kept(items, monitor)
            except LostMemoryError:
                done = place.done + (self._state.items - first) // count(items)
                place = self._begin_anew(items, done, place.draws + 1, monitor)
                continue
            if ended:
                return
            place = Place(place.done + few, place.draws + 1, summed=True)

    def _resume_kept(self, items, place, rng, monitor) -> Place:
        """Where the fit goes on from a checkpoint of these passes."""
        checkpoint = self._checkpoint
        if place.done >= self.max_iter:
            raise ModelFormatError(
                f"{checkpoint.path}: pass {place.done + 1} had begun, max_iter is "
                f"{self.max_iter} now"
            )
        memory, n_values = checkpoint.arrays.get("value_memory"), len(items.index)
        if memory is not None and len(memory) != n_values:
            raise ModelFormatError(
                f"{checkpoint.path}: is of documents with {len(memory)} words, in this fit these "
                f"are {n_values}"
            )
        if memory is not None and not self._engine().options:
            for _ in range(place.draws):
                self._seed_of_passes(rng)
            return place
        passes = self._restore_checkpoint(self._state, count(items), RESUM_PASSES, monitor).passes
        done = place.done + passes.n_done // passes.steps_a_pass
        return self._begin_anew(items, done, place.draws, monitor)

    def _begin_anew(self, items, done, draws, monitor) -> Place:
        """Forget what is kept; a pass at least is left to remember all documents again."""
        done = min(done, self.max_iter - 1)
        self._remember(self._state.model, items)
        self._stand_for_all(items)
        monitor.epoch = float(done)
        monitor.start_phase()
        return Place(done, draws)

    def _remember(self, model, items) -> None:
        """Go on with `model` and an empty memory."""
        state, n_values = self._state, len(items.index)
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
            Passes(n_items, self._resolve_batch_size(n_items), 1, seed=0), constant(1.0),
            observer=lambda event: seconds.append(event.seconds), cluster=self.cluster,
        )  # fmt: skip
        self._engine().fit(job)
        state.shared.rows[...] = total.shared.rows / UNIT
        state.recount()
        monitor.add_seconds(sum(seconds))
