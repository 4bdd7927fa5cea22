"""``python -m experiments.threads``: what lock-free threads gain in speed and cost in perplexity.

For every local step and seed, one fit with 1 thread and one with p threads run one after the
other, over the same documents.  Ratios are medians of these pairs.  With ``--against`` the same
fits are made with the dpsvi of another revision and with this one, in turn, and their speed is
compared.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path

import numpy as np

from experiments import against, mpiexec
from experiments.held_out import load_split
from experiments.provenance import described, provenance

FIXED = {"doc_topic_prior": 0.1, "topic_word_prior": None}
LOCAL_STEPS = {
    "mean_field": {"local_step": "mean_field"},
    "collapsed": {"local_step": "collapsed"},
    "kept": {"local_step": "collapsed", "keep_responsibilities": True},
}


def fit(train, settings, seed: int = 0):
    """One fit, and its seconds."""
    from dpsvi import DPSVILDA

    model = DPSVILDA(random_state=seed, **settings).fit(train)
    return model, model.history_[-1]["seconds"]


def measure(train, test, settings, seed: int) -> dict:
    """Tokens per second of training and held-out perplexity of one fit."""
    model, seconds = fit(train, settings, seed)
    last = model.history_[-1]
    tokens = train.n_tokens / train.n_items * last["items"]
    return {
        "tokens_per_second": tokens / seconds,
        "perplexity": model.perplexity(test),
    }


def main(argv=None) -> None:
    """Run the pairs and write a JSON file and a table."""
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(prog="python -m experiments.threads", description=__doc__)
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--documents", type=int, help="training documents (all not held out)")
    parser.add_argument("--topics", type=int, default=100)
    parser.add_argument("--passes", type=int, default=6)
    parser.add_argument("--kept-passes", type=int, default=30, help="with kept responsibilities")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--local-steps", default=",".join(LOCAL_STEPS))
    parser.add_argument("--against", metavar="REVISION", help="compare with this revision")
    parser.add_argument("--pairs", type=int, default=20, help="with --against [%(default)s]")
    parser.add_argument("--out", type=Path, default=Path("experiments/results/threads"))
    parser.add_argument("--fit", type=json.loads, help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.fit:
        train, _ = load_split(args.corpus, args.documents)
        print(json.dumps({"seconds": fit(train, args.fit)[1]}))
        return
    source = provenance(
        "experiments.threads", argv, ["numpy", "numba"],
        {"fit": 0 if args.against else list(range(args.seeds)), "split": 0},
    )  # fmt: skip
    size = f"-{args.documents}" if args.documents else ""
    stem = f"{Path(args.corpus).name.split('.')[1]}{size}-{args.topics}-topics-pairs"
    args.out.mkdir(parents=True, exist_ok=True)
    if args.against:
        against.write(args.out / stem, source, compare(args))
        return
    train, test = load_split(args.corpus, args.documents)
    rows = []
    for name in args.local_steps.split(","):
        settings = settings_of(args, name)
        passes = settings["max_iter"]
        warm_up = {**settings, "n_components": args.topics, "max_iter": 1, "n_jobs": args.threads}
        measure(train.select(np.arange(min(500, train.n_items))), test, warm_up, 0)  # compile
        for seed in range(args.seeds):
            one = measure(train, test, {**settings, "n_jobs": 1}, seed)
            many = measure(train, test, {**settings, "n_jobs": args.threads}, seed)
            rows.append({"local_step": name, "passes": passes, "seed": seed, "1": one, "p": many})
            print(json.dumps(rows[-1]), flush=True)
    facts = {"training_documents": train.n_items, "test_documents": test.n_items, "rows": rows}
    (args.out / f"{stem}.json").write_text(json.dumps({**source, **facts}, indent=1) + "\n")
    (args.out / f"{stem}.md").write_text(table(rows, source, args))


def settings_of(args, name: str) -> dict:
    """Parameters of the fits with a local step."""
    passes = args.kept_passes if name == "kept" else args.passes
    return {**FIXED, **LOCAL_STEPS[name], "n_components": args.topics, "max_iter": passes}


def compare(args) -> dict:
    """Each fit with the dpsvi of another revision and with this one, in processes of their own."""
    corpus = "--corpus", Path(args.corpus).resolve()
    some = ["--documents", args.documents] if args.documents else []
    fits = {
        f"{name}, {p} thread{'s' * (p > 1)}": {**settings_of(args, name), "n_jobs": p}
        for name in args.local_steps.split(",") for p in (1, args.threads)
    }  # fmt: skip

    def seconds(folder, name):
        return mpiexec.finish(mpiexec.start(
            0, "experiments.threads", *corpus, *some, "--fit", json.dumps(fits[name]),
            folder=folder,
        ))["seconds"]  # fmt: skip

    return against.measure(args.against, fits, seconds, args.pairs)


def table(rows, source, args) -> str:
    """Medians over the seeds as Markdown."""
    lines = [
        f"# {args.threads} threads against 1 on {Path(args.corpus).name}", "",
        described(source), "",
        "| local step | passes | tokens/s, ratio (range) | perplexity, 1 thread "
        f"| {args.threads} threads | ratio |",
        "|---|---|---|---|---|---|",
    ]  # fmt: skip
    for name in dict.fromkeys(row["local_step"] for row in rows):
        mine = [row for row in rows if row["local_step"] == name]
        speed = [r["p"]["tokens_per_second"] / r["1"]["tokens_per_second"] for r in mine]
        one, many = (statistics.median(r[side]["perplexity"] for r in mine) for side in ("1", "p"))
        lines.append(
            f"| {name} | {mine[0]['passes']} | {statistics.median(speed):.2f} "
            f"({min(speed):.2f}-{max(speed):.2f}) | {one:.0f} | {many:.0f} | {many / one:.4f} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
