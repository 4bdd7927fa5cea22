"""A program for ``mpiexec``: makes one fit of `mpi_fit` after the other.

Rank 0 reads the arguments of each fit from stdin, one JSON list a line, and says when all ranks are
through; null ends them.  Starting ranks costs more than most of these fits.
"""

import json
import sys
import time

import mpi_fit
from mpi4py import MPI


def tell(comm, line):
    """The same line on all ranks; waiting for it burns no processor time."""
    if comm.Get_rank():
        while not comm.iprobe(source=0):
            time.sleep(0.02)
        return comm.recv(source=0)
    for rank in range(1, comm.Get_size()):
        comm.send(line, rank)
    return line


def main():
    comm = MPI.COMM_WORLD.Dup()
    while line := tell(comm, sys.stdin.readline() if comm.Get_rank() == 0 else ""):
        if (arguments := json.loads(line)) is None:
            break
        mpi_fit.main(*arguments)
        comm.Barrier()
        if comm.Get_rank() == 0:
            print("done", flush=True)


if __name__ == "__main__":
    main()
