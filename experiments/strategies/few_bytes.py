"""``python -m experiments.strategies.few_bytes FOLDER``: few bytes without a master, SIMULATED.

LDA with 50 topics on all of 20news (``docword.20news.txt.gz`` in FOLDER), 64 nodes: what comes near
to serial SVI with a fiftieth of the bytes of whole matrices, sent and received by every node at
every step of its own?  `local_sgd`, which has a master, is there to be compared with: means of all
replicas, as often as these bytes allow.  `push_rows` with short numbers chooses for how many nodes
it makes its steps, on documents and with a seed for that, in fits as long as those compared; it and
serial SVI are fitted with five seeds.  Cases that are on record are not run again.
"""

from __future__ import annotations

import argparse
import json
import sys
from functools import partial
from pathlib import Path

import numpy as np

from dpsvi import DPSVILDA
from experiments.provenance import described, provenance
from experiments.strategies import domain
from experiments.strategies.problems import Problem, load
from experiments.strategies.settings import named
from experiments.strategies.trial import Trials

N_NODES, N_TOPICS, BATCH, OFFSET = 64, 50, 16, 10.0
SEEDS, TUNING_SEED = range(5), 1000
FEW, MANY = 20, 60  # passes
SHARE = 50  # of the bytes of dense exchange that are allowed: one of so many
_ROWS = {"share": 0.02, "together": 10}
_FEWER = {**_ROWS, "share": 0.018}  # numbers of rows and weights are sent, too
_SHORT = {"share": 0.0373, "numbers": "bfloat16"}
TOGETHER = (10, 20, 40)  # to choose from
_FREE = {"most_blind": None}
CASES: list[tuple[str, dict, int]] = [  # strategy, settings, passes
    ("serial", {}, FEW), ("ownership", {}, FEW), ("ownership", {"local_steps": 4, **_FREE}, FEW),
    ("ownership", {"local_steps": 16, **_FREE}, FEW), ("push_rows", _ROWS, FEW),
    ("gossip", {"probability": 0.02}, FEW), ("local_sgd", {"local_steps": SHARE, **_FREE}, FEW),
    ("serial", {}, MANY), ("ownership", {}, MANY), ("push_rows", _FEWER, MANY),
    ("local_sgd", {"local_steps": SHARE, **_FREE}, MANY),
]  # fmt: skip


def main(argv=None) -> None:
    """Make the fits that are missing; write JSON after each, in the end the table."""
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
        "experiments.strategies.few_bytes", argv, ["numpy", "numba"],
        {"fit": list(SEEDS), "choice": TUNING_SEED, "split": 0},
    )  # fmt: skip
    record = json.loads(path.read_text()) if path.exists() else {**source, "cases": []}
    record["seeds"] = source["seeds"]
    problem, dense = whole(args.folder)

    def fitted(strategy: str, settings: dict, passes: int, seed: int, tuning: bool = False) -> dict:
        case = {"strategy": strategy, "settings": settings, "passes": passes, "seed": seed}
        for known in record["cases"]:
            if case.items() <= known.items():
                return known
        name, n = ("decay", 1) if strategy == "serial" else (strategy, N_NODES)
        trials = Trials(problem, passes, OFFSET, every=passes)
        found = trials.fit(seed, name, settings, n, tuning=tuning)
        record["cases"].append({**case, **found, "dense": dense, "git": source["git"]})
        path.write_text(json.dumps(record) + "\n")
        print(case, found.get("score"), flush=True)
        return record["cases"][-1]

    for strategy, settings, passes in CASES:
        fitted(strategy, settings, passes, SEEDS[0])
    tried = [{**_SHORT, "together": together} for together in TOGETHER]
    scores = [fitted("push_rows", each, MANY, TUNING_SEED, True)["score"] for each in tried]
    chosen = tried[scores.index(max(scores))]
    for seed in SEEDS:
        fitted("serial", {}, MANY, seed)
        fitted("push_rows", chosen, MANY, seed)
    path.write_text(json.dumps(record) + "\n")
    text = f"# Few bytes without a master, simulated\n\n{described(record)}\n\n{table(record)}"
    path.with_suffix(".md").write_text(text)


def whole(folder: Path) -> tuple[Problem, float]:
    """The problem, and bytes a document of dense exchange at every step."""
    train, others = load(folder)
    estimator = partial(
        DPSVILDA, N_TOPICS, batch_size=BATCH, doc_topic_prior=0.1, topic_word_prior=0.03
    )
    tuning, test = np.split(np.arange(others.n_items), [500])
    dense = 2 * 4 * train.n_features * N_TOPICS / BATCH  # float32, there and back
    parts = [{"X": part} for part in (train, others.select(tuning), others.select(test))]
    return Problem(estimator, *parts, "token", {}, domain.counts), dense


def table(record: dict) -> str:
    """Losses against serial SVI of as many passes, bytes against dense exchange."""
    cases: dict[tuple, list[dict]] = {}
    for case in record["cases"]:
        if case["seed"] in SEEDS:
            key = case["strategy"], named(case["settings"]), case["passes"]
            cases.setdefault(key, []).append(case)
    revisions = ", ".join(sorted({case["git"]["revision"][:7] for case in record["cases"]}))
    serial = {
        (passes, case["seed"]): case["score"]
        for (strategy, _, passes), found in cases.items() if strategy == "serial"
        for case in found
    }  # fmt: skip
    lines = [
        f"{N_NODES} nodes. What a case loses against serial SVI of as many passes and of the same "
        "seed: per cent of perplexity, and of the score, the held-out log-likelihood of a token; "
        "means, and the range over the seeds. Bytes: of those of whole matrices, sent and received "
        f"by every node at every step. Revisions: {revisions}.\n",
        "| strategy | settings | passes | seeds | score | perplexity | of the score | bytes |",
        "| --- | --- |" + " ---: |" * 6,
    ]
    for (strategy, settings, passes), found in cases.items():
        row = f"| {strategy} | {settings} | {passes} | {len(found)} "
        if failed := [case["failed"] for case in found if "failed" in case]:
            lines.append(f"{row}| {failed[0]} | - | - | - |")
            continue
        score = np.mean([case["score"] for case in found])
        lost = [serial[passes, case["seed"]] - case["score"] for case in found]
        parts = [
            -100 * loss / serial[passes, case["seed"]]
            for loss, case in zip(lost, found, strict=True)
        ]
        spread = f" ({min(parts):+.2f} to {max(parts):+.2f})" if len(found) > 1 else ""
        share = np.mean([case["dense"] / case["bytes"] for case in found])
        lines.append(
            f"{row}| {score:.4f} | {100 * np.mean(np.expm1(lost)):+.1f} % "
            f"| {np.mean(parts):+.2f} %{spread} | 1/{share:,.0f} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
