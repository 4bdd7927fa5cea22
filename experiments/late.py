"""``python -m experiments.late``: a rank is late, by a random time, again and again.

Each run is ``mpiexec -n 4 dpsvi fit --grace-seconds 0.5`` with one worker that is stopped at a
random moment after the ranks have met, and goes on after another one.  The others begin without
it if it is not ready in time; if it was ready before, it is stopped in the fit.  Whenever that
was, the fit must end with 0 and have visited every document of every pass.  Asynchronous runs
differ, so perplexities are compared as medians with those of runs in which nobody is late.  What
fails, or is refused, is in the table with its reason.  Strategies that are on record are not tried
again, whatever revision that was with (each says which).  Open MPI, Linux.
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np

from experiments.faulted import RANKS, fit, read, revisions, send, try_strategies

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
    whole = [row["items"] for row in wholes if row["exit"] == 0]
    rows = []
    for i in range(args.runs):
        rank = int(rng.integers(1, RANKS))
        seconds, stopped = rng.uniform(0, args.within), rng.uniform(0, args.stopped)
        late = rank, float(seconds), float(stopped)
        row = dict(zip(("rank", "seconds", "stopped"), late, strict=True))
        row |= run(args, strategy, folder / f"late-{i}", late)
        row["good"] = row["exit"] == 0 and row["items"] in whole
        rows.append(row)
        print(strategy, json.dumps(row), flush=True)
    ends = {
        name: [row["perplexity"] for row in runs if "perplexity" in row]
        for name, runs in (("without", wholes), ("late", rows))
    }
    medians = {name: statistics.median(found) if found else None for name, found in ends.items()}
    return {"median_perplexity": medians, "without": wholes, "late": rows}


def table(record: dict) -> str:
    """One line a strategy, as Markdown, and why fits of it failed."""
    lines = [
        f"Fits of {RANKS} processes over MPI, one of which is stopped for a random time as it "
        "starts: the others began without it, and it joined, or the fit was at its end; all began "
        "together, since it was ready in time and stood still afterwards; the fit failed, hung, or "
        "missed documents. Perplexity: medians, of these fits and of those in which nobody is "
        f"late. {revisions(record)} What each was run with, and when, is in the file beside this "
        "one.\n",
        "| strategy | fits | joined | came after the end | together | failed | late | without |",
        "| --- |" + " ---: |" * 7,
    ]
    reasons = []
    for strategy, facts in sorted(record["strategies"].items()):
        good = [row for row in facts["late"] if row["good"]]
        joined, together = (sum(row[how] for row in good) for how in ("joined", "awaited"))
        late, without = (
            "" if found is None else f"{found:.0f}"
            for found in (facts["median_perplexity"][runs] for runs in ("late", "without"))
        )
        lines.append(
            f"| {strategy} | {len(facts['late'])} | {joined} | {len(good) - joined - together} "
            f"| {together} | {len(facts['late']) - len(good)} | {late} | {without} |"
        )
        runs = [*facts["without"], *facts["late"]]
        for reason, n in Counter(_why(row) for row in runs if not _good(row)).items():
            reasons.append(f"* {strategy}, {n} of {len(runs)} with those without: {reason}")
    return "\n".join([*lines, *([""] if reasons else []), *reasons]) + "\n"


def _good(row: dict) -> bool:
    return row.get("good", row["exit"] == 0)


def _why(row: dict) -> str:
    """Why a fit does not count as good: what its ranks said, if they ended by themselves."""
    if row["exit"] is None:
        return "it hung"
    if row["exit"] == 0:
        return "it missed documents"
    said = (line for line in row["stderr"].splitlines() if line.startswith("dpsvi fit: "))
    return next(said, f"it ended with {row['exit']}")


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
