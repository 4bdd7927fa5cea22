"""Atari: scores of whole games, with the last parameters, beside those of the first.

One thread, the paper's network, rewards of -1, 0 and 1 and ends at lost lives while it learns; a
frame is a sixtieth of a second of the game, and four are a move.  A fit that was stopped goes on
from its newest checkpoint, with new games.  The settings are those that are usual for A2C.
"""

from __future__ import annotations

import os
import shutil
import statistics
from pathlib import Path

from dpsvi.rl import ActorCritic
from dpsvi.rl.environments._atari import SKIP
from experiments.hsa2c.runs import Runs
from experiments.hsa2c.table import interval

EPISODES = 30
SETTINGS = {
    "n_games": 16, "n_moves": 5, "optimizer": "rmsprop", "learning_rate": 7e-4, "entropy": 0.01,
    "n_evaluations": 20, "n_episodes": 1, "checkpoint_seconds": 300.0,
}  # fmt: skip


def make(runs: Runs, args) -> list[dict]:
    """One row, of the game that was asked for."""

    def score(settings: dict) -> dict:
        return learn(settings, args.out / "checkpoints" / f"{args.game}-{settings['seed']}")

    told = {"game": args.game, "frames": args.frames}
    found = [runs.get(score, {**told, "seed": seed}) for seed in range(args.seeds)]
    found = [one for one in found if one is not None]
    return [{**told, "results": found}] if found else []


def learn(settings: dict, folder: Path) -> dict:
    """Mean returns of drawn and of greedy moves, the first parameters' and the curve, seconds."""
    told = dict(engine="serial", random_state=settings["seed"], checkpoint_dir=folder, **SETTINGS)
    agent = ActorCritic(f"atari:{settings['game']}", **told)
    moves, load = settings["frames"] // SKIP, os.getloadavg()[0]
    if (folder / "checkpoints" / "latest").exists():
        agent.resume(moves)
    else:
        agent.fit(moves)
    first = ActorCritic(f"atari:{settings['game']}", **{**told, "learning_rate": 1e-9}).set_params(
        checkpoint_dir=None, n_evaluations=1
    )
    result = {
        "score": scored(agent, settings, True), "drawn": scored(agent, settings, False),
        "first": scored(first.fit(1), settings, False),
        "curve": [[entry["moves"], entry["score"]] for entry in agent.history_],
        "seconds": agent.history_[-1]["seconds"], "moves": agent.n_moves_, "load": load,
    }  # fmt: skip
    shutil.rmtree(folder)
    return result


def scored(agent: ActorCritic, settings: dict, greedy: bool) -> float:
    """Mean return of whole games."""
    return float(agent.evaluate(EPISODES, greedy=greedy, random_state=settings["seed"]).mean())


def table(rows: list[dict]) -> list[str]:
    """Lines of Markdown."""
    lines = [
        f"Means over seeds of {EPISODES} games each, intervals of 95 %.", "",
        "| game | frames | seeds | greedy | moves drawn | first parameters, drawn | hours |",
        "|---|---:|---|---:|---:|---:|---:|",
    ]  # fmt: skip
    for row in rows:
        cells = []
        for key in ("score", "drawn"):
            mean, half = interval([one[key] for one in row["results"]])
            cells.append(f"{mean:.1f}" + f" +- {half:.1f}" * (len(row["results"]) > 1))
        first, seconds = (
            statistics.mean(one[key] for one in row["results"]) for key in ("first", "seconds")
        )
        lines.append(
            f"| {row['game']} | {row['frames']:,} | {len(row['results'])} | {' | '.join(cells)} "
            f"| {first:.1f} | {seconds / 3600:.2f} |"
        )
    return lines
