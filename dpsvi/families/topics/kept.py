"""The last passes of a topic model with kept responsibilities: from step to step and sum to sum.

The first pass adds every token's responsibilities to the stochastic estimate; from then on the
parameters are the sum of what is kept (:mod:`dpsvi.kernels.responsibilities`).  They are summed up
anew after that pass, now and then, since lost writes of many passes would add up, and at the end.
So are the tables of the HDP, whose changes in between are those at the alpha of the moment.
Summing is a job like any other, so that it needs nothing of an engine that it had not: every worker
adds up what it keeps, document after document, as their memory lies.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from dpsvi.base import Model
from dpsvi.estimators.remembering import Place, Remembering
from dpsvi.families.topics.matrix import FLOAT
from dpsvi.kernels.jit import as_items
from dpsvi.kernels.memory import untouched
from dpsvi.kernels.responsibilities import UNIT, recall, scratch
from dpsvi.training.items import count
from dpsvi.training.job import Job
from dpsvi.training.ledger import Ledger
from dpsvi.training.schedules import constant
from dpsvi.training.state import State

__all__ = ["KeptPasses", "Place"]

# The last passes, which keep responsibilities: one of so many, and no fewer than these.
KEPT_SHARE, FEWEST_KEPT = 10, 2
RESUM_PASSES = 32  # between exact sums of what is kept
SUM_BATCH = 256  # documents of a step that sums: a row is added once for all that have the word


def sum_of(state: State, alpha=()) -> State:
    """A state from 0, which one pass over all items makes ``UNIT sum_d c_dw phi_dwk``.

    With `alpha`, (n_columns,), the last row becomes the tables of documents with this prior.
    The sums are made in float64: 20 million times 1 is no more than 2**24 in float32; and those of
    integers are exact, in whatever order.
    """
    n_columns = state.model.shape[1]
    model = Model(
        name=state.model.name, shape=state.model.shape, prior=np.zeros(n_columns),
        hyper=np.asarray(alpha, np.float64), local=recall, scratch=partial(scratch, n_columns),
        value_memory=n_columns, common_rows=state.model.common_rows, learner="incremental",
        nonnegative=True, used_columns=state.model.used_columns,
    )  # fmt: skip
    total = State.resume(model, np.zeros(model.shape), 1)
    total.shared = total.shared._replace(value_memory=state.shared.value_memory)
    return total


class KeptPasses(Remembering):
    """The part of a topic model's estimator that makes the passes with kept responsibilities.

    It has a parameter `keep_responsibilities` and defines ``_keeping(model) -> Model``, the model
    with the local step that keeps them, and ``_alpha_of_tables() -> array``, the alpha, with
    padding, at which the tables of documents are counted; empty where there are none.
    """

    def _check_keeps(self) -> None:
        if self.local_step != "collapsed":
            raise ValueError(
                f"keep_responsibilities needs local_step='collapsed', got {self.local_step!r}"
            )
        self._check_knows_end("passes that keep responsibilities")
        self._check_counts_once("kept responsibilities")

    def _train_and_keep(self, items, rng, monitor) -> None:
        """Make all passes of a fit, of which the last ones keep responsibilities."""
        n_passes = self.max_iter - self._n_kept()
        self._begin_part(0, n_passes)
        model, phase = self._state.model, self._resumed_phase()
        if phase is None:
            if self._train(self._state, items, n_passes, rng, monitor) or not self._n_kept():
                return
            phase = {"done": n_passes, "draws": 1}
        self._train_kept(items, Place(**phase), rng, monitor)
        self._set_priors(model, *self._used_priors(self._state.model))  # as the checkpoint has them
        self._state.model = model

    def _alpha_of_tables(self):
        return ()

    def _n_kept(self) -> int:
        """How many passes these are; the first one never is."""
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
        model = self._keeping(state.model)
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
        rows = state.shared.rows[: self._n_words(state)]
        tokens = items.value.sum(dtype=np.float64)
        rows *= FLOAT.type(tokens / rows.sum(dtype=np.float64))
        state.recount()

    def _sum_kept(self, items, monitor) -> None:
        """Make the parameters the sum of what is kept, in float64."""
        state, n_items = self._state, count(items)
        total, seconds = sum_of(state, self._alpha_of_tables()), []
        job = Job(
            total, as_items(*items, total.model.real),
            Ledger(n_items, SUM_BATCH, 1, seed=None), constant(1.0),
            observer=lambda event: seconds.append(event.seconds), cluster=self.cluster,
        )  # fmt: skip
        self._engine().fit(job)
        state.shared.rows[...] = total.shared.rows / UNIT
        state.recount()
        monitor.add_seconds(sum(seconds))
