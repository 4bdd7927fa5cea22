"""Learning moves per second of this machine, and seconds to 475 on CartPole with the defaults.

Compiling is left out.  Fits with one thread, with two and more take turns, and so do those with as
many workers over MPI; each result says how busy the machine was.  Beside moves a second of the
clock stand those of processor time: what the threads would make if each had a core all the time,
since none waits for another.
"""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Mapping

from dpsvi.rl import ActorCritic
from experiments import mpiexec
from experiments.hsa2c.runs import Runs

PROBLEMS = {"cartpole": (64, 64), "breakout": (128,)}
GAMES = (8, 16)  # of each thread
LOCAL_STEPS = (1, 16)
REPEATS = 3
SEEDS, MOST_MOVES = 10, 400_000  # of the fits to a score
LOOKS = {"target": 475, "n_episodes": 100, "n_evaluations": 40}


def make(runs: Runs, args) -> list[dict]:
    """A row for each fit."""
    fits = [
        (moves_a_second, {
            "environment": name, "n_games": games, "n_jobs": n, "repeat": repeat,
            "moves": args.moves,
        })
        for name in PROBLEMS for games in GAMES for repeat in range(REPEATS) for n in args.cores
    ]  # fmt: skip
    fits += [(seconds_to_score, {"seed": s, "moves": MOST_MOVES}) for s in range(SEEDS)]
    fits += [
        (over_mpi, {"n": n, "B": B, "repeat": repeat, "moves": args.moves})
        for B in LOCAL_STEPS for repeat in range(REPEATS) for n in args.cores
    ]  # fmt: skip
    rows = [(what, told, runs.get(what, told)) for what, told in fits]
    return [
        {"what": what.__name__, **told, **found} for what, told, found in rows if found is not None
    ]


def moves_a_second(settings: dict) -> dict:
    """Of a fit with the defaults, by the clock and by processor time."""
    n = settings["n_jobs"]
    agent = ActorCritic(
        settings["environment"], hidden=PROBLEMS[settings["environment"]], n_evaluations=1,
        n_games=settings["n_games"], n_episodes=1, n_jobs=n, random_state=settings["repeat"],
    ).fit(10_000)  # fmt: skip
    load, began = os.getloadavg()[0], time.process_time()
    agent.fit(settings["moves"])
    processor = time.process_time() - began
    return {
        "rate": agent.n_moves_ / agent.history_[-1]["seconds"],
        "processor_rate": n * agent.n_moves_ / processor, "load": load,
    }  # fmt: skip


def over_mpi(settings: dict, agent: Mapping | None = None) -> dict:
    """Of n workers and a master, processes of this machine: CartPole, with the defaults.

    `agent` has other parameters.  What is measured is the second half of a fit.
    """
    load = os.getloadavg()[0]
    process = mpiexec.start(
        settings["n"] + 1, "experiments.hsa2c.over_mpi", settings["B"], settings["moves"],
        json.dumps(agent or {}),
    )  # fmt: skip
    return {**mpiexec.finish(process), "load": load}


def seconds_to_score(settings: dict) -> dict:
    """Seconds of training, and of all, until the mean of 100 greedy episodes is there."""
    ActorCritic(random_state=0).fit(1_000)  # compiles
    agent, load = ActorCritic(random_state=settings["seed"], **LOOKS), os.getloadavg()[0]
    began = time.perf_counter()
    agent.fit(settings["moves"])
    last = agent.history_[-1]
    return {
        "arrived": last["score"] >= LOOKS["target"], "seconds": last["seconds"],
        "whole": time.perf_counter() - began, "moves": last["moves"], "load": load,
    }  # fmt: skip


def table(rows: list[dict]) -> list[str]:
    """Lines of Markdown."""
    lines = [
        loads(rows), "",
        "| environment | games of a thread | threads | moves per second (range) | of processor "
        "time (range) |", "|---|---|---|---:|---:|",
    ]  # fmt: skip
    fits = [row for row in rows if row["what"] == "moves_a_second"]
    for cell in dict.fromkeys((r["environment"], r["n_games"], r["n_jobs"]) for r in fits):
        mine = [r for r in fits if (r["environment"], r["n_games"], r["n_jobs"]) == cell]
        both = [spread([row[key] for row in mine]) for key in ("rate", "processor_rate")]
        lines.append(f"| {' | '.join([*map(str, cell), *both])} |")
    if any(row["what"] == "over_mpi" for row in rows):
        lines += [
            "", "| CartPole over MPI | workers | moves per second (range) |", "|---|---|---:|",
        ]  # fmt: skip
    for B in LOCAL_STEPS:
        fits = [row for row in rows if row.get("B") == B]
        for n in sorted({row["n"] for row in fits}):
            rates = [row["rate"] for row in fits if row["n"] == n]
            lines.append(f"| B = {B} | {n} | {spread(rates)} |")
    scores = [row for row in rows if row["what"] == "seconds_to_score"]
    there = [row for row in scores if row["arrived"]]
    if scores:
        lines += [
            "", f"CartPole to 475 with the defaults: {len(there)} of {len(scores)} seeds arrive.",
        ]  # fmt: skip
    if there:
        moves, seconds, whole = (
            statistics.median(row[key] for row in there) for key in ("moves", "seconds", "whole")
        )
        lines.append(
            f"Medians of those: {moves:,.0f} moves, {seconds:.2f} s of training, {whole:.2f} s "
            "with evaluations."
        )
    return lines


def loads(rows: list[dict]) -> str:
    """How busy the machine was, in a sentence."""
    found = [row["load"] for row in rows]
    return f"Load average from {min(found):.1f} to {max(found):.1f} before the fits."


def spread(found: list[float]) -> str:
    """Median and range."""
    return f"{statistics.median(found):,.0f} ({min(found):,.0f}-{max(found):,.0f})"
