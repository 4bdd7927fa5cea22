"""A program for ``mpiexec``: fits a member of the family; rank 0 writes what came of it.

``python family_fit.py NAME OUT``
"""

import json
import sys

import members
import numpy as np


def main(name, out):
    member = members.get(name)
    data = member.data(np.random.default_rng(0), 400)
    estimator = member.estimator(engine="mpi").fit(**data)
    from mpi4py import MPI

    if MPI.COMM_WORLD.Get_rank() == 0:
        facts = {
            "lower_bound": estimator.lower_bound_, "items": estimator._state.items,
            "size": MPI.COMM_WORLD.Get_size(),
        }  # fmt: skip
        with open(out, "w") as file:
            json.dump(facts, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
