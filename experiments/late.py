"""``python -m experiments.late``: a rank is late, by a random time, again and again.

Each run is ``mpiexec -n 4 dpsvi fit --grace-seconds 0.5`` with one worker that is stopped at a
random moment after the ranks have met, and goes on after another one.  The others begin without
it if it is not ready in time.  Whenever that was, the fit must end with 0 and have visited every
document of every pass.  Asynchronous runs differ, so perplexities are compared as medians with
those of runs in which nobody is late.  Strategies that are on record are not tried again.  Open
MPI, Linux.
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

from experiments.faulted import RANKS, fit, read, send, try_strategies

_GRACE = ("--grace-seconds", 0.5)


def run(args, strategy: str, out: Path, late: tuple[int, float, float] | None) -> dict:
    """One job; `late` is a rank, when it is stopped after all have met, and for how long."""

    def befall() -> None:
        rank, seconds, stopped = late
        time.sleep(seconds)
        send(rank, out, signal.SIGSTOP)
        time.sleep(stopped)
        send(rank, out, signal.SIGCONT)

    facts, stderr = fit(args, strategy, out, befall if late else None, _GRACE)
    return {
        **facts, "awaited": "the others join when they come" not in stderr,
        "joined": late is not None and f"rank {late[0]} joins after" in read(out / "run.log"),
    }  # fmt: skip


def trials(args, strategy: str, folder: Path) -> dict:
    """All runs of a strategy, and how they ended."""
    rng = np.random.default_rng(0)
    wholes = [run(args, strategy, folder / "whole", None) for _ in range(args.without)]
    print(strategy, json.dumps(wholes), flush=True)
    rows = []
    for i in range(args.runs):
        rank = int(rng.integers(1, RANKS))
        seconds, stopped = rng.uniform(0, args.within), rng.uniform(0, args.stopped)
        late = rank, float(seconds), float(stopped)
        row = dict(zip(("rank", "seconds", "stopped"), late, strict=True))
        row |= run(args, strategy, folder / f"late-{i}", late)
        row["good"] = row["exit"] == 0 and row["items"] == wholes[0]["items"]
        rows.append(row)
        print(strategy, json.dumps(row), flush=True)
    ends = {
        name: statistics.median(row["perplexity"] for row in runs if "perplexity" in row)
        for name, runs in (("without", wholes), ("late", rows))
    }
    return {"median_perplexity": ends, "without": wholes, "late": rows}


def table(record: dict) -> str:
    """One line a strategy, as Markdown."""
    lines = [
        f"Fits of {RANKS} processes over MPI, one of which is stopped for a random time as it "
        "starts: the others began without it, and it joined, or the fit was at its end; all "
        "waited for it; the fit failed, hung, or missed documents. Perplexity: medians, of these "
        "fits and of those in which nobody is late.\n",
        "| strategy | fits | joined | came after the end | awaited | failed | late | without |",
        "| --- |" + " ---: |" * 7,
    ]
    for strategy, facts in sorted(record["strategies"].items()):
        good = [row for row in facts["late"] if row["good"]]
        joined, awaited = (sum(row[how] for row in good) for how in ("joined", "awaited"))
        middle = facts["median_perplexity"]
        lines.append(
            f"| {strategy} | {len(facts['late'])} | {joined} | {len(good) - joined - awaited} "
            f"| {awaited} | {len(facts['late']) - len(good)} | {middle['late']:.0f} "
            f"| {middle['without']:.0f} |"
        )
    return "\n".join(lines) + "\n"


def main(argv=None) -> None:
    """Run what is not on record; write JSON and a table after each strategy."""
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(prog="python -m experiments.late", description=__doc__)
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--strategies", default="all", help="some, or all (%(default)s)")
    parser.add_argument("--topics", type=int, default=20)
    parser.add_argument("--passes", type=int, default=60)
    parser.add_argument("--runs", type=int, default=10, help="of a strategy (%(default)s)")
    parser.add_argument("--without", type=int, default=2, help="runs in which nobody is late")
    parser.add_argument("--within", type=float, default=0.5, help="seconds (%(default)s)")
    parser.add_argument("--stopped", type=float, default=4.0, help="seconds (%(default)s)")
    out = Path("experiments/results/strategies/late.json")
    parser.add_argument("--out", type=Path, default=out)
    args = parser.parse_args(argv)
    try_strategies(args, argv, "experiments.late", "A rank that is late", trials, table)


if __name__ == "__main__":
    main()
