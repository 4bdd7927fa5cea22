"""A program for ``mpiexec``: its ranks run one program after the other.

Rank 0 reads from stdin which one, with which faults and arguments (see ``faults``), one JSON list a
line, and says when all ranks are through; null ends them.  Starting ranks costs more than most of
the fits that they make.
"""

import json
import sys
import time

import faults
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
        if (told := json.loads(line)) is None:
            break
        if code := faults.run(*told):
            sys.exit(f"the program ended with {code}")
        comm.Barrier()
        if comm.Get_rank() == 0:
            print("done", flush=True)


if __name__ == "__main__":
    main()
