"""Waiting for other ranks, which must make the same call, without burning a core."""

from __future__ import annotations

import logging
import time

from dpsvi.errors import LostRankError

log = logging.getLogger(__name__)

_LATE = 60.0  # seconds after which a rank says that it waits
_ALL_THERE = 30.0  # seconds for all ranks to begin a fit, once a signal has come


def wait(request, signals=None, late: str = "") -> None:
    """Wait for a request of MPI, and deliver signals.

    Parameters
    ----------
    request : mpi4py.MPI.Request
    signals : dpsvi.training.signals.Deferred or None
        Those that wait until all ranks are there, or for some seconds.
    late : str
        Who waits for whom: what a log says once, if that is long.

    Raises
    ------
    LostRankError
        A rank died before the fit began: nothing is lost yet, start again.
    """
    from mpi4py import MPI

    began = time.monotonic()
    try:
        while not request.Test():
            time.sleep(0.001)
            if signals is not None:
                signals.deliver_after(_ALL_THERE)
            if late and time.monotonic() - began > _LATE:
                log.warning("%s, since %.0f s; all ranks must make the same fits", late, _LATE)
                late = ""
    except MPI.Exception as error:
        raise LostRankError(f"a rank died before the fit began: {error}") from error


def barrier(comm) -> None:
    """Wait for all."""
    wait(comm.Ibarrier())


def all_gather(comm, mine, signals=None):
    """The same array of all ranks, one row each; `signals` are as in :func:`wait`."""
    import numpy as np

    rank, found = comm.Get_rank(), np.zeros((comm.Get_size(), *mine.shape), mine.dtype)
    # All others would say the same.
    late = f"rank {rank} waits for the other ranks" if rank == 0 else ""
    wait(comm.Iallgather(mine, found), signals, late)
    return found
