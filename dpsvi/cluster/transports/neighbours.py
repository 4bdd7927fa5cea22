"""The other ranks of this host: they can map our memory, and be woken instead of polling.

Linux only; elsewhere nobody has neighbours, and all messages go through MPI.
"""

from __future__ import annotations

import logging
import secrets
import select
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np

from dpsvi.cluster.transports.buffers import Buffer, Place

log = logging.getLogger(__name__)
_TOKEN = slice(0, 8)


class Neighbours:
    """What neighbours know of each other.

    Parameters
    ----------
    rank : int
    all_gather : callable
        Gives an int64 array of each rank to all of them: ``all_gather((n,)) -> (size, n)``.

    Attributes
    ----------
    processes : dict of int
        Process numbers of the other ranks of this host.
    everybody : bool
        Whether all ranks are on this host.
    """

    def __init__(self, rank: int, all_gather):
        mine = np.zeros(5, np.int64)
        if sys.platform == "linux":
            try:
                mine[:] = self._open()
            except OSError as error:  # forbidden, in some containers
                log.info("no memory is shared with ranks of this host: %s", error)
        tickets = all_gather(mine)
        self.processes: dict[int, int] = {}
        self._addresses = {}  # of their wake-up sockets
        for other, (*numbers, token, its_network) in enumerate(tickets.tolist()):
            # Hosts made of network namespaces could share memory, but are there to behave as if
            # they could not.
            near = mine[-1] and its_network == mine[-1] and other != rank
            if near and _reaches(Place(*numbers), token):
                self.processes[other] = numbers[0]
                self._addresses[other] = _address(numbers[0], token)
        self.everybody = len(self._addresses) == len(tickets) - 1

    def _open(self) -> list[int]:
        """Make memory and a wake-up socket; returns what others need to find them."""
        token = secrets.randbits(62)
        self._memory = Buffer.shared(4096)
        self._memory.bytes[_TOKEN].view(np.int64)[0] = token
        place, network = self._memory.place, Path("/proc/self/ns/net").stat().st_ino
        self._wake_up = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            # Polling would take all numbers, but round pauses up to milliseconds.
            select.select([self._wake_up], [], [], 0)
        except ValueError as error:
            number = self._wake_up.fileno()
            self._wake_up.close()
            raise OSError(f"so many files are open that a socket got number {number}") from error
        self._own = _address(place.process, token)
        self._wake_up.bind(self._own)
        self._wake_up.setblocking(False)
        return [*place, token, network]

    def __contains__(self, rank: int) -> bool:
        return rank in self._addresses

    def __len__(self) -> int:
        return len(self._addresses)

    def notify(self, rank: int | None = None) -> None:
        """Wake `rank`, or another thread of this process, where it waits."""
        address = self._own if rank is None else self._addresses[rank]
        # It has ended, or many notices wait to be read: then it is awake.
        with suppress(OSError):
            self._wake_up.sendto(b"", address)

    def wait(self, seconds: float) -> None:
        """Sleep for so long, or until somebody notifies this rank."""
        if not self._addresses:
            time.sleep(seconds)
            return
        if select.select([self._wake_up], [], [], seconds)[0]:
            with suppress(BlockingIOError):
                while True:
                    self._wake_up.recv(1)


def _address(process, token) -> bytes:
    # An abstract name, no file: it ends with the process, and only its network namespace sees it.
    return f"\0dpsvi-{process}-{token}".encode()


def _reaches(place, token) -> bool:
    """Whether the memory at `place` can be mapped, and is what its owner says."""
    try:
        return int(Buffer.of(place).bytes[_TOKEN].view(np.int64)[0]) == token
    except (OSError, ValueError):  # another host, where that process number means another one
        return False
