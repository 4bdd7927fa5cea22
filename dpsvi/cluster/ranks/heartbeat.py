"""Heartbeats: which ranks are silent.  No MPI notices a stopped process or a cut link.

Every rank sends beats to rank 0, and rank 0 to every rank, from a thread of its own on a
communicator of its own.  Beats are tiny and never waited for; a rank that has not taken the last
one gets no more.
"""

from __future__ import annotations

import logging
import threading
import time

import numpy as np

log = logging.getLogger(__name__)

SILENT = "no heartbeat"
_BEAT_SECONDS = 1.0
_POLL_SECONDS = 0.2


class Heartbeat(threading.Thread):
    """Beats until :meth:`stop`.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm
        Nobody else may use it.  Errors must be returned, not fatal.
    limit : float
        Seconds of silence after which a rank counts as lost.
    """

    def __init__(self, comm, limit: float):
        super().__init__(name="dpsvi-heartbeat", daemon=True)
        self.comm, self.limit = comm, limit
        rank, size = comm.Get_rank(), comm.Get_size()
        self.peers = list(range(1, size)) if rank == 0 else [0]
        now = time.monotonic()
        self.last_beat = dict.fromkeys(self.peers, now)
        self._looked = now
        self._ended = threading.Event()
        self._beat = np.zeros(1, np.uint8)
        self._waiting: dict[int, object] = {}

    def silent(self) -> dict[int, str]:
        """Ranks silent for too long, and for how long."""
        now = time.monotonic()
        # A process that slept itself, stopped or starved, must receive before it reports others.
        if now - self._looked > self.limit / 4:
            return {}
        return {
            rank: f"{SILENT} for {now - last:.0f} s"
            for rank, last in dict(self.last_beat).items()
            if now - last > self.limit
        }

    def forget(self, rank: int) -> None:
        """Send nothing more to `rank` and expect nothing of it."""
        self.last_beat.pop(rank, None)

    def stop(self) -> None:
        """End the thread."""
        self._ended.set()
        if self.ident is not None:
            self.join()

    def run(self) -> None:
        """Send beats and receive those of others."""
        last = 0.0
        while not self._ended.wait(_POLL_SECONDS):
            now = time.monotonic()
            if now - self._looked > self.limit / 4:  # was stopped: give everybody time again
                self.last_beat = dict.fromkeys(self.last_beat, now)
            self._guarded(self._receive)
            if now - last >= _BEAT_SECONDS:
                last = now
                self._guarded(self._send)
            self._looked = time.monotonic()

    def _receive(self):
        from mpi4py import MPI

        status, buffer = MPI.Status(), np.empty(1, np.uint8)
        while (found := self.comm.Improbe(MPI.ANY_SOURCE, MPI.ANY_TAG, status)) is not None:
            found.Recv(buffer)
            if status.Get_source() in self.last_beat:
                self.last_beat[status.Get_source()] = time.monotonic()

    def _send(self):
        for rank in dict(self.last_beat):
            request = self._waiting.get(rank)
            if request is None or request.Test():
                self._waiting[rank] = self.comm.Isend(self._beat, rank)

    def _guarded(self, call):
        """A dead rank is the channel's to report; here it is only no reason to stop."""
        from mpi4py import MPI

        from dpsvi.cluster.transports.failures import failed_ranks

        try:
            call()
        except MPI.Exception:
            for rank in failed_ranks(self.comm) or ():
                self.last_beat.pop(rank, None)
