"""Fits for so many seconds of processor time, alone or on the ranks that mpiexec has started.

``python -m experiments.hsa2c.timed SETTINGS``, as JSON of what :mod:`experiments.hsa2c.seconds`
asks for; rank 0 prints what came of it, as JSON.  Processor time is that of all threads and ranks.
Longer and longer fits, after one that compiles, tell how many moves a second are made, until one
takes half of the seconds; then fits of as many moves as the seconds pay for are made, so that
learning rates fall to their end within them.  BLAS has one thread, since its threads spin where
ranks share cores.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

from threadpoolctl import threadpool_limits

from dpsvi import Cluster
from dpsvi.files.launcher import launched_rank, launched_size
from dpsvi.rl import ActorCritic
from experiments.hsa2c import stable_baselines
from experiments.hsa2c.table import ENTRANTS, EPISODES, HIDDEN, games

PILOT = 40_000  # moves of the first fit that is timed
PEERS_PILOT = 4_000
PILOTS_SEED = 100


def main() -> None:
    """Fit, and print."""
    settings = json.loads(sys.argv[1])
    with threadpool_limits(1, "blas"):
        if settings["entrant"] not in ENTRANTS:
            result = fits(settings, stable_baselines.new, stable_baselines.result, PEERS_PILOT)
        else:
            result = fits(settings, ours, score, PILOT)
    if launched_rank() == 0:
        print(json.dumps(result))


def fits(settings: dict, new: Callable, score: Callable, pilot: int) -> dict:
    """What came of the fit of each seed, of an agent that ``new(settings)`` makes."""

    def fitted(seed: int, moves: int) -> tuple[object, dict]:
        agent = new({**settings, "seed": seed})
        learn = agent.fit if isinstance(agent, ActorCritic) else agent.learn
        return agent, clocked(lambda: learn(moves))

    fitted(PILOTS_SEED, pilot)  # compiles, on every rank
    moves, taken, found = pilot, 0.0, []
    while taken < settings["seconds"] / 2:
        taken = fitted(PILOTS_SEED, moves)[1]["processor"]
        moves = int(moves * settings["seconds"] / taken)
    for seed in range(settings["seeds"]):
        agent, spent = fitted(seed, moves)
        found.append({**score(agent, {**settings, "seed": seed}), **spent})
    return {"fits": found}


def ours(settings: dict) -> ActorCritic:
    """An agent of an entrant of our own."""
    more, options = ENTRANTS[settings["entrant"]]
    workers = settings["workers"]
    agent = ActorCritic(
        settings["environment"], hidden=HIDDEN[settings["environment"]],
        learning_rate=settings["learning_rate"], n_evaluations=1, n_episodes=1,
        random_state=settings["seed"], **{**more, "n_games": games(more, workers)},
    )  # fmt: skip
    if options is not None:
        agent.set_params(engine="mpi", cluster=Cluster(**options(workers)))
    return agent


def score(agent: ActorCritic, settings: dict) -> dict:
    """Mean return of the last parameters, moves."""
    returns = agent.evaluate(EPISODES, random_state=settings["seed"])
    return {"score": float(returns.mean()), "moves": agent.n_moves_}


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
