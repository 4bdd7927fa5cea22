"""A rank of a fit whose workers are slowed down: its moves per second, from rank 0, as JSON.

``mpiexec -n 3 python -m experiments.hsa2c.paced_rank SETTINGS MOVES``; rank 0 is the master, and
the settings are those of :mod:`experiments.hsa2c.paced`, as JSON.
"""

from __future__ import annotations

import json
import sys
import time

import dpsvi.cluster.nodes.worker as worker_module
from dpsvi import Cluster
from dpsvi.files.launcher import launched_rank
from dpsvi.rl import ActorCritic
from experiments.hsa2c import paced

run_segment = worker_module.run_segment


def slowly(run, task, state, schedule, order, sizes, clock, total) -> int:
    """The steps of a segment, which take as long as they would on a slow node."""
    began = time.perf_counter()
    done = run_segment(run, task, state, schedule, order, sizes, clock, total)
    ends = began + done * slowly.moves / paced.MOVES_A_SECOND
    time.sleep(max(0.0, ends - time.perf_counter()))
    return done


def main() -> None:
    """Fit, and print."""
    settings, moves = json.loads(sys.argv[1]), int(sys.argv[2])
    slowly.moves = settings["n_games"] * settings["n_moves"]
    worker_module.run_segment = slowly
    agent = ActorCritic(
        settings["environment"], engine="mpi", hidden=tuple(settings["hidden"]),
        n_games=settings["n_games"], n_moves=settings["n_moves"], local_steps=settings["B"],
        random_state=settings["seed"], n_evaluations=4, n_episodes=1,
        cluster=Cluster(strategy="momentum", strategy_options={"momentum": 0.0}),
    ).fit(moves)  # fmt: skip
    if launched_rank() == 0:
        print(json.dumps(paced.middle(agent)))


if __name__ == "__main__":
    main()
