"""``python -m experiments.strategies.measured``: the fits of the table by two real processes.

:func:`measure` starts it by ``mpiexec``, on three ranks for strategies with a master, who does not
work, and on two for those without.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from dpsvi import strategies
from experiments import mpiexec
from experiments.strategies.problems import PROBLEMS
from experiments.strategies.settings import ENTRANTS
from experiments.strategies.trial import Trials

_SECONDS = 900


def measure(folder: Path, problem: str, length: int, rate: float, chosen: dict, seeds) -> dict:
    """What came of fits by two workers.

    Parameters
    ----------
    folder, problem, length, rate
        As `Trials` needs them.
    chosen : dict
        Settings by entrant.
    seeds : list of int

    Returns
    -------
    dict
        By entrant a list, by seed.
    """
    found = {}
    for topology, n_ranks in (("star", 3), ("peers", 2)):
        part = {
            name: settings for name, settings in chosen.items()
            if strategies.get(ENTRANTS[name][0]).topology == topology
        }  # fmt: skip
        if part:
            given = [problem, length, rate, json.dumps(part), json.dumps(seeds)]
            process = mpiexec.start(n_ranks, __name__, folder, *given)
            found |= mpiexec.finish(process, _SECONDS)
    return found


def main(argv) -> None:
    """Make the fits, on every rank; rank 0 prints them."""
    folder, problem, length, rate, chosen, seeds = argv
    trials = Trials(PROBLEMS[problem](Path(folder)), int(length), float(rate))
    found = {
        name: [trials.measured(seed, name, settings) for seed in json.loads(seeds)]
        for name, settings in json.loads(chosen).items()
    }
    from mpi4py import MPI

    if MPI.COMM_WORLD.Get_rank() == 0:
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
