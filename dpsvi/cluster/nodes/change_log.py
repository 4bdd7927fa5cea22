"""What recent global steps have added to the rows of the master's parameters.

A decay of what a worker had read (:meth:`dpsvi.base.Parameters.retract`) must leave out what has
been added since: that is a sum of sparse changes, kept here back to the oldest reading in use.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from dpsvi.base import Reading
from dpsvi.cluster.nodes import kernels


class Change(NamedTuple):
    """What one global step, or a part of it, added to the rows."""

    touched: np.ndarray  # int32, (n,), ascending
    delta: np.ndarray  # real, (n, n_columns)
    totals: np.ndarray  # float64, (n_columns,)


class ChangeLog:
    """The changes of recent global steps, the oldest first.

    Attributes
    ----------
    clock : int
        Changes so far, forgotten ones included.
    step : list of Change
        Those that the present global step has made so far; they are the last ones.
    """

    def __init__(self):
        self._changes: deque[Change] = deque()
        self.clock, self.step = 0, []

    def __len__(self) -> int:
        return len(self._changes)

    def __iter__(self) -> Iterator[Change]:
        return iter(self._changes)

    def add(self, change: Change) -> None:
        """Note a part of the present global step."""
        self.step.append(change)
        self._append(change)

    def since(self, clock: int) -> list[Change]:
        """All changes after the first `clock` ones."""
        return list(self._changes)[len(self._changes) - (self.clock - clock) :]

    def end_step(self) -> None:
        """Let the parts of the present global step become one change."""
        step, self.step = self.step, []
        if len(step) > 1:
            for _ in step:
                self._changes.pop()
            self.clock -= len(step)
            self._append(total(step))

    def fold(self, scale: float, totals: np.ndarray, no_rows: np.ndarray) -> None:
        """The rows have been multiplied with `scale`, and their totals then changed by `totals`."""
        for change in self._changes:
            change.delta[...] *= change.delta.dtype.type(scale)
            change.totals[...] *= scale
        self._append(Change(np.zeros(0, np.int32), no_rows, totals))

    def forget(self, readings: Iterable[Reading]) -> None:
        """Drop what none of these readings, all that are in use, needs any more."""
        oldest = min((reading.clock for reading in readings), default=self.clock)
        while len(self._changes) > self.clock - oldest:
            self._changes.popleft()

    def _append(self, change):
        self._changes.append(change)
        self.clock += 1


def union(touched: list[np.ndarray]) -> np.ndarray:
    """The rows that are in any of these arrays, ascending."""
    return np.unique(np.concatenate(touched))


def total(changes: list[Change]) -> Change:
    """The sum of several changes, as a new one: of the rows that have changed on the whole."""
    touched = union([change.touched for change in changes])
    first = changes[0]
    delta = np.zeros((len(touched), first.delta.shape[1]), first.delta.dtype)
    for change in changes:
        places = np.searchsorted(touched, change.touched).astype(np.int32)
        kernels.add_scaled(delta, places, change.delta, 1.0)
    changed = delta.any(axis=1)
    if not changed.all():
        touched, delta = touched[changed], delta[changed]
    return Change(touched, delta, sum(change.totals for change in changes))
