"""A worker: reads rows of the global parameters, makes local steps, sends what came of them.

Alg. 2 and 4.  It knows which rows it will need, because it knows its next documents: so it asks
for these rows only.  It knows nothing of MPI; see :class:`dpsvi.cluster.contracts.Node`.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from functools import partial

import numpy as np

from dpsvi.base import Shared
from dpsvi.cluster.contracts import MASTER
from dpsvi.cluster.nodes import kernels
from dpsvi.cluster.nodes.as_read import AsReadLoop
from dpsvi.cluster.nodes.problem import describe
from dpsvi.cluster.transports.messages import Message, Pool
from dpsvi.cluster.transports.window import Window
from dpsvi.errors import LostRankError
from dpsvi.kernels.memory import aligned
from dpsvi.training import thread_pool
from dpsvi.training.driver import blind_steps, run_segment
from dpsvi.training.job import Job
from dpsvi.training.ledger import StepRange
from dpsvi.training.loop import STOP
from dpsvi.training.state import State, own_memories
from dpsvi.training.task import make_task, make_works, with_memory


class Worker:
    """One worker of a job.

    Parameters
    ----------
    job : Job
        Its state gives the model and what is remembered of items, and `passes` the order of the
        items, never work.
    run : callable
        How the steps of a segment are done, as in :func:`dpsvi.training.driver.run_segment`.
    clock : callable
        Seconds.
    like : Worker or None
        One of the same process whose memory this one shares: only one of them computes at a time,
        and what it reads it has just been sent.
    pool : Pool or None
        For its messages.
    """

    def __init__(
        self, job: Job, run=thread_pool.run, clock=time.perf_counter, like: Worker | None = None,
        pool: Pool | None = None,
    ):  # fmt: skip
        self.job, self.pool, self._run, self._clock = job, pool or Pool(), run, clock
        self.problem = describe(job)  # as it is before the first step
        model = job.state.model
        if like is None:
            shared = Shared(
                aligned(model.shape, model.real), np.zeros((job.n_jobs, model.shape[1])),
                job.state.shared.item_memory, job.state.shared.value_memory,
                *own_memories(model, job.n_jobs),
            )  # fmt: skip
            self.state = State(model._replace(hyper=model.hyper.copy()), shared)
            batch_size = job.passes.batch_size
            self.works = make_works(
                model, job.items, batch_size, job.n_jobs, shared.thread_memory
            )
            self.task = make_task(self.state.model, shared, job.items, batch_size, self.works)
            self._mark = np.zeros(model.shape[0], np.uint8)
            kernels.load(model.real, job.items, job.cluster.statistics)
            self._as_read = None
            if job.cluster.local_decay == "as_read":
                self._as_read = AsReadLoop(model, job.n_jobs)
        else:
            memories = own_memories(model, job.n_jobs)
            shared = like.state.shared._replace(thread_memory=memories[0], optimizer=memories[1])
            self.state = like.state
            self.works = with_memory(like.works, shared)
            self.task = like.task._replace(shared=shared)
            self._mark, self._as_read = like._mark, like._as_read
        self._window, self._base = None, None
        self._next: tuple[int, StepRange, np.ndarray] | None = None
        self._grants: deque[tuple[Message, float]] = deque()  # with the time when they came
        self._has_joined, self._asked = False, 0.0
        self._residual, self._unit = None, 0.0
        if job.cluster.statistics == "bfloat16":
            self._residual = np.zeros(model.shape, model.real)

    def take(self, sender: int, message: Message) -> None:
        """Receive a grant of the master."""
        self._grants.append((message, self._clock()))

    def turn(self) -> Iterator[tuple[int, Message]]:
        """Do what the grants allow; yields the messages to send, each when it is due.

        The first one says that the worker is ready, and which problem it fits.
        """
        if not self._has_joined:
            self._has_joined = True
            yield MASTER, self._hello()
            self._asked = self._clock()
        while self._grants:
            for message in self._messages(*self._grants.popleft()):
                yield MASTER, message
                self._asked = self._clock()  # it has been sent

    @staticmethod
    def lose(node: int, reason: str) -> None:
        """Raise LostRankError if `node` is the master; other workers are no concern of this one."""
        if node == MASTER:
            raise LostRankError(f"rank {MASTER}, the master, is lost: {reason}")

    def _hello(self) -> Message:
        return self.pool.message({"kind": "hello", "problem": self.problem})

    def _messages(self, grant, came) -> Iterator[Message]:
        header, mine = grant.header, self._next
        # With prefetch it may have come before it was needed.
        waited = max(0.0, came - self._asked)
        self._next = None
        if header["work"] is not None:
            work = StepRange(*header["work"])
            self._next = header["work_id"], work, self._rows_of(work)
        if header["reading"] is None:
            yield self._ask(None, {}, reply=True)
            self.pool.give(grant.buffer)
            return
        prefetch = self.job.cluster.prefetch and self._next is not None
        if prefetch:
            yield self._ask(None, {}, reply=True)
        report, arrays = self._compute(grant, mine)
        report["waited"] = waited
        yield self._ask(report, arrays, reply=not prefetch, want=not prefetch)
        self.pool.give(grant.buffer)

    def stop(self) -> None:
        """End the local steps after those that are being made; from any thread."""
        self.task.stop[0] = STOP

    def _ask(self, report, arrays, reply, want=True) -> Message:
        """A message with an update, a request for rows, or both."""
        requested = None
        if want and self._next is not None:
            requested, _, touched = self._next
            arrays = {**arrays, "wanted": touched}
        fill = arrays.pop("fill", None)
        message = self.pool.message(
            {"kind": "ask", "update": report, "want": requested, "reply": reply}, **arrays
        )
        if fill is not None:
            fill(message.arrays)
        return message

    def _rows_of(self, work: StepRange) -> np.ndarray:
        """Numbers of the rows that these steps read: int32, ascending."""
        if not len(self.job.items.index):
            return np.arange(self.state.model.shape[0], dtype=np.int32)
        self._mark[:] = 0
        self._mark[len(self._mark) - self.state.model.common_rows :] = 1
        items = self.job.items
        kernels.mark_rows(items.offsets, items.index, self.job.passes.items(work), self._mark)
        return np.flatnonzero(self._mark).astype(np.int32)

    def _compute(self, grant, mine):
        work_id, work, touched = mine
        state, passes, job = self.state, self.job.passes, self.job
        base = self._read(grant, grant.arrays.get("sent", touched))
        state.shared.totals[:] = 0
        state.shared.totals[0] = grant.arrays["totals"]
        state.model.hyper[:] = grant.arrays["hyper"]
        scale = state.scale = grant.header["scale"]
        if self._residual is not None and grant.header["unit"] != self._unit:
            # The master has folded its scale into the rows since: so has this rest of them.
            self._residual *= np.float32(np.exp(grant.header["unit"] - self._unit))
            self._unit = grant.header["unit"]
        n_threads, sizes = min(job.n_jobs, work.n_steps), passes.sizes(work)
        if job.most_blind is not None:
            n_threads = min(n_threads, blind_steps(job.schedule, work.clock, job.most_blind))
        run = self._run
        if self._as_read is not None:
            run = partial(self._as_read.segment, run, held=touched)
        started, total = self._clock(), job.total_items or passes.n_items
        n_done = run_segment(
            run, self.task._replace(works=self.works[:n_threads]), state, job.schedule,
            passes.items(work), sizes, work.clock, total,
        )  # fmt: skip
        n_items = int(sizes[:n_done].sum())
        report = {
            "work_id": work_id, "n_done": n_done, "n_items": n_items, "share": n_items / total,
            "n_threads": n_threads, "decay": state.scale / scale, "scale": state.scale,
            "seconds": self._clock() - started,
        }  # fmt: skip
        rows = state.shared.rows
        arrays = {
            "totals": state.shared.totals.sum(axis=0),
            "fill": lambda views: self._fill(views, rows, touched, base),
        }  # fmt: skip
        form = "end" if grant.header["alone"] else "change"
        number = rows.dtype if self._residual is None else np.dtype(np.uint16)
        arrays[form] = ((len(touched), state.model.sent_columns), number)
        return report, arrays

    def _read(self, grant, sent):
        """Take over the rows `sent`, from the message or where the master has them."""
        rows, found = self.state.shared.rows, grant.header["window"]
        if found is None:
            base = grant.arrays["base"]
            kernels.scatter(rows, sent, base)
            return base
        rank, n_ranks, *place = found
        if self._window is None:
            self._window = Window.at(place, rows.shape, rows.dtype, n_ranks)
            columns = self.state.model.sent_columns
            self._base = np.empty((len(rows), columns), rows.dtype)  # free where not written to
        base = self._base[: len(sent)]
        kernels.fetch(self._window.rows, sent, rows, base)
        self._window.end(rank)
        return base

    def _fill(self, views, rows, touched, base):
        """Write the rows into the message, in the form that is wanted."""
        if "end" in views:
            kernels.gather(rows, touched, views["end"])
        elif self._residual is None:
            kernels.changes(rows, touched, base, views["change"])
        else:
            kernels.pack_bfloat16(rows, base, touched, self._residual, views["change"])
