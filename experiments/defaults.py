"""``python -m experiments.defaults``: how the defaults of DPSVILDA were chosen.

Starting from the defaults, one setting at a time is changed; held-out perplexity (document
completion) after a fixed number of passes and the training time are written down.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path

from experiments.held_out import load_split
from experiments.provenance import described, provenance

FIXED = {"doc_topic_prior": 0.1, "topic_word_prior": None}
CHANGES = {
    "collapsed": [
        {}, {"batch_size": 32}, {"batch_size": 128}, {"batch_size": 256},
        {"learning_offset": 1.0}, {"learning_offset": 10.0}, {"learning_offset": 64.0},
        {"learning_decay": 0.6}, {"learning_decay": 0.9},
        {"max_doc_update_iter": 5}, {"max_doc_update_iter": 30},
        {"topic_word_prior": 0.1}, {"topic_word_prior": "auto"},
        {"topic_word_prior": "auto", "doc_topic_prior": "auto"}, {"warm_documents": True},
    ],
    "mean_field": [
        {}, {"batch_size": 64}, {"batch_size": 256}, {"batch_size": 512},
        {"learning_offset": 1.0}, {"learning_offset": 10.0}, {"learning_offset": 64.0},
        {"learning_decay": 0.6}, {"learning_decay": 0.9},
        {"max_doc_update_iter": 10}, {"max_doc_update_iter": 100},
        {"topic_word_prior": 0.01}, {"topic_word_prior": "auto"},
        {"topic_word_prior": "auto", "doc_topic_prior": "auto"}, {"warm_documents": True},
    ],
}  # fmt: skip


def measure(train, test, settings, seeds, passes, topics) -> dict:
    """Median perplexity and seconds over the seeds."""
    from dpsvi import DPSVILDA

    perplexity, seconds = [], []
    for seed in seeds:
        model = DPSVILDA(n_components=topics, max_iter=passes, random_state=seed, **settings)
        model.fit(train)
        perplexity.append(model.perplexity(test))
        seconds.append(model.history_[-1]["seconds"])
    return {
        "perplexity": statistics.median(perplexity), "range": [min(perplexity), max(perplexity)],
        "seconds": statistics.median(seconds),
    }  # fmt: skip


def main(argv=None) -> None:
    """Run the grid and write a JSON file and a table."""
    parser = argparse.ArgumentParser(prog="python -m experiments.defaults", description=__doc__)
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--documents", type=int, help="training documents (all not held out)")
    parser.add_argument("--topics", type=int, default=100)
    parser.add_argument("--passes", type=int, default=4)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", default="experiments/results/defaults")
    args = parser.parse_args(argv)
    train, test = load_split(args.corpus, args.documents)
    rows = []
    for local_step, changes in CHANGES.items():
        for change in changes:
            settings = {**FIXED, **change, "local_step": local_step}
            result = measure(train, test, settings, range(args.seeds), args.passes, args.topics)
            rows.append({"local_step": local_step, "change": change, **result})
            print(json.dumps(rows[-1]), flush=True)
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    name = Path(args.corpus).name.split(".")[1]
    source = provenance(
        "experiments.defaults", argv or sys.argv[1:], ["numpy", "numba"],
        {"fit": list(range(args.seeds)), "split": 0},
    )  # fmt: skip
    facts = {"training_documents": train.n_items, "test_documents": test.n_items, "rows": rows}
    (out / f"{name}.json").write_text(json.dumps({**source, **facts}, indent=1) + "\n")
    (out / f"{name}.md").write_text(table(rows, source, train.n_items, test.n_items, args))


def table(rows, source, n_train, n_test, args) -> str:
    """The rows as Markdown."""
    lines = [
        f"# Defaults on {Path(args.corpus).name}", "",
        f"K = {args.topics}, {n_train} training and {n_test} test documents, {args.passes} passes, "
        f"1 thread, median of {args.seeds} seeds (range).  Unless the row says otherwise "
        "alpha = 0.1 and eta is the fixed default.", "",
        described(source), "",
        "| local step | changed | perplexity | range | seconds / default |",
        "|---|---|---|---|---|",
    ]  # fmt: skip
    base = {}
    for row in rows:
        base.setdefault(row["local_step"], row["seconds"])
        changed = ", ".join(f"{k}={v}" for k, v in row["change"].items()) or "nothing"
        low, high = row["range"]
        lines.append(
            f"| {row['local_step']} | {changed} | {row['perplexity']:.0f} | {low:.0f}-{high:.0f} "
            f"| {row['seconds'] / base[row['local_step']]:.2f} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
