"""``python -m experiments.portions``: a stream in portions of few and of many rows.

The data of `experiments.small_data`, three quarters of each, come once, by ``partial_fit`` of 5, 40
or 300 rows at a time.  Batches have the size that is left to the estimator, that of a fit to all
that has come, or 256 rows; a portion counts as its part of one.  Scored are the other rows, by the
method `score`, and also after one pass of ``fit``: means of the seeds.
"""

from __future__ import annotations

import argparse
import sys
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from statistics import mean

import numpy as np

from experiments.provenance import described, provenance
from experiments.record import kept
from experiments.small_data import MODELS

PORTIONS = 5, 40, 300
BATCHES = None, 256
FIT = "fit, one pass"


def streamed(model, size: int, train: np.ndarray, portion: int, batch: int | None, seed: int):
    """An estimator that has seen the rows once, so many at a time."""
    estimator = model(size, batch_size=batch, random_state=seed, n_jobs=1)
    for first in range(0, len(train), portion):
        estimator.partial_fit(train[first : first + portion])
    return estimator


def measure(n_seeds: int) -> list[dict]:
    """Stream all data in all ways."""
    rows = []
    for model, draw in MODELS.items():
        for seed in range(n_seeds):
            for name, size, data in draw(seed):
                whole = np.random.default_rng(seed).permutation(data)
                test, train = np.split(whole, [len(whole) // 4])
                facts = {"model": model.__name__, "data": name, "items": len(train), "K": size}
                once = model(size, max_iter=1, random_state=seed, n_jobs=1).fit(train)
                scores = {FIT: float(once.score(test))}
                for portion in PORTIONS:
                    for batch in BATCHES:
                        fitted = streamed(model, size, train, portion, batch, seed)
                        scores[f"{portion}, {batch or 'left to it'}"] = float(fitted.score(test))
                rows.append({**facts, "seed": seed, "scores": scores})
    return rows


def table(rows: list[dict]) -> list[str]:
    """One line for each model and data set."""
    ways = list(rows[0]["scores"])
    lines = [
        "Scores of held-out rows: rows of a portion, and of a batch; mean of "
        f"{len({row['seed'] for row in rows})} seeds. Higher is better.",
        "", "| model | data | rows | K | " + " | ".join(ways) + " |",
        "|" + "---|" * (4 + len(ways)),
    ]  # fmt: skip
    key = itemgetter("model", "data", "items", "K")
    for group, found in groupby(sorted(rows, key=key), key):
        mine = list(found)
        scores = [f"{mean(row['scores'][way] for row in mine):.3f}" for way in ways]
        lines.append("| {} | {} | {:,} | {} | ".format(*group) + " | ".join(scores) + " |")
    return lines


def main(argv=None) -> None:
    """Measure, and write JSON and a table."""
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(prog="python -m experiments.portions", description=__doc__)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--out", type=Path, default=Path("experiments/results/portions"))
    parser.add_argument("--redraw", action="store_true", help="the table, from what was kept")
    args = parser.parse_args(argv)
    source = provenance(
        "experiments.portions", argv, ["numpy", "numba", "scikit-learn"],
        {"data": list(range(args.seeds)), "fit": list(range(args.seeds))},
    )  # fmt: skip
    found = kept(
        args.out / "portions.json", source, None if args.redraw else lambda: measure(args.seeds)
    )
    page = ["# Streams in portions", "", described(found), "", *table(found["rows"])]
    (args.out / "portions.md").write_text("\n".join(page) + "\n")


if __name__ == "__main__":
    main()
