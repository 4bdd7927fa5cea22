"""What two threads that share all parameters cost, beside what a cache line costs between cores.

PA3C on Breakout: after every eight moves each of two threads writes all parameters and moments, so
nearly every line has to come from the other core.  How long that takes is for the machine to say,
and on a virtual one it changes from minute to minute with where its cores are.  Before and after
each fit two threads hand a number to and fro.  Processor seconds compare only where both threads
had a core: where *cores in use* is near n.
"""

from __future__ import annotations

import statistics
import threading
import time

import numba
import numpy as np

from dpsvi.kernels.jit import fetch_add
from experiments.hsa2c import timed
from experiments.hsa2c.runs import Runs

REPEATS = 10
ROUNDS = 10_000
TRIES = 5
FIT = {"environment": "breakout", "learning_rate": 0.001, "workers": 1, "seed": 0}
ENTRANT = "PA3C"


def make(runs: Runs, args) -> list[dict]:
    """A row for each fit."""
    told = [
        {**FIT, "entrant": ENTRANT, "n_jobs": n, "repeat": repeat, "moves": args.moves}
        for repeat in range(REPEATS) for n in (1, 2)
    ]  # fmt: skip
    rows = [(one, runs.get(fit, one)) for one in told]
    return [{**one, **found} for one, found in rows if found is not None]


def fit(settings: dict) -> dict:
    """Nanoseconds of a hand-over before and after a fit; its processor seconds, and seconds."""
    agent = timed.ours(settings).set_params(n_jobs=settings["n_jobs"])
    agent.fit(10_000)  # compiles
    before = hand_over()
    spent = timed.clocked(lambda: agent.fit(settings["moves"]))
    return {"before": before, "after": hand_over(), **spent}


def hand_over() -> float:
    """Nanoseconds that a number takes from one thread to another, the least of some tries."""
    turn, seconds = np.zeros(1, np.int64), []
    _play(turn, 0, 0)  # compiles
    for _ in range(TRIES):
        turn[0] = 0
        other = threading.Thread(target=_play, args=(turn, 1, ROUNDS))
        began = time.perf_counter()
        other.start()
        _play(turn, 0, ROUNDS)
        other.join()
        seconds.append(time.perf_counter() - began)
    return min(seconds) / (2 * ROUNDS) * 1e9


@numba.njit(nogil=True)
def _play(turn, mine, rounds):
    """Add 1 as soon as the number is 2k + `mine`, for each k below `rounds`."""
    for k in range(rounds):
        while fetch_add(turn, 0) != 2 * k + mine:
            pass
        fetch_add(turn, 1)


def table(rows: list[dict]) -> list[str]:
    """Lines of Markdown, a line for each fit."""
    one = statistics.median([r["processor"] for r in rows if r["n_jobs"] == 1] or [np.nan])
    lines = [
        f"{ENTRANT} on {FIT['environment']}, {rows[0]['moves']:,} moves.  One thread alone takes "
        f"{one:.1f} s of processor time (median).", "",
        "| threads | ns of a hand-over before | after | processor seconds | seconds of the clock "
        "| cores in use |", "|---|---:|---:|---:|---:|---:|",
    ]  # fmt: skip
    for row in sorted(rows, key=lambda row: (row["n_jobs"], row["processor"])):
        cores = row["processor"] / row["seconds"]
        lines.append(
            f"| {row['n_jobs']} | {row['before']:.0f} | {row['after']:.0f} "
            f"| {row['processor']:.1f} | {row['seconds']:.1f} | {cores:.1f} |"
        )
    return lines
