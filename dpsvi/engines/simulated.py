"""A virtual cluster (Alg. 1-4): the real algorithm on the real data, in virtual time.

Master and workers are those of ``engine="mpi"``: every local step, every stale reading, every
merge is executed, in the order in which it would happen on the cluster that
:class:`dpsvi.cluster.virtual.VirtualCluster` describes.  Only time is computed instead of spent:

* a local step of a thread reads the parameters when it begins and adds to them when it ends, so
  that p threads do not see the p - 1 steps that are being made; each addition to a row is lost
  with the probability that was measured;
* a message leaves when its link is free; the master takes one message at a time.

The same seed gives the same result, bit for bit.
"""

from __future__ import annotations

import heapq
from collections import deque
from itertools import count

import numpy as np

from dpsvi.base import Engine
from dpsvi.cluster.nodes.as_read import Segment, factors, read_rows, to_change, write_rows
from dpsvi.cluster.nodes.master import Master
from dpsvi.cluster.nodes.worker import Worker
from dpsvi.cluster.ranks.prepare import for_workers
from dpsvi.cluster.transports.messages import Message, deliver
from dpsvi.cluster.virtual import VirtualCluster
from dpsvi.cluster.virtual.calibrate import measure
from dpsvi.training.driver import Job
from dpsvi.training.loop import DIVERGED, RUNNING, add_rows
from dpsvi.training.signals import Deferred


def fit(job: Job) -> bool:
    """Carry out `job` on ``job.cluster``; whether the observer ended it.

    Times that observers and reports get are those of the cluster.

    Raises
    ------
    ValueError
        ``job.cluster`` is not a :class:`~dpsvi.cluster.virtual.VirtualCluster`, or as
        :func:`dpsvi.cluster.ranks.prepare.for_workers`.
    """
    options = VirtualCluster() if job.cluster is None else job.cluster
    if not isinstance(options, VirtualCluster):
        raise ValueError(f"engine='simulated' needs cluster=VirtualCluster(...), got {options!r}")
    job = for_workers(job, options, options.n_workers)
    simulation = _Simulation(job, options.timing or measure(job))
    try:
        simulation.run()
    except KeyboardInterrupt:
        if job.checkpoint is not None:
            job.checkpoint(simulation.master.snapshot(), True)
        raise
    finally:
        simulation.master.parameters.renormalise()
        simulation.master.report()
    if job.report is not None:
        job.report["timing"] = simulation.timing
    return simulation.master.ended


