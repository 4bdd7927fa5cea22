"""A fit for so many seconds of processor time, alone or on the ranks that mpiexec has started.

``python -m experiments.hsa2c.timed SETTINGS``, as JSON of what :mod:`experiments.hsa2c.seconds`
asks for; rank 0 prints what came of it, as JSON.  Processor time is that of all threads and ranks.
A short fit tells how many moves a second are made, after one that compiles; then a fit of as many
moves as the seconds pay for is made, so that its learning rate falls to its end within them.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

from dpsvi import Cluster
from dpsvi.files.launcher import launched_rank, launched_size
from dpsvi.rl import ActorCritic
from experiments.hsa2c import stable_baselines
from experiments.hsa2c.table import ENTRANTS, EPISODES, HIDDEN, games

PILOT = 40_000  # moves of the fit that is timed first
PEERS_PILOT = 4_000


def main() -> None:
    """Fit, and print."""
    settings = json.loads(sys.argv[1])
    result = (peer if settings["entrant"] == stable_baselines.NAME else ours)(settings)
    if launched_rank() == 0:
        print(json.dumps(result))


def ours(settings: dict) -> dict:
    """Of an entrant of our own."""
    more, options = ENTRANTS[settings["entrant"]]
    workers = settings["workers"]
    agent = ActorCritic(
        settings["environment"], hidden=HIDDEN[settings["environment"]],
        learning_rate=settings["learning_rate"], n_evaluations=1, n_episodes=1,
        random_state=settings["seed"], **{**more, "n_games": games(more, workers)},
    )  # fmt: skip
    if options is not None:
        agent.set_params(engine="mpi", cluster=Cluster(**options(workers)))
    spent = fit_for(settings["seconds"], PILOT, agent.fit)
    score = agent.evaluate(EPISODES, random_state=settings["seed"]).mean()
    return {"score": float(score), "moves": agent.n_moves_, **spent}


def peer(settings: dict) -> dict:
    """Of stable-baselines3."""
    model = None

    def fit(moves):
        nonlocal model
        model = stable_baselines.new(settings).learn(moves)

    spent = fit_for(settings["seconds"], PEERS_PILOT, fit)
    return {**stable_baselines.result(model, settings), **spent}


def fit_for(seconds: float, pilot: int, fit: Callable[[int], object]) -> dict:
    """``fit(moves)`` for about so many processor seconds; what it really took of both clocks."""
    fit(1_000)  # compiles
    taken = clocked(lambda: fit(pilot))["processor"]
    return clocked(lambda: fit(max(1, int(pilot * seconds / taken))))


def clocked(call: Callable[[], object]) -> dict:
    """Processor seconds of all ranks, and seconds, that a call takes."""
    began, then = time.perf_counter(), time.process_time()
    call()
    taken, processor = time.perf_counter() - began, time.process_time() - then
    if launched_size() > 1:
        from mpi4py import MPI

        processor = MPI.COMM_WORLD.allreduce(processor)
    return {"processor": processor, "seconds": taken}


if __name__ == "__main__":
    main()
