"""A program for ``mpiexec``: incremental passes in which rank 2 dies at its third turn.

``python mpi_incremental.py OUT``: the model goes to OUT.
"""

import os
import signal
import sys

import numpy as np

from dpsvi import DPSVIGaussianMixture
from dpsvi.cluster.nodes.worker import Worker


def points():
    """Three groups of 100."""
    return np.random.default_rng(0).normal(size=(300, 2)) + np.repeat(6 * np.eye(3)[:, :2], 100, 0)


def mixture(**more):
    return DPSVIGaussianMixture(
        3, incremental=True, max_iter=20, batch_size=16, random_state=0, **more
    )


def main():
    from mpi4py import MPI

    rank, turns, compute = MPI.COMM_WORLD.rank, [], Worker._compute

    def dying(self, grant, mine):
        turns.extend([grant] * self.job.state.sums_memory)
        if rank == 2 and len(turns) == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return compute(self, grant, mine)

    Worker._compute = dying
    fitted = mixture(engine="mpi").fit(points())
    if rank == 0:
        fitted.save(sys.argv[1])


if __name__ == "__main__":
    main()
