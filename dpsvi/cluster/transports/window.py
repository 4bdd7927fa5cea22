"""The master's rows where ranks of its host read them, without a message.

A rank that may read the rows is noted here until it has done so, and the master merges nothing
meanwhile: everybody reads one version of all rows, as in a message.  Reading takes milliseconds; a
rank that is stopped in the middle of them holds up the others until it is taken for lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from dpsvi.cluster.transports.buffers import Buffer, Place
from dpsvi.cluster.transports.neighbours import Neighbours
from dpsvi.training.state import State

_ALIGN = 64


class Window:
    """Rows in shared memory, and who is reading them.

    Attributes
    ----------
    rows : real, (n_rows, n_columns)
    """

    def __init__(self, buffer: Buffer, shape, dtype, n_ranks: int, readers=()):
        self._buffer, self._readers, self._n_ranks = buffer, readers, n_ranks
        first = _first_row(n_ranks)
        n_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
        self._reading = buffer.bytes[: 8 * n_ranks].view(np.int64)
        self.rows = buffer.bytes[first : first + n_bytes].view(dtype).reshape(shape)

    @classmethod
    def like(cls, rows: np.ndarray, n_ranks: int, readers) -> Window:
        """A new one that holds `rows`."""
        buffer = Buffer.shared(_first_row(n_ranks) + rows.nbytes)
        window = cls(buffer, rows.shape, rows.dtype, n_ranks, readers)
        window.rows[...] = rows
        return window

    @classmethod
    def at(cls, place, shape, dtype, n_ranks: int) -> Window:
        """That of another process."""
        return cls(Buffer.of(Place(*place)), shape, dtype, n_ranks)

    @property
    def busy(self) -> bool:
        """Whether anybody is reading."""
        return bool(self._reading.any())

    def __contains__(self, rank: int) -> bool:
        return rank in self._readers

    def begin(self, rank: int) -> list[int]:
        """Allow `rank` to read; returns what it needs for that: itself, where the rows are."""
        self._reading[rank] = 1
        return [rank, self._n_ranks, *self._buffer.place]

    def end(self, rank: int) -> None:
        """`rank` has read, or never will."""
        self._reading[rank] = 0


@contextmanager
def opened(state: State, near: Neighbours | None, n_ranks: int) -> Iterator[Window | None]:
    """Keep the rows of `state` in a window while the block runs; None where nobody can see it."""
    if not near:
        yield None
        return
    shared = state.shared
    window = Window.like(shared.rows, n_ranks, near)
    state.shared = shared._replace(rows=window.rows)
    try:
        yield window
    finally:
        shared.rows[...] = window.rows
        state.shared = shared


def _first_row(n_ranks):
    return -(-8 * n_ranks // _ALIGN) * _ALIGN
