"""A program for ``mpiexec``: rank 0 hears Ctrl-C between two calls of the engine.

``python mpi_interrupted.py OUT``: each rank writes its exit code, 0 where the fit went on, to
OUT-RANK.
"""

import signal
import sys
from pathlib import Path

from mpi_fit import problem

from dpsvi.families.topics.kept import KeptPasses


def main(out):
    from mpi4py import MPI

    rank, part, calls = MPI.COMM_WORLD.Get_rank(), KeptPasses._part, []

    def interrupted(self, place):
        calls.append(place)
        if rank == 0 and len(calls) == 1:
            signal.raise_signal(signal.SIGINT)
        return part(self, place)

    KeptPasses._part = interrupted
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent may ignore it
    X, lda = problem("collapsed")
    lda.set_params(engine="mpi", keep_responsibilities=True, max_iter=4)
    try:
        lda.fit(X)
    except KeyboardInterrupt:
        assert len(lda.components_) == 5
    Path(f"{out}-{rank}").write_text(str(lda.interrupted_))


if __name__ == "__main__":
    main(*sys.argv[1:])
