"""Memory that messages lie in, of this process alone or shared with others on the same host.

A message to another process of this host need not move: it is written once, in memory that both
have mapped, and read where it lies.  Only its place goes through MPI, which also orders the two.
The memory is anonymous (``memfd_create``): it has no name to be left over, counts against no file
system, and is gone when the last process that maps it ends, however that ends.
"""

from __future__ import annotations

import mmap
import os
import weakref
from typing import NamedTuple

import numpy as np

_LENT = slice(0, 8)  # of the bytes: an int64, 1 while a reader has them


class Place(NamedTuple):
    """Where other processes find a shared buffer."""

    process: int
    fd: int
    inode: int  # what the descriptor stood for: numbers of descriptors are used again


class Buffer:
    """Bytes for one message.

    Attributes
    ----------
    bytes : uint8 array
    place : Place or None
        None when no other process can map them.
    foreign : bool
        They belong to another process, which wants them back.
    """

    __slots__ = ("__weakref__", "bytes", "foreign", "place")

    def __init__(self, data: np.ndarray, place: Place | None = None, foreign: bool = False):
        self.bytes, self.place, self.foreign = data, place, foreign

    @classmethod
    def private(cls, n_bytes: int) -> Buffer:
        """Bytes that only this process can see."""
        return cls(np.empty(n_bytes, np.uint8))

    @classmethod
    def shared(cls, n_bytes: int) -> Buffer:
        """Bytes that other processes of this user on this host can map."""
        fd = os.memfd_create("dpsvi")
        try:
            os.ftruncate(fd, n_bytes)
            place = Place(os.getpid(), fd, os.fstat(fd).st_ino)
            buffer = cls(_map(fd, n_bytes), place)
        except BaseException:
            os.close(fd)
            raise
        weakref.finalize(buffer, os.close, fd)
        return buffer

    @classmethod
    def of(cls, place: Place) -> Buffer:
        """The bytes that another process has at `place`; raises OSError when they are gone."""
        fd = os.open(f"/proc/{place.process}/fd/{place.fd}", os.O_RDWR | os.O_CLOEXEC)
        try:
            found = os.fstat(fd)
            if found.st_ino != place.inode:
                raise OSError(f"process {place.process} has dropped this memory")
            return cls(_map(fd, found.st_size), place, foreign=True)
        finally:
            os.close(fd)

    @property
    def lent(self) -> bool:
        """Whether a reader still has them; both sides see and set it.

        The reader's last look at the bytes and this note are thousands of instructions apart,
        further than any processor reorders.
        """
        return bool(self.bytes[_LENT].view(np.int64)[0])

    @lent.setter
    def lent(self, value: bool) -> None:
        self.bytes[_LENT].view(np.int64)[0] = value


def _map(fd, n_bytes) -> np.ndarray:
    return np.frombuffer(mmap.mmap(fd, n_bytes), np.uint8)
