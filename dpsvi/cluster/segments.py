"""Message buffers that other processes of the same host read where they lie.

A buffer is anonymous memory with a file descriptor (``memfd``), which another process opens
through ``/proc``: nothing is copied, nothing has a name that a killed process could leave behind,
and a buffer is made when it is needed.  (A window of MPI has its size fixed by a collective call,
and is not usable once a rank has died.)
"""

from __future__ import annotations

import itertools
import mmap
import os
import secrets
import weakref
from typing import NamedTuple

import numpy as np

LEAST = 2**16  # bytes; shorter messages are copied, that costs nothing
_KEPT = 8  # mappings of each peer; a buffer in use stays whatever happens
_SECRET = 16  # bytes
_SERIALS = itertools.count(1)  # of all buffers that this process ever made


class Token(NamedTuple):
    """Where a buffer can be found; all integers, to be sent."""

    process: int
    descriptor: int
    file: int  # number of the file, for a descriptor may mean another one by now
    serial: int
    n_bytes: int


class Segments:
    """Buffers of this process, for others to read."""

    def __init__(self):
        self._tokens: dict[int, Token] = {}  # by address

    def allocate(self, n_bytes: int) -> np.ndarray:
        """A fresh buffer, uint8; only a long one is worth sharing."""
        if n_bytes < LEAST:
            return np.empty(n_bytes, np.uint8)
        descriptor = os.memfd_create("dpsvi")
        try:
            os.ftruncate(descriptor, n_bytes)
            buffer = np.frombuffer(mmap.mmap(descriptor, n_bytes), np.uint8)
        except BaseException:
            os.close(descriptor)
            raise
        file = os.fstat(descriptor).st_ino
        token = Token(os.getpid(), descriptor, file, next(_SERIALS), n_bytes)
        self._tokens[_address(buffer)] = token
        weakref.finalize(buffer, self._close, _address(buffer), descriptor)
        return buffer

    def token(self, buffer: np.ndarray) -> Token | None:
        """How others find `buffer`; None for one that is not shared."""
        return self._tokens.get(_address(buffer))

    def _close(self, address, descriptor):
        self._tokens.pop(address, None)
        os.close(descriptor)


class Mapped:
    """Buffers of other processes of this host."""

    def __init__(self):
        self._kept: dict[tuple[int, int], np.ndarray] = {}

    def open(self, token: Token) -> np.ndarray:
        """The buffer of `token`, read where it lies.

        Raises
        ------
        FileNotFoundError
            The process has ended, or has freed the buffer.
        OSError
            It does not let itself be looked into.
        """
        key = token.process, token.serial
        buffer = self._kept.pop(key, None)
        if buffer is None:
            descriptor = os.open(f"/proc/{token.process}/fd/{token.descriptor}", os.O_RDWR)
            try:
                if os.fstat(descriptor).st_ino != token.file:
                    raise FileNotFoundError(f"process {token.process} has freed the buffer")
                buffer = np.frombuffer(mmap.mmap(descriptor, token.n_bytes), np.uint8)
            finally:
                os.close(descriptor)
            mine = [other for other in self._kept if other[0] == token.process]
            for old in mine[: max(0, len(mine) - _KEPT + 1)]:
                del self._kept[old]
        self._kept[key] = buffer  # the last used is the last to go
        return buffer


def near(comm) -> frozenset[int]:
    """Ranks that can read this process's segments: each of rank 0 and the others has tried.

    Collective.
    """
    mine = Segments()
    if hasattr(os, "memfd_create"):
        sample = mine.allocate(LEAST)
        sample[:_SECRET] = np.frombuffer(secrets.token_bytes(_SECRET), np.uint8)
        offer = _system(), mine.token(sample), sample[:_SECRET].tobytes()
    else:
        offer = None, None, b""
    offers = comm.allgather(offer)  # small control data, once
    rank = comm.Get_rank()
    peers = range(1, len(offers)) if rank == 0 else [0]
    readable = [peer for peer in peers if _readable(offers[peer], offer[0])]
    return frozenset(r for r, found in enumerate(comm.allgather(readable)) if rank in found)


def _readable(offer, system) -> bool:
    their_system, token, secret = offer
    if system is None or their_system != system:
        return False
    try:
        return Mapped().open(token)[:_SECRET].tobytes() == secret
    except OSError:
        return False


def _system() -> tuple[str, ...] | None:
    """Equal for two processes that find each other in ``/proc`` and are one host to MPI."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read(), os.readlink("/proc/self/ns/pid"), os.readlink("/proc/self/ns/net")
    except OSError:
        return None


def _address(buffer: np.ndarray) -> int:
    return buffer.ctypes.data
