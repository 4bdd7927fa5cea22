"""Table 2 at equal seconds: algorithms side by side after as much processor time of this machine.

Here nothing is simulated.  Those with workers run over MPI, two workers and, if they have one, a
master; PA3C and GA3C are two threads.  The time is that of all threads and ranks together, so that
other work on the machine matters less: what takes two cores has half of the seconds of a clock.
Every entrant has the learning rate that it chose at equal moves (``table``), where it had four
workers, or none.  The score is that of the last parameters, of 100 fresh greedy episodes.
"""

from __future__ import annotations

import json
import math
import os
import statistics

from experiments import mpiexec
from experiments.hsa2c import stable_baselines
from experiments.hsa2c import table as moves
from experiments.hsa2c.runs import Runs

WORKERS = 2
PROCESSOR_SECONDS = {"cartpole": 3.0, "breakout": 5.0}  # of a fit, unless others are asked for
WITHOUT_MASTER = ("GALA",)


def make(runs: Runs, args) -> list[dict]:
    """A row for each environment and entrant."""
    chosen = moves.make(Runs(args.out / "runs" / "table.jsonl", runs.source, redraw=True), args)
    rows = []
    for row in chosen:
        is_peer = row["entrant"] not in moves.ENTRANTS
        told = {
            "environment": row["environment"], "entrant": row["entrant"],
            "seconds": args.processor_seconds or PROCESSOR_SECONDS[row["environment"]],
            "seeds": args.seeds,
        }  # fmt: skip
        if not is_peer:
            parallel = moves.ENTRANTS[row["entrant"]][1] is not None
            told |= {"workers": WORKERS if parallel else 1, "learning_rate": row["learning_rate"]}
        possible = not is_peer or stable_baselines.installed()
        found = runs.get(scores, told, possible)
        rows.append({**told, **({"fits": []} if found is None else found)})
    return rows


def scores(settings: dict) -> dict:
    """What :mod:`experiments.hsa2c.timed` tells of fits, and how busy the machine was before."""
    workers, load = settings.get("workers", 1), os.getloadavg()[0]
    master = settings["entrant"] not in WITHOUT_MASTER
    ranks = workers + master if workers > 1 else 0
    process = mpiexec.start(ranks, "experiments.hsa2c.timed", json.dumps(settings))
    return {**mpiexec.finish(process), "load": load}


def table(rows: list[dict]) -> list[str]:
    """Lines of Markdown, a table for each environment."""
    lines = []
    for environment in dict.fromkeys(row["environment"] for row in rows):
        mine = [row for row in rows if row["environment"] == environment]
        loads = [row["load"] for row in mine if row["fits"]] or [math.nan]
        lines += [
            f"{environment}, {mine[0]['seconds']:g} s of processor time; means over seeds, scores "
            f"with intervals of 95 %; load average from {min(loads):.1f} to {max(loads):.1f} "
            "before the fits.", "",
            "| algorithm | seeds | score | moves | processor seconds | seconds of the clock "
            "| learning rate |",
            "|---|---|---:|---:|---:|---:|---:|", *map(_line, mine), "",
        ]  # fmt: skip
    return lines


def _line(row: dict) -> str:
    found = row["fits"]
    if not found:
        return f"| {row['entrant']} | not run | - | - | - | - | - |"
    mean, half = moves.interval([one["score"] for one in found])
    made, processor, clock = (
        statistics.mean(one[key] for one in found) for key in ("moves", "processor", "seconds")
    )
    rate = f"{row['learning_rate']:g}" if "learning_rate" in row else found[0]["settings"]
    return (
        f"| {row['entrant']} | {len(found)} | {mean:.1f} +- {half:.1f} | {made:,.0f} "
        f"| {processor:.1f} | {clock:.1f} | {rate} |"
    )
