"""Grants: steps that the master gave to a worker, until their update has come back."""

from __future__ import annotations

from typing import NamedTuple

from dpsvi.base import Reading
from dpsvi.training.ledger import StepRange


class Grant(NamedTuple):
    """Steps that were given to a worker, and what it has read for them."""

    worker: int
    work: StepRange
    reading: Reading | None = None  # None until its rows were asked for and sent
    n_bytes: int = 0  # of the messages that asked for them and took them
    paused: float = 0.0  # seconds before that in which nobody was answered, and that do not count


class Grants:
    """The grants whose updates are still to come, by number."""

    def __init__(self):
        self._open: dict[int, Grant] = {}
        self._n = 0

    def __getitem__(self, number: int) -> Grant:
        return self._open[number]

    def open(self, worker: int, work: StepRange) -> int:
        """Note that `worker` was given `work`; returns the number of the grant."""
        self._n += 1
        self._open[self._n] = Grant(worker, work)
        return self._n

    def read(self, number: int, reading: Reading, n_bytes: int, paused: float) -> None:
        """Note what the worker has read, in messages of so many bytes."""
        self._open[number] = self._open[number]._replace(
            reading=reading, n_bytes=n_bytes, paused=paused
        )

    def close(self, number: int) -> Grant:
        """The update has come."""
        return self._open.pop(number)

    def drop(self, worker: int) -> None:
        """Expect nothing more of `worker`."""
        self._open = {n: grant for n, grant in self._open.items() if grant.worker != worker}

    def being_made(self) -> list[Grant]:
        """Those whose rows were sent: the worker makes their steps."""
        return [grant for grant in self._open.values() if grant.reading is not None]
