"""Virtual time: a heap of events, and threads that are not there.

A local step of a thread reads the parameters when it begins and adds to them when it ends, so that
p threads do not see the p - 1 steps that are being made; each addition to a row is lost with the
probability that was measured.

A node that fails does so between two events; events that were to follow from it do not happen.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable
from itertools import count

import numpy as np

from dpsvi.errors import LostRankError
from dpsvi.training.job import Job
from dpsvi.training.loop import RUNNING
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
    gone : set of int
        Nodes that have failed, whether others know it or not.
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
        self.gone: set[int] = set()
        failures = [(second, node, "killed") for node, second in self.options.killed.items()]
        failures += [(second, node, "silent") for node, second in self.options.frozen.items()]
        self._failures = deque(sorted(failures))

    def clock(self) -> float:
        """The time it is."""
        return self.now

    def close(self) -> None:
        """Let go of all nodes, at the end.

        They know the clock and it knows them, so their parameters would stay in memory until the
        garbage collector looks for such circles, which it seldom does for few large arrays.
        The time it is stays, for progress displays.
        """
        now = self.now
        vars(self).clear()
        self.now = now

    def at(self, time: float, what, *arguments) -> None:
        """Call ``what(*arguments)`` at `time`."""
        heapq.heappush(self.events, (time, next(self._numbers), what, *arguments))

    def until(self, finished: Callable[[], bool]) -> None:
        """Let events happen until `finished`; signals are delivered between two of them."""
        with Deferred() as signals:  # an event is whole, a merge above all
            while not finished():
                if self._failures and self._failures[0][0] <= self.events[0][0]:
                    self._fail(*self._failures.popleft())
                else:
                    self.now, _, what, *arguments = heapq.heappop(self.events)
                    what(*arguments)
                signals.deliver()

    def lose(self, node: int, reason: str) -> None:
        """Let all others know that `node` is lost."""
        raise NotImplementedError

    def _fail(self, second, node, reason):
        """From now on `node` does nothing; the others learn it at once, or by its silence."""
        self.now = second
        if node in self.gone:
            return
        self.gone.add(node)
        if reason == "killed":
            self._know(node, reason)
        else:
            self.at(self.now + self.options.silent_seconds, self._know, node, reason)

    def _know(self, node, reason):
        if self.options.on_lost == "abort":
            raise LostRankError(f"rank {node} is lost: {reason}")
        self.lose(node, reason)

    def run_steps(self, task, n_steps: int) -> None:
        """Do steps [0, n_steps) on virtual threads: read at the beginning of each, add at its end.

        In the place of :func:`dpsvi.training.thread_pool.run`.
        """
        n_threads, loop = len(task.works), task.loop
        offsets = task.items.offsets
        slower = self.options.slowdown(n_threads, self.timing) * self.slower[self.computing]
        lost = min(1.0, self.timing.lost * (n_threads - 1))
        survives = (lambda n: self.rng.random(n) >= lost) if lost else None
        at_work: list[tuple] = []  # heap of (end, thread, step, rows it touched)

        def begin(thread):
            t = int(task.counter[0])
            if t >= n_steps or task.stop[0] != RUNNING:
                return
            task.counter[0] = t + 1
            batch, n = task.batch(t), loop.begin(task, thread, t)
            n_values = int((offsets[batch + 1] - offsets[batch]).sum())
            seconds = slower * self.timing.draw(self.rng, n_values)
            heapq.heappush(at_work, (self.now + seconds, thread, t, n))

        for thread in range(n_threads):
            begin(thread)
        while at_work:
            self.now, thread, t, n = heapq.heappop(at_work)
            loop.end(task, thread, t, n, survives)
            begin(thread)
