"""``python -m experiments.strategies.few_bytes FOLDER``: few bytes without a master, SIMULATED.

LDA with 50 topics on all of 20news (``docword.20news.txt.gz`` in FOLDER), 64 nodes: what comes near
to serial SVI with a fiftieth of the bytes of whole matrices, sent and received by every node at
every step of its own?  `local_sgd`, which has a master, is there to be compared with: means of all
replicas, as often as these bytes allow.  Cases that are on record are not run again.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from functools import partial
from pathlib import Path

import numpy as np

from dpsvi import DPSVILDA
from experiments.provenance import described, provenance
from experiments.strategies.problems import Problem, load
from experiments.strategies.settings import named
from experiments.strategies.trial import Trials

N_NODES, N_TOPICS, BATCH, SEED, OFFSET = 64, 50, 16, 0, 10.0
SHARE = 50  # of the bytes of dense exchange that are allowed: one of so many
_ROWS = {"share": 0.02, "together": 10}
_FEWER = {**_ROWS, "share": 0.018}  # numbers of rows and weights are sent, too
_FREE = {"most_blind": None}
CASES: list[tuple[str, dict, int]] = [  # strategy, settings, passes
    ("serial", {}, 20), ("ownership", {}, 20), ("ownership", {"local_steps": 4, **_FREE}, 20),
    ("ownership", {"local_steps": 16, **_FREE}, 20), ("push_rows", _ROWS, 20),
    ("gossip", {"probability": 0.02}, 20), ("local_sgd", {"local_steps": SHARE, **_FREE}, 20),
    ("serial", {}, 60), ("ownership", {}, 60), ("push_rows", _FEWER, 60),
    ("local_sgd", {"local_steps": SHARE, **_FREE}, 60),
]  # fmt: skip


def main(argv=None) -> None:
    """Make the fits that are missing; write JSON after each, and the table."""
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(
        prog="python -m experiments.strategies.few_bytes", description=__doc__
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--out", type=Path, default=Path("experiments/results/strategies/few-bytes")
    )
    args = parser.parse_args(argv)
    args.out.mkdir(parents=True, exist_ok=True)
    path = args.out / "few-bytes.json"
    source = provenance(
        "experiments.strategies.few_bytes", argv, ["numpy", "numba"], {"fit": SEED, "split": 0}
    )
    record = json.loads(path.read_text()) if path.exists() else {**source, "cases": []}
    problem, dense = whole(args.folder)
    for strategy, settings, passes in CASES:
        case = {"strategy": strategy, "settings": settings, "passes": passes}
        if any(case.items() <= known.items() for known in record["cases"]):
            continue
        trials = Trials(problem, passes, OFFSET, every=passes)
        name, n = ("decay", 1) if strategy == "serial" else (strategy, N_NODES)
        found = {**trials.fit(SEED, name, settings, n), "dense": dense, "git": source["git"]}
        record["cases"].append({**case, **found})
        path.write_text(json.dumps(record) + "\n")
        text = f"# Few bytes without a master, simulated\n\n{described(record)}\n\n{table(record)}"
        path.with_suffix(".md").write_text(text)
        print(text.splitlines()[-1], flush=True)


def whole(folder: Path) -> tuple[Problem, float]:
    """The problem, and bytes a document of dense exchange at every step."""
    train, others = load(folder)
    estimator = partial(
        DPSVILDA, N_TOPICS, batch_size=BATCH, doc_topic_prior=0.1, topic_word_prior=0.03
    )
    test = {"X": others.select(np.arange(500, others.n_items))}
    dense = 2 * 4 * train.n_features * N_TOPICS / BATCH  # float32, there and back
    return Problem(estimator, {"X": train}, test, test, "token"), dense


def table(record: dict) -> str:
    """Losses against serial SVI of as many passes, bytes against dense exchange."""
    serial = {
        case["passes"]: case["score"] for case in record["cases"] if case["strategy"] == "serial"
    }
    lines = [
        f"{N_NODES} nodes, one seed. What a case loses against serial SVI of as many passes: per "
        "cent of perplexity, and of the score, the held-out log-likelihood of a token. Bytes: of "
        "those of whole matrices, sent and received by every node at every step.\n",
        "| strategy | settings | passes | score | perplexity | of the score | bytes |",
        "| --- | --- |" + " ---: |" * 5,
    ]
    for case in record["cases"]:
        row = f"| {case['strategy']} | {named(case['settings'])} | {case['passes']} "
        if "failed" in case:
            lines.append(f"{row}| {case['failed']} | - | - | - |")
            continue
        lost = serial[case["passes"]] - case["score"]
        share = case["dense"] / case["bytes"]
        lines.append(
            f"{row}| {case['score']:.4f} | {100 * math.expm1(lost):+.1f} % "
            f"| {-100 * lost / serial[case['passes']]:+.2f} % | 1/{share:,.0f} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
