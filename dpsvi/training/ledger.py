"""Passes over the data: which steps exist, who works on which, what is left to do.

A pass is a random permutation of the items, cut into steps of `batch_size`.  The permutation
follows from the seed, the number of the pass and the shard alone, so that every rank can make it
and a checkpoint needs to hold no more than the steps that are not done.
"""

from __future__ import annotations

import math
from collections import deque
from typing import NamedTuple

import numpy as np


class StepRange(NamedTuple):
    """Consecutive steps ``[first, last)`` of one pass over one shard, given to one worker."""

    epoch: int
    shard: int
    first: int
    last: int
    clock: int  # number of the first of them in the schedule

    @property
    def n_steps(self) -> int:
        """How many steps these are."""
        return self.last - self.first


class Ledger:
    """The ledger of a fit: every step is handed out once, and again only if it was not done.

    Parameters
    ----------
    n_items, batch_size, n_passes : int
    seed : int or None
        Of the permutations; None: items come in their order.
    n_shards : int
        1: every worker draws from all items.  More: worker i draws from shard ``i % n_shards``,
        the items ``shard, shard + n_shards, ...``, and from another one only when nobody owns it.
        No two workers own one shard while there are shards for all.
    clock : int
        Number of the first step in the schedule.
    """

    def __init__(self, n_items, batch_size, n_passes, seed, n_shards=1, clock=0):
        self.n_items, self.batch_size, self.n_passes = n_items, batch_size, n_passes
        self.seed, self.n_shards = seed, n_shards
        self.n_done = 0  # steps
        self.clock = clock
        self._steps = [
            math.ceil(len(range(shard, n_items, n_shards)) / batch_size)
            for shard in range(n_shards)
        ]
        self._next = [(0, 0)] * n_shards  # first step of each shard never handed out
        self._again = [deque() for _ in range(n_shards)]  # (epoch, first, last) given back
        self._held: dict[int, list[StepRange]] = {}
        self._order: dict[tuple, np.ndarray] = {}
        self._shard_of: dict[int, int] = {}  # of the workers that have been there

    @property
    def steps_a_pass(self) -> int:
        """Steps of one pass over all shards."""
        return sum(self._steps)

    def steps_of(self, shard: int) -> int:
        """Steps of one pass over one shard."""
        return self._steps[shard]

    @property
    def n_left(self) -> int:
        """Steps of all passes that are not done."""
        return max(0, self.n_passes * self.steps_a_pass - self.n_done)

    @property
    def finished(self) -> bool:
        """Whether every step of every pass is done."""
        return self.n_left == 0

    def grant(self, worker: int, most: int, owners=()) -> StepRange | None:
        """Up to `most` consecutive steps for `worker`; None when there is nothing for it now.

        `owners` are the workers at work: the shard of an absent one is open to all.
        """
        for shard in self._shards_of(worker, owners):
            work = self._take(shard, most)
            if work is not None:
                self._held.setdefault(worker, []).append(work)
                self.clock += work.n_steps
                return work
        return None

    def done(self, worker: int, work: StepRange, n_steps: int | None = None) -> None:
        """Book the first `n_steps` of `work`, all by default, and take back the rest."""
        n_steps = work.n_steps if n_steps is None else n_steps
        self._held[worker].remove(work)
        self.n_done += n_steps
        self._return(work._replace(first=work.first + n_steps))

    def drop(self, worker: int) -> int:
        """Take back all that `worker` holds; returns the number of steps."""
        works = self._held.pop(worker, [])
        for work in works:
            self._return(work)
        return sum(work.n_steps for work in works)

    def items(self, work: StepRange) -> np.ndarray:
        """Item numbers of `work` in the order of its steps, int32."""
        key = work.epoch, work.shard
        if key not in self._order:
            for old in [k for k in self._order if k[1] == work.shard and k[0] < work.epoch - 1]:
                del self._order[old]
            mine = np.arange(work.shard, self.n_items, self.n_shards, dtype=np.int32)
            if self.seed is not None:
                seed = [self.seed, work.epoch, work.shard]
                mine = np.random.default_rng(seed).permutation(mine)
            self._order[key] = mine
        return self._order[key][work.first * self.batch_size : work.last * self.batch_size]

    def sizes(self, work: StepRange) -> np.ndarray:
        """Items of every step of `work`."""
        n_items = len(range(work.shard, self.n_items, self.n_shards))
        starts = np.arange(work.first, work.last) * self.batch_size
        return np.minimum(self.batch_size, n_items - starts)

    def position(self) -> dict:
        """What is done, as JSON can hold it; steps in somebody's hands count as not done."""
        open_ = [list(ranges) for ranges in self._again]
        for works in self._held.values():
            for work in works:
                open_[work.shard].append((work.epoch, work.first, work.last))
        held = sum(work.n_steps for works in self._held.values() for work in works)
        return {
            "seed": self.seed, "n_shards": self.n_shards, "n_done": self.n_done,
            "clock": self.clock - held, "next": [list(place) for place in self._next],
            "again": [sorted(list(r) for r in ranges) for ranges in open_],
        }  # fmt: skip

    @classmethod
    def resume(cls, n_items, batch_size, n_passes, position: dict) -> Ledger:
        """A ledger that goes on from `position`."""
        n_shards = position["n_shards"]
        self = cls(n_items, batch_size, n_passes, position["seed"], n_shards, position["clock"])
        self.n_done = position["n_done"]
        self._next = [tuple(place) for place in position["next"]]
        self._again = [deque(tuple(r) for r in ranges) for ranges in position["again"]]
        return self

    def _shards_of(self, worker, owners):
        self._assign(sorted({worker, *owners} - self._shard_of.keys()))
        mine, owned = self._shard_of[worker], {self._shard_of[owner] for owner in owners}
        return [mine, *(s for s in range(self.n_shards) if s != mine and s not in owned)]

    def _assign(self, workers):
        """Give each worker a shard: its number modulo shards, or the next one that is free."""
        free = set(range(self.n_shards)) - set(self._shard_of.values())
        for worker in workers:
            usual = worker % self.n_shards
            turns = [(usual + i) % self.n_shards for i in range(self.n_shards)]
            self._shard_of[worker] = next((shard for shard in turns if shard in free), usual)
            free.discard(self._shard_of[worker])

    def _take(self, shard, most):
        if self._again[shard]:
            epoch, first, end = self._again[shard].popleft()
            last = min(end, first + most)
            if last < end:
                self._again[shard].appendleft((epoch, last, end))
        else:
            epoch, first = self._next[shard]
            if epoch >= self.n_passes or not self._steps[shard]:
                return None
            last = min(self._steps[shard], first + most)
            end_of_pass = last == self._steps[shard]
            self._next[shard] = (epoch + 1, 0) if end_of_pass else (epoch, last)
        return StepRange(epoch, shard, first, last, self.clock)

    def _return(self, work):
        if work.n_steps:
            self._again[work.shard].append((work.epoch, work.first, work.last))
            self.clock -= work.n_steps


class Cuts:
    """Step numbers, counted over passes, after which something happens `every` passes."""

    def __init__(self, steps_a_pass: int, every: float):
        self.steps_a_pass = steps_a_pass
        n = max(1, round(min(1.0 / every, steps_a_pass))) if every < 1 else 1
        self._within = sorted({round(steps_a_pass * (i + 1) / n) for i in range(n)} - {0})

    def after(self, step: int) -> int:
        """The first cut above `step`."""
        epoch, within = divmod(step, self.steps_a_pass)
        return epoch * self.steps_a_pass + next(c for c in self._within if c > within)

    def crossed(self, before: int, now: int) -> bool:
        """Whether a cut lies above step `before` and not above step `now`."""
        return self.after(before) <= now
