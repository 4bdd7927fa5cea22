"""The master: hands out steps and rows, merges updates.  Alg. 1 and 3.

It waits for nobody, unless the strategy wants rounds: each message is answered when it can be, in
the order of arrival.  It knows nothing of MPI; see :class:`dpsvi.cluster.contracts.Node`.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace

import numpy as np

from dpsvi.cluster.contracts import MASTER
from dpsvi.cluster.nodes import kernels
from dpsvi.cluster.nodes.adopt import state_message
from dpsvi.cluster.nodes.allotment import Allotment
from dpsvi.cluster.nodes.answers import Answers, Ask
from dpsvi.cluster.nodes.exchanges import Exchange
from dpsvi.cluster.nodes.merging import Collected, Merger
from dpsvi.cluster.nodes.parameters import MasterParameters
from dpsvi.cluster.nodes.problem import check_same, describe
from dpsvi.cluster.nodes.rows import RowSender
from dpsvi.cluster.transports.messages import Message, Pool
from dpsvi.cluster.transports.window import Window
from dpsvi.errors import DivergedError, DpsviError, LostMemoryError, LostRankError
from dpsvi.training.boundary import Boundary, Progress
from dpsvi.training.job import Job, Snapshot

log = logging.getLogger(__name__)


class Master:
    """The master of a job.

    Parameters
    ----------
    job : Job
    n_workers : int
        How many are expected; they are waited for, or dropped, before the first step, unless
        :meth:`wait_no_longer` is called.
    clock, work_clock : callable
        Seconds; those this thread has computed.
    pool : Pool or None
        For its messages.
    window : Window or None
        Where some workers can read the rows of the job's state.
    """

    def __init__(
        self, job: Job, n_workers: int, clock=time.perf_counter, work_clock=time.thread_time,
        pool: Pool | None = None, window: Window | None = None,
    ):  # fmt: skip
        options, self._work_clock = job.cluster, work_clock
        self.job, self.passes, self.n_workers = job, job.passes, n_workers
        self.problem = describe(job)  # as it is before the first step
        self.strategy = options.make_strategy()
        kernels.load(job.state.model.real, job.items, options.statistics)
        # Only a decay of other parameters than those that are there now can take away too much.
        logs = self.strategy.needs_log
        self.parameters = MasterParameters(
            job.state, log=logs,
            project=logs or self.strategy.projected or options.local_decay == "as_read",
        )  # fmt: skip
        before = job.strategy_state
        self.strategy.begin(self.parameters, n_workers, before and before[1])
        self.pool, self.window = pool or Pool(), window
        self.boundary = Boundary(job, clock)
        self.workers: set[int] = set()
        self.lost: dict[int, str] = {}
        self.joined: dict[int, float] = {}  # training time when those came that were late
        self.memory_lost = False  # and with a worker what statistics are changes of
        self.busy = 0.0  # seconds computed for messages since all began
        # Who had a turn: a worker for each message that was taken, 0 where all so far are answered.
        self.order: list[int] = []
        self._due = False  # whether somebody may be answered since the last turn
        self._outbox: list[tuple[int, Message]] = []  # with the destination
        self._collected: list[Collected] = []
        self._allotment = Allotment(job, self.strategy)
        self._merger = Merger(self.strategy, self.parameters, self._allotment, self.pool)
        rows = RowSender(job, self.strategy, self.parameters, self.pool, window)
        self._answers = Answers(
            job, self.strategy, rows, self.pool, self._allotment, self.boundary
        )
        self._begun, self._waits = False, True

    @property
    def finished(self) -> bool:
        """Whether all steps are done and merged, or no more can be."""
        return self._complete or self.memory_lost

    @property
    def _complete(self) -> bool:
        return self.boundary.ended or (self.passes.finished and not self._collected)

    @property
    def exchanges(self) -> list[Exchange]:
        """One for each update that was merged."""
        return self._merger.exchanges

    @property
    def seconds(self) -> float:
        """Training time."""
        return self.boundary.seconds

    def take(self, worker: int, message: Message) -> None:
        """Merge what one message brings; :meth:`turn` answers all that were taken.

        So several that wait are merged one after the other, and who sent them reads at one time.
        """
        started = self._work_clock()
        kind = message.header["kind"]
        if worker in self.lost:
            self.pool.give(message.buffer)  # its steps were given to others
            return
        self.order.append(worker)
        if kind == "hello":
            self._join(worker, message.header["problem"])
            self.pool.give(message.buffer)
        elif kind == "diverged":
            raise DivergedError(message.header["reason"])
        elif kind == "ask":
            self._take_ask(worker, message)
        self._due = True
        self.busy += self._work_clock() - started

    def turn(self) -> list[tuple[int, Message]]:
        """The answers to what was taken since the last call, with the destination."""
        started = self._work_clock()
        if self._due and self.order and self.order[-1] != MASTER:
            self.order.append(MASTER)
        if self._due and not self.finished:
            self._serve()
        self._due = False
        self.busy += self._work_clock() - started
        outbox, self._outbox = self._outbox, []
        return outbox

    def wait_no_longer(self) -> None:
        """Begin with the workers that are there, or the first that comes; the others may join.

        Those of a fit whose parameters are a sum of what workers remember are waited for: nobody
        else may visit their items, so the fit would end no sooner.
        """
        self._waits = self.job.state.sums_memory
        self._due = True

    def lose(self, worker: int, reason: str) -> None:
        """Continue without `worker`; its steps are done by others.

        Where the parameters are a sum over what workers remember, the fit ends instead.

        Raises
        ------
        LostRankError
            It was the last one.
        """
        if worker in self.lost:
            return
        started = self._work_clock()
        self.lost[worker] = reason
        self.workers.discard(worker)
        self.n_workers -= 1
        self._answers.drop(worker)
        n_steps = self.passes.drop(worker)
        self._allotment.forget(worker)
        self.strategy.lost(worker)
        if self.job.state.sums_memory:
            log.warning(
                "rank %d is lost (%s), and with it what it remembered of its items; %d workers are "
                "left", worker, reason, self.n_workers,
            )  # fmt: skip
        else:
            log.warning(
                "rank %d is lost (%s); its %d unfinished steps go to others, %d workers are left",
                worker, reason, n_steps, self.n_workers,
            )  # fmt: skip
        if self.passes.finished:
            self._merge()
        if self.n_workers == 0 and not self._complete:
            raise LostRankError("no worker is left")
        self.lose_memory()
        self._due = True
        self.busy += self._work_clock() - started

    def lose_memory(self) -> None:
        """Take note that a worker is lost, now or since the last fit: what it remembered is, too.

        Its items would be counted twice if others visited them.
        """
        self.memory_lost = self.job.state.sums_memory

    def result(self) -> bool:
        """Whether the observer ended the fit; raises LostMemoryError if a loss did."""
        if self.memory_lost:
            raise LostMemoryError
        return self.boundary.ended

    def stop_message(self, reason: str, lost: set[int], parameters: bool) -> Message:
        """What ends a worker; with the final parameters it holds the model everybody keeps."""
        header = {
            "kind": "stop", "reason": reason, "ended": self.boundary.ended,
            "memory_lost": self.memory_lost,
        }  # fmt: skip
        ranks = np.array(sorted(lost), np.int32)
        if not parameters:
            return self.pool.message(header, lost=ranks)
        self.parameters.renormalise()
        return state_message(self.pool, header, self.job.state, lost=ranks)

    def snapshot(self) -> Snapshot:
        """Everything merged so far; updates still being collected are merged first.

        What workers remember is theirs, and ahead of what they have sent.
        """
        self._merge()
        state = replace(self.job.state)
        state.forget()
        return Snapshot(
            state, self.passes, self.seconds, (self.job.cluster.strategy, self.strategy.state())
        )

    # --- messages -----------------------------------------------------------------------------

    def _join(self, worker, problem):
        if len(self.workers) == self.n_workers:
            # Rates, shards and what strategies keep of each worker are for as many as are expected.
            raise DpsviError(
                f"rank {worker} joins a fit for {self.n_workers} workers, who are all there: "
                "interrupt it and resume it from its checkpoint with more"
            )
        check_same(self.problem, 0, worker, problem)
        self.workers.add(worker)
        if self._begun:
            self.joined[worker] = self.seconds
            self.strategy.joined(self.parameters, worker)
            log.info(
                "rank %d joins after %d steps; %d workers are there", worker, self.passes.n_done,
                len(self.workers),
            )  # fmt: skip
        self._answers.waiting.append(Ask(worker, None, None))

    def _take_ask(self, worker, message):
        header = message.header
        if header["reply"]:
            touched = message.arrays.get("wanted")
            copy = None if touched is None else touched.copy()
            n_bytes = 0 if header["update"] is not None else message.n_bytes
            self._answers.waiting.append(Ask(worker, header["want"], copy, n_bytes))
        if header["update"] is not None:
            self._collect(header["update"], message)
        else:
            self.pool.give(message.buffer)

    def _collect(self, report, message):
        grant = self._answers.grants.close(report["work_id"])
        self.passes.done(grant.worker, grant.work, report["n_done"])
        self._collected.append(Collected.of(grant, report, message))
        together = self.job.cluster.master_batch
        if not self.strategy.synchronous and len(self._collected) >= together:
            self._merge()

    def _merge(self):
        """Merge what was collected."""
        if not self._collected:
            return
        collected, self._collected = self._collected, []
        being_made = self._answers.grants.being_made()
        self._merger.merge(collected, [grant.reading for grant in being_made])
        worked = self._work_clock()
        self.boundary.reached(
            Progress(self.job.state, self.passes.n_done, self.passes.clock), self.snapshot
        )
        self.busy -= self._work_clock() - worked

    def _serve(self):
        """Answer whoever can be answered."""
        if not self._begun:
            n_late = self.n_workers - len(self.workers)
            if n_late and (self._waits or not self.workers):
                return  # all begin together
            self._begin(n_late)
        answers = self._answers
        n_collected = sum(grant.work.n_steps for grant, *_ in self._collected)
        # For as many as are expected: the rows of one who works alone for now are not its own.
        self._outbox += answers.answer(self.workers, self.n_workers, n_collected)
        if answers.grants.being_made() or len(answers.waiting) < len(self.workers):
            return
        # Nobody is at work: a round is over, or M updates will never come together.
        if self._collected:
            self._merge()
        elif not (self.strategy.synchronous and answers.draw()):
            return
        if not self.finished:
            self._serve()

    def _begin(self, n_late):
        self._begun, self.busy = True, 0.0
        if n_late:
            log.warning(
                "%d of %d workers begin; the others join when they come", len(self.workers),
                self.n_workers,
            )  # fmt: skip
        self.boundary.start()

    def report(self) -> None:
        """Log what the exchanges cost, and leave it for whoever asked."""
        if not self.exchanges:
            return
        found = self._merger.report(self.busy, self.seconds)
        if self.job.report is not None:
            self.job.report.update(
                seconds=self.seconds, busy=self.busy, lost=dict(self.lost),
                joined=dict(self.joined), withheld=len(self._answers.withheld), order=self.order,
                **found,
            )  # fmt: skip
