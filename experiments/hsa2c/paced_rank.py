"""A rank of fits whose workers are slowed down; rank 0, the master, prints what it measured.

``mpiexec -n 3 python -m experiments.hsa2c.paced_rank SETTINGS``.  The settings are those of
:mod:`experiments.hsa2c.paced`, as JSON, with the exchanges of a worker for each B in the place of
B, and the number of repeats.
"""

from __future__ import annotations

import json
import sys
import time
from functools import partial
from pathlib import Path

import dpsvi.cluster.nodes.worker as worker_module
from dpsvi import Cluster
from dpsvi.files.launcher import launched_rank
from dpsvi.rl import ActorCritic
from dpsvi.training.driver import run_segment
from experiments.hsa2c import figure5, paced


def slowly(seconds: float, *segment) -> int:
    """The steps of a segment, and then sleep until each has taken so many seconds."""
    began = time.perf_counter()
    done = run_segment(*segment)
    time.sleep(max(0.0, began + done * seconds - time.perf_counter()))
    return done


def crossed_so_far() -> int:
    """Bytes that have come into this host and gone out, headers too, but for its own loop."""
    devices = (line.split(":") for line in Path("/proc/net/dev").read_text().splitlines()[2:])
    return sum(
        int(words.split()[0]) + int(words.split()[8])
        for name, words in devices
        if name.strip() != "lo"
    )


def fit(settings: dict) -> dict:
    """One fit: moves per second, and whether the link and the cores were what they should be."""
    before = crossed_so_far()
    agent = ActorCritic(
        settings["environment"], engine="mpi", hidden=tuple(settings["hidden"]),
        n_games=settings["n_games"], n_moves=settings["n_moves"], local_steps=settings["B"],
        random_state=settings["seed"], n_evaluations=4, n_episodes=1,
        cluster=Cluster(strategy="momentum", strategy_options={"momentum": 0.0}),
    ).fit(figure5.moves(settings))  # fmt: skip
    if launched_rank():
        return {}
    told, step = agent.exchanges_, settings["n_games"] * settings["n_moves"]
    steps, took = (sum(getattr(e, of) for e in told["exchanges"]) for of in ("n_steps", "seconds"))
    return {
        "B": settings["B"], **paced.middle(agent),
        "crossed": (crossed_so_far() - before) / told["bytes"],
        "pace": took * paced.MOVES_A_SECOND / (steps * step),
    }  # fmt: skip


def main() -> None:
    """Fit with each B, and all of it again; print the fits as JSON."""
    settings = json.loads(sys.argv[1])
    step = settings["n_games"] * settings["n_moves"]
    worker_module.run_segment = partial(slowly, step / paced.MOVES_A_SECOND)
    fits = [
        fit({**settings, "B": int(B), "exchanges": exchanges})
        for _ in range(settings["repeats"])
        for B, exchanges in settings["exchanges"].items()
    ]
    if launched_rank() == 0:
        print(json.dumps(fits))


if __name__ == "__main__":
    main()
