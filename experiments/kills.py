"""``python -m experiments.kills``: workers killed at random moments, again and again.

Each run is ``mpiexec --with-ft ulfm -n 4 dpsvi fit`` with one worker killed (-9) after a random
time; it must end with 0, name the rank and visit every document of every pass (without a master
those of the survivors: what a peer has done, and was to do, is lost with it).  Asynchronous runs
differ, so perplexities are compared as medians with those of several runs without faults, and their
ranges are written beside them.  Strategies that are on record are not tried again, whatever
revision that was with (each says which).  Open MPI, Linux.
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import sys
import time
from pathlib import Path

import numpy as np

from dpsvi import strategies
from experiments.faulted import RANKS, fit, revisions, send, try_strategies


def run(args, strategy: str, out: Path, kill: tuple[int, float] | None) -> dict:
    """One job; `kill` is a rank and the seconds after the start of the first training step."""

    def befall() -> None:
        rank, seconds = kill
        time.sleep(seconds)
        send(rank, out, signal.SIGKILL)

    facts, stderr = fit(args, strategy, out, befall if kill else None)
    return {**facts, "named": kill is not None and f"rank {kill[0]} is lost" in stderr}


def trials(args, strategy: str, folder: Path) -> dict:
    """All runs of a strategy, and how they ended."""
    rng = np.random.default_rng(0)
    wholes = [run(args, strategy, folder / "whole", None) for _ in range(args.without)]
    print(strategy, json.dumps(wholes), flush=True)
    rows = []
    for i in range(args.kills):
        rank, seconds = int(rng.integers(1, RANKS)), float(rng.uniform(0, args.within))
        row = {"rank": rank, "seconds": seconds}
        row |= run(args, strategy, folder / f"killed-{i}", (rank, seconds))
        if "perplexity" in row:
            peers = strategies.get(strategy).topology == "peers"
            row["all_documents"] = peers or row["items"] == wholes[0]["items"]
        rows.append(row)
        print(strategy, json.dumps(row), flush=True)
    ends = {
        name: [row["perplexity"] for row in runs if "perplexity" in row]
        for name, runs in (("without_faults", wholes), ("killed", rows))
    }
    medians = {name: statistics.median(values) for name, values in ends.items()}
    return {
        "went_on": sum(r["exit"] == 0 and r["named"] and r["all_documents"] for r in rows),
        "killed_after_the_end": sum(r["exit"] == 0 and not r["named"] for r in rows),
        "median_perplexity": medians, "ratio": medians["killed"] / medians["without_faults"],
        "range": {name: [min(values), max(values)] for name, values in ends.items()},
        "without_faults": wholes, "kills": rows,
    }  # fmt: skip


def table(record: dict) -> str:
    """One line a strategy, as Markdown."""
    lines = [
        f"Fits of {RANKS} processes over MPI, one of which is killed at a random time: it went on "
        "and named the rank, and with a master visited every document; it was killed after its "
        "end; it failed or hung. Perplexity: medians, of fits with a kill and without. "
        f"{revisions(record)}\n",
        "| strategy | kills | went on | after the end | failed | with a kill | without |",
        "| --- |" + " ---: |" * 6,
    ]
    for strategy, facts in sorted(record["strategies"].items()):
        n, good, late = len(facts["kills"]), facts["went_on"], facts["killed_after_the_end"]
        middle = facts["median_perplexity"]
        lines.append(
            f"| {strategy} | {n} | {good} | {late} | {n - good - late} | {middle['killed']:.0f} "
            f"| {middle['without_faults']:.0f} |"
        )
    return "\n".join(lines) + "\n"


def main(argv=None) -> None:
    """Run what is not on record; write JSON and a table after each strategy."""
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(prog="python -m experiments.kills", description=__doc__)
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--strategies", default="decay", help="some, or all (%(default)s)")
    parser.add_argument("--topics", type=int, default=20)
    parser.add_argument("--passes", type=int, default=30)
    parser.add_argument("--kills", type=int, default=50, help="of a strategy")
    parser.add_argument("--without", type=int, default=8, help="runs without faults")
    parser.add_argument("--within", type=float, default=1.6, help="seconds (%(default)s)")
    parser.add_argument("--out", type=Path, default=Path("experiments/results/cluster/kills.json"))
    args = parser.parse_args(argv)
    try_strategies(args, argv, "experiments.kills", "Processes killed", trials, table)


if __name__ == "__main__":
    main()
