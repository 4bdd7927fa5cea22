"""``python -m experiments.incremental``: incremental passes beside decayed ones, at equal visits.

Each model that has the parameter `incremental` makes the same passes over the same items with and
without it, all else as by default: serially, and on SIMULATED clusters of n workers.  Pairs have
the same seed, of the data, of what is held out and of the fit.  Costs of the cluster are constants,
so that the same seed gives the same result anywhere.

Scores are of held-out data, in nats, by the method of the model: for each point, for each step of
sequences, for each count that is not 0.  Bounds are of the training data, for each item.

With ``--share 1`` all passes are incremental, instead of the last half.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dpsvi import (
    DPSVIHMM,
    DPSVIDPMixture,
    DPSVIGaussianMixture,
    DPSVIPoissonFactorization,
    VirtualCluster,
)
from dpsvi.cluster.virtual import TEN_GIGABIT, Timing
from dpsvi.estimators import incremental
from experiments.family import gaussian_mixture, hmm, poisson_factorization
from experiments.provenance import described, provenance

# About those of the digits; over-writes as in results/figures/timing.json.
TIMING = Timing(
    step=5e-5, value=2e-7, lost=2.3e-5, contention=0.05, turn=3e-5, touch=2e-10, message=3e-5,
    read=2e-10, merge=2e-10,
)  # fmt: skip


class Problem(NamedTuple):
    """What is fitted to what."""

    estimator: Any
    train: dict  # keyword arguments of `fit`
    test: dict  # keyword arguments of `score`
    unit: int  # the score is divided by it


def _digits(seed, estimator):
    train, test = gaussian_mixture.digits(seed)
    return Problem(estimator, {"X": train}, {"X": test}, 1)


def _synthetic_mixture(seed):
    X = gaussian_mixture.draw(np.random.default_rng(seed), 10_000)
    return Problem(DPSVIGaussianMixture(20), {"X": X[5_000:]}, {"X": X[:5_000]}, 1)


def _sequences(seed, n):
    rng = np.random.default_rng(seed)
    truth, length = hmm.Truth(rng), 200
    train, test = truth.draw(rng, n, length), truth.draw(rng, 50, length)
    train, test = (
        {"X": X, "lengths": np.full(len(X) // length, length)} for X in (train, test)
    )  # fmt: skip
    return Problem(DPSVIHMM(hmm.K), train, test, len(test["X"]))


def _pixels(seed):
    from sklearn.datasets import load_digits

    X = np.random.default_rng(seed).permutation(load_digits().data)
    return Problem(DPSVIPoissonFactorization(10), {"X": X[500:]}, {"X": X[:500]}, 1)


def _planted_counts(seed):
    X = poisson_factorization.synthetic(seed, quick=True)
    return Problem(DPSVIPoissonFactorization(10), {"X": X[500:]}, {"X": X[:500]}, 1)


PROBLEMS = {
    "Gaussian mixture, 1,297 digits, K = 20": lambda s: _digits(s, DPSVIGaussianMixture(20)),
    "Gaussian mixture, 5,000 drawn points, K = 20": _synthetic_mixture,
    "DP mixture, 1,297 digits, truncation 40": lambda s: _digits(s, DPSVIDPMixture(40)),
    "HMM, 25 drawn sequences of 200 steps, K = 10": lambda s: _sequences(s, 25),
    "HMM, 100 drawn sequences of 200 steps, K = 10": lambda s: _sequences(s, 100),
    "Poisson factorisation, pixels of 1,297 digits, K = 10": _pixels,
    "Poisson factorisation, 1,500 drawn users, 500 items, K = 10": _planted_counts,
}


def fit(problem: Problem, args, n_workers: int, passes: int, changes: bool, seed: int) -> dict:
    """What came of one fit, serial where `n_workers` is 0."""
    where: dict = {"engine": "serial"}
    if n_workers:
        cluster = VirtualCluster(
            n_workers=n_workers, network=TEN_GIGABIT, timing=TIMING, seed=seed,
            strategy=args.strategy,
        )  # fmt: skip
        where = {"engine": "simulated", "cluster": cluster}
    model = problem.estimator.set_params(
        max_iter=passes, incremental=changes, random_state=seed, **where
    )
    started = time.process_time()
    model.fit(**problem.train)
    seconds = time.process_time() - started
    n_items = len(problem.train.get("lengths", range(problem.train["X"].shape[0])))
    return {
        "n": n_workers, "passes": passes, "incremental": changes, "seed": seed,
        "score": model.score(**problem.test) / problem.unit, "bound": model.lower_bound_ / n_items,
        "visits": model._state.items, "cpu_seconds": seconds,
    }  # fmt: skip


def table(rows: list[dict]) -> str:
    """Markdown: scores, and what incremental passes gain; means and ranges over pairs of fits."""
    lines = [
        "| passes | workers | score, decayed | incremental | gain (lowest to highest) | gain of "
        "the bound | incremental, beside serial | CPU seconds, ratio |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    seeds = sorted({r["seed"] for r in rows})
    found = {(r["passes"], r["n"], r["incremental"], r["seed"]): r for r in rows}
    mean = statistics.mean

    def differences(what, passes, one, other):
        """Of pairs, `one` and `other` being workers and whether passes are incremental."""
        return [
            found[passes, *one, seed][what] - found[passes, *other, seed][what] for seed in seeds
        ]

    for passes, n in dict.fromkeys((r["passes"], r["n"]) for r in rows):
        old, new = (
            [found[passes, n, changes, seed] for seed in seeds] for changes in (False, True)
        )
        gains = differences("score", passes, (n, True), (n, False))
        bounds = differences("bound", passes, (n, True), (n, False))
        stale, ratio = "", ""
        if n and (passes, 0, True, seeds[0]) in found:
            stale = f"{mean(differences('score', passes, (n, True), (0, True))):+.4f}"
        elif not n:  # a simulation computes more than the fit
            ratios = [a["cpu_seconds"] / b["cpu_seconds"] for a, b in zip(new, old, strict=True)]
            ratio = f"{statistics.median(ratios):.2f}"
        lines.append(
            f"| {passes} | {n or 'serial'} | {mean(r['score'] for r in old):.4f} | "
            f"{mean(r['score'] for r in new):.4f} | "
            f"{mean(gains):+.4f} ({min(gains):+.4f} to {max(gains):+.4f}) | {mean(bounds):+.4f} | "
            f"{stale} | {ratio} |"
        )
    return "\n".join(lines) + "\n"


def main(argv=None) -> None:
    """Fit every problem in every cell with every seed; write JSON and tables."""
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(prog="python -m experiments.incremental", description=__doc__)
    parser.add_argument("--only", default="", help="problems whose names hold this")
    parser.add_argument(
        "--cells", default="10x0,30x0,10x2,10x8,10x64", help="passes and workers (%(default)s)"
    )
    parser.add_argument("--strategy", default="decay")
    parser.add_argument("--share", type=int, default=incremental.SHARE, help="one pass of so many")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("experiments/results/incremental"))
    args = parser.parse_args(argv)
    seeds = list(range(args.seeds))
    cells = [tuple(map(int, cell.split("x"))) for cell in args.cells.split(",")]
    source = provenance(
        "experiments.incremental", argv, ["numpy", "numba", "scikit-learn"],
        {"data and fits": seeds},
    )  # fmt: skip
    incremental.SHARE = args.share
    args.out.mkdir(parents=True, exist_ok=True)
    stem = args.out / "-".join(
        ["table", *([f"share-{args.share}"] if args.share != 2 else []),
         *([args.strategy] if args.strategy != "decay" else [])]
    )  # fmt: skip
    rows: dict[str, list[dict]] = {}
    text = f"# Incremental and decayed passes; workers are simulated\n\n{described(source)}\n"
    for name in (name for name in PROBLEMS if args.only in name):
        mine = rows[name] = []
        fit(PROBLEMS[name](0), args, 0, 2, True, 0)  # compiles
        for seed in seeds:
            problem = PROBLEMS[name](seed)
            for passes, n in cells:
                mine += [fit(problem, args, n, passes, i, seed) for i in (False, True)]
        text += f"\n## {name}\n\n{table(mine)}"
        facts = {"simulated": True, "share": args.share}
        content = {**source, **facts, "rows": rows}
        stem.with_suffix(".json").write_text(json.dumps(content, indent=1) + "\n")
        stem.with_suffix(".md").write_text(text)
        print(text[text.rindex("##") :], flush=True)


if __name__ == "__main__":
    main()