class _Simulation:
    """Events in the order of virtual time."""

    def __init__(self, job: Job, timing):
        self.job, self.options, self.timing = job, job.cluster, timing
        self.now = 0.0
        self.rng = np.random.default_rng(self.options.seed)
        n = self.options.n_workers
        self.master = Master(job, n, self._clock, self._clock)
        first = Worker(job, self._run_steps, self._clock)
        self.workers = {1: first}
        for rank in range(2, n + 1):
            self.workers[rank] = Worker(job, self._run_steps, self._clock, like=first)
        share, factor = self.options.stragglers
        slow = self.rng.permutation(n)[: round(share * n)]
        self.slower = {rank: factor if rank - 1 in slow else 1.0 for rank in self.workers}
        self._events: list[tuple] = []  # heap of (time, number, what to do, with what)
        self._numbers = count()
        self._inwards = self._outwards = 0.0  # when the master's links are free again
        self._queue: deque[tuple[int, Message]] = deque()
        self._master_busy = False
        self._free_at = dict.fromkeys(self.workers, 0.0)
        self._computing = 1

    def run(self) -> None:
        """Until all steps are done."""
        for rank, worker in self.workers.items():
            self._at(0.0, self._sent, rank, worker.hello())
        with Deferred() as signals:  # an event is whole, a merge above all
            while not self.master.finished:
                self.now, _, what, *arguments = heapq.heappop(self._events)
                what(*arguments)
                signals.deliver()

    def _clock(self) -> float:
        return self.now

    def _at(self, time, what, *arguments):
        heapq.heappush(self._events, (time, next(self._numbers), what, *arguments))

    # --- the network, the master ----------------------------------------------------------------

    def _sent(self, rank, message: Message):
        """A worker has sent a message: it waits for the link."""
        network, seconds = self.options.network, message.n_bytes / self.options.network.bandwidth
        start = self.now
        if network.shared:
            start = max(start, self._inwards)
            self._inwards = start + seconds
        self._at(start + seconds + network.latency, self._arrived, rank, message)

    def _arrived(self, rank, message: Message):
        """It waits for the master."""
        self._queue.append((rank, message))
        if not self._master_busy:
            self._take()

    def _take(self):
        """The master takes a message, merges what is in it, and answers."""
        self._master_busy = True
        rank, message = self._queue.popleft()
        # By the numbers that are merged, whatever their form on the way.
        rows = [array for name, array in message.arrays.items() if name in ("end", "change")]
        merged = sum(array.size for array in rows) * self.job.state.model.real.itemsize
        worker = self.workers[rank]
        self.master.take(rank, deliver(message, worker.pool, self.master.pool))
        outbox, self.master.outbox = self.master.outbox, []
        read = sum(answer.n_bytes for _, answer in outbox)
        cost = self.timing.message + self.timing.merge * merged + self.timing.read * read
        self.master.busy += cost
        self._at(self.now + cost, self._answer, outbox)

    def _answer(self, outbox):
        """Its answers wait for the link; it turns to the next message."""
        network = self.options.network
        for rank, answer in outbox:
            seconds = answer.n_bytes / network.bandwidth
            start = self.now
            if network.shared:
                start = max(start, self._outwards)
                self._outwards = start + seconds
            grant = deliver(answer, self.master.pool, self.workers[rank].pool)
            self._at(start + seconds + network.latency, self._turn, rank, grant)
        self._master_busy = False
        if self._queue and not self.master.finished:
            self._take()

    # --- a worker ---------------------------------------------------------------------------------

    def _turn(self, rank, grant: Message):
        """A worker does what it was allowed to; meanwhile nothing else that it could see happens.

        What it sends, and when, goes into the heap.
        """
        if self.now < self._free_at[rank]:  # it came before it was needed
            self._at(self._free_at[rank], self._turn, rank, grant)
            return
        began, spent, self._computing = self.now, 0.0, rank
        timing, slower = self.timing, self.slower[rank]
        if grant.header["reading"] is not None:
            spent = (timing.turn + timing.touch * grant.n_bytes) * slower
        self.now += spent
        for answer in self.workers[rank].turn(grant, spent):
            if answer.header["update"] is not None:
                self.now += timing.touch * answer.n_bytes * slower
            self._at(self.now, self._sent, rank, answer)
        self._free_at[rank], self.now = self.now, began

    def _run_steps(self, task, n_steps: int) -> None:
        """Do steps [0, n_steps) on virtual threads: read at the beginning of each, add at its end.

        In the place of :func:`dpsvi.training.thread_pool.run`.
        """
        n_threads, shared, items = len(task.works), task.shared, task.items
        slower = self.options.slowdown(n_threads, self.timing) * self.slower[self._computing]
        lost = min(1.0, self.timing.lost * (n_threads - 1))
        began, size = self.now, task.batch_size
        at_work: list[tuple] = []
        as_read = task.loop if isinstance(task.loop, Segment) else None

        def begin(thread, at):
            t = int(task.counter[0])
            if t >= n_steps or task.stop[0] != RUNNING:
                return
            task.counter[0] = t + 1
            batch, work = task.order[t * size : (t + 1) * size], task.works[thread]
            if as_read is None:
                work.totals[:] = shared.totals.sum(axis=0)
                n = task.local(shared, task.scales[t], task.hyper, items, batch, work)
            else:
                left, seen = factors(task.scales, task.gains, t)[0], as_read.seen[thread]
                read_rows(shared.rows, as_read.held, left * as_read.rest, seen, work.totals)
                private = shared._replace(rows=seen)
                n = task.local(private, task.scales[0], task.hyper, items, batch, work)
            n_values = int((items.offsets[batch + 1] - items.offsets[batch]).sum())
            seconds = slower * self.timing.draw(self.rng, n_values)
            heapq.heappush(at_work, (at + seconds, thread, t, n))

        def end(thread, t, n):
            if as_read is not None:
                end_as_read(thread, t, n)
                return
            work, own, gain = task.works[thread], shared.totals[thread], task.gains[t]
            if lost and len(shared.rows) > 1:
                gone = np.flatnonzero(self.rng.random(n) < lost)
                own += gain * work.stats[gone].sum(axis=0, dtype=np.float64)
                work.stats[gone] = 0
            add_rows(shared.rows, work.touched[:n], work.stats, gain, own)
            if not np.isfinite(own.sum()):
                task.stop[0] = DIVERGED

        def end_as_read(thread, t, n):
            work, change = task.works[thread], as_read.seen[thread]
            _, rate, gain = factors(task.scales, task.gains, t)
            to_change(change, as_read.held, rate, work.touched[:n], work.stats, gain)
            held = as_read.held
            if lost:
                held = held[self.rng.random(len(held)) >= lost]
            write_rows(shared.rows, held, change, as_read.nonnegative)
            if not np.isfinite(work.totals.sum()):
                task.stop[0] = DIVERGED

        for thread in range(n_threads):
            begin(thread, began)
        while at_work:
            self.now, thread, t, n = heapq.heappop(at_work)
            end(thread, t, n)
            begin(thread, self.now)


ENGINE = Engine(fit, options=VirtualCluster, simulated=True)
