"""A fit on the ranks that mpiexec has started: its moves per second, from rank 0, as JSON.

``mpiexec -n 3 python -m experiments.hsa2c.over_mpi B MOVES PARAMETERS``; rank 0 is the master,
and parameters of the agent are JSON.
"""

from __future__ import annotations

import json
import sys

from dpsvi.files.launcher import launched_rank
from dpsvi.rl import ActorCritic


def main() -> None:
    """Fit, and print."""
    B, moves = map(int, sys.argv[1:3])
    more = json.loads(sys.argv[3])
    agent = ActorCritic(
        engine="mpi", local_steps=B, n_evaluations=4, n_episodes=1, random_state=0,
        **more,
    ).fit(moves)  # fmt: skip
    if launched_rank() == 0:
        # From the second of four looks on: workers have compiled then.
        first, last = agent.history_[1], agent.history_[-1]
        seconds = last["seconds"] - first["seconds"]
        print(json.dumps({"rate": (last["moves"] - first["moves"]) / seconds}))


if __name__ == "__main__":
    main()
