"""A program for ``mpiexec``: an actor-critic on CartPole.

``python mpi_actor_critic.py OUT MOVES PARAMETERS CLUSTER``, the last two JSON dicts.
"""

import json
import sys

import numpy as np

from dpsvi import Cluster
from dpsvi.rl import ActorCritic


def main(out, moves, params, cluster):
    from mpi4py import MPI

    options = json.loads(cluster)
    agent = ActorCritic(
        engine="mpi", random_state=0, cluster=Cluster(**options) if options else None,
        **json.loads(params),
    ).fit(int(moves))  # fmt: skip
    exchanges = agent.exchanges_.get("exchanges", [])
    facts = {
        "parameters": agent.parameters_.tolist(), "moves": agent.n_moves_,
        "scores": [entry["score"] for entry in agent.history_],
        "final": float(agent.evaluate(20).mean()),
        "workers": np.unique([e.worker for e in exchanges]).tolist(),
        "n_exchanges": len(exchanges), "order": agent.exchanges_.get("order"),
    }  # fmt: skip
    with open(f"{out}-{MPI.COMM_WORLD.Get_rank()}.json", "w") as file:
        json.dump(facts, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
