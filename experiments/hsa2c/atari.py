"""Atari: scores of whole games, with the last parameters, beside those of the first.

One thread, the paper's network, rewards of -1, 0 and 1 and ends at lost lives while it learns; a
frame is a sixtieth of a second of the game, and four are a move.  A fit that was stopped goes on
from its newest checkpoint, with new games.  The table has a row for all settings
on record.
"""

from __future__ import annotations

import json
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
    "n_games": 4, "n_moves": 20, "optimizer": "adam", "learning_rate": 7e-4, "trace": 1.0,
    "entropy": 0.01, "value": 0.5,
}  # fmt: skip
LOOKS = {"n_evaluations": 20, "n_episodes": 1, "checkpoint_seconds": 300.0}
FORMERLY = {  # settings of fits that did not name theirs; their pictures still had their mean
    "n_games": 16, "n_moves": 5, "optimizer": "rmsprop", "learning_rate": 7e-4, "trace": 1.0,
    "entropy": 0.01, "value": 0.5,
}  # fmt: skip


def make(runs: Runs, args) -> list[dict]:
    """Rows of all games on record, after those that were asked for."""

    def score(settings: dict) -> dict:
        return learn(settings, args.out / "checkpoints" / f"{args.game}-{settings['seed']}")

    for seed in range(args.first_seed, args.first_seed + args.seeds):
        runs.get(score, {"game": args.game, "frames": args.frames, **SETTINGS, "seed": seed})
    rows: dict[str, dict] = {}
    for run, result in runs.kept():
        told = {**FORMERLY, **run}
        del told["seed"]
        row = rows.setdefault(json.dumps(told, sort_keys=True), {**told, "results": []})
        row["results"].append(result)
    return list(rows.values())


def learn(settings: dict, folder: Path) -> dict:
    """Mean returns of drawn and of greedy moves, the first parameters' and the curve, seconds."""
    told = dict(engine="serial", random_state=settings["seed"], checkpoint_dir=folder, **LOOKS)
    told.update((key, settings[key]) for key in SETTINGS)
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


def described(row: dict) -> str:
    """The settings of a row, in words."""
    return (
        f"{row['optimizer']} {row['learning_rate']}, {row['n_games']} games x {row['n_moves']} "
        f"moves, trace {row['trace']}, entropy {row['entropy']}, value {row['value']}"
    )


def table(rows: list[dict]) -> list[str]:
    """Lines of Markdown."""
    lines = [
        f"Means over seeds of {EPISODES} games each, intervals of 95 %.", "",
        "| game | settings | frames | seeds | greedy | moves drawn | untrained, drawn | hours |",
        "|---|---|---:|---|---:|---:|---:|---:|",
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
            f"| {row['game']} | {described(row)} | {row['frames']:,} | {len(row['results'])} "
            f"| {' | '.join(cells)} | {first:.1f} | {seconds / 3600:.2f} |"
        )
    return lines
