"""Virtual time: a heap of events, and threads that are not there.

A local step of a thread reads the parameters when it begins and adds to them when it ends, so that
p threads do not see the p - 1 steps that are being made; each addition to a row is lost with the
probability that was measured.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from itertools import count

import numpy as np

from dpsvi.cluster.nodes.as_read import Segment, factors, read_rows, to_change, write_rows
from dpsvi.training.job import Job
from dpsvi.training.loop import DIVERGED, RUNNING, add_rows
from dpsvi.training.signals import Deferred


class VirtualTime:
    """Events in the order of virtual time.

    Parameters
    ----------
    job : Job
        Its `cluster` is a :class:`~dpsvi.cluster.virtual.VirtualCluster`.
    timing : Timing
    nodes : iterable of int
        Those that compute.

    Attributes
    ----------
    now : float
        Seconds.
    computing : int
        The node whose steps :meth:`run_steps` makes.
    """

    def __init__(self, job: Job, timing, nodes: Iterable[int]):
        self.job, self.options, self.timing = job, job.cluster, timing
        self.now = 0.0
        self.rng = np.random.default_rng(self.options.seed)
        nodes = list(nodes)
        share, factor = self.options.stragglers
        slow = self.rng.permutation(len(nodes))[: round(share * len(nodes))]
        self.slower = {node: factor if i in slow else 1.0 for i, node in enumerate(nodes)}
        self.computing = nodes[0]
        self.events: list[tuple] = []  # heap of (time, number, what to do, with what)
        self._numbers = count()

    def clock(self) -> float:
        """The time it is."""
        return self.now

    def at(self, time: float, what, *arguments) -> None:
        """Call ``what(*arguments)`` at `time`."""
        heapq.heappush(self.events, (time, next(self._numbers), what, *arguments))

    def until(self, finished: Callable[[], bool]) -> None:
        """Let events happen until `finished`; signals are heard between two of them."""
        with Deferred() as signals:  # an event is whole, a merge above all
            while not finished():
                self.now, _, what, *arguments = heapq.heappop(self.events)
                what(*arguments)
                signals.deliver()

    def run_steps(self, task, n_steps: int) -> None:
        """Do steps [0, n_steps) on virtual threads: read at the beginning of each, add at its end.

        In the place of :func:`dpsvi.training.thread_pool.run`.
        """
        n_threads, shared, items = len(task.works), task.shared, task.items
        slower = self.options.slowdown(n_threads, self.timing) * self.slower[self.computing]
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
