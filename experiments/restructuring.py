"""``python -m experiments.restructuring``: components that are moved while a mixture is fitted.

Each problem is fitted from each kind of beginning plainly, with ``restructure=True``, and from five
beginnings of which the best bound counts (``n_init=5``); all else is as by default, one thread.
Scores are of held-out points, bounds of those of the fit, in nats a point.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

import numpy as np

from dpsvi import DPSVIDPMixture, DPSVIGaussianMixture
from experiments.family import gaussian_mixture
from experiments.provenance import described, provenance

WAYS = {"plain": {}, "restructure": {"restructure": True}, "n_init=5": {"n_init": 5}}


def _grid(seed, n=5_000):
    """25 round clusters that hardly overlap, of unequal size; some points are held out."""
    rng = np.random.default_rng(seed)
    centers = 6.0 * np.array([(i, j) for i in range(5) for j in range(5)])
    which = rng.choice(25, size=n + 2_000, p=rng.dirichlet(np.full(25, 5.0)))
    X = centers[which] + rng.normal(size=(len(which), 2))
    return X[:n], X[n:]


def _drawn(seed, n):
    X = gaussian_mixture.draw(np.random.default_rng(seed), n + 5_000)
    return X[5_000:], X[:5_000]


PROBLEMS = {
    "25 clusters on a grid, 5,000 points": (DPSVIGaussianMixture(25), _grid),
    "25 clusters on a grid, 5,000 points, DP of 50": (DPSVIDPMixture(50), _grid),
    "5,000 drawn points, 16 features, K = 20": (
        DPSVIGaussianMixture(20), lambda seed: _drawn(seed, 5_000),
    ),
    "50,000 drawn points, 16 features, K = 20": (
        DPSVIGaussianMixture(20), lambda seed: _drawn(seed, 50_000),
    ),
    "1,297 digits, 16 features, K = 20": (DPSVIGaussianMixture(20), gaussian_mixture.digits),
    "1,297 digits, 16 features, DP of 40": (DPSVIDPMixture(40), gaussian_mixture.digits),
}  # fmt: skip


def fit(name: str, init: str, way: str, seed: int) -> dict:
    """What came of one fit."""
    estimator, data = PROBLEMS[name]
    train, test = data(seed)
    model = estimator.set_params(
        engine="serial", init_params=init, restructure=False, n_init=1, random_state=seed
    ).set_params(**WAYS[way])
    started = time.process_time()
    model.fit(train)
    seconds = time.process_time() - started
    return {
        "init": init, "way": way, "seed": seed, "score": model.score(test),
        "bound": model.lower_bound_ / len(train), "cpu_seconds": seconds,
        "moves": getattr(model, "moves_", None),
    }  # fmt: skip


def table(rows: list[dict]) -> str:
    """Markdown: means, and of gains over plain fits of the same seed the range."""
    lines = [
        "| first responsibilities | fit | score | gain (lowest to highest) | bound | CPU seconds | "
        "merges, deletes, births |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    found = {(r["init"], r["way"], r["seed"]): r for r in rows}
    for init, way in dict.fromkeys((r["init"], r["way"]) for r in rows):
        mine = [r for r in rows if (r["init"], r["way"]) == (init, way)]
        gains = [r["score"] - found[init, "plain", r["seed"]]["score"] for r in mine]
        gain, moves = "", ""
        if way != "plain":
            gain = f"{statistics.mean(gains):+.3f} ({min(gains):+.3f} to {max(gains):+.3f})"
        if way == "restructure":
            moves = ", ".join(
                f"{statistics.mean(r['moves'][kind] for r in mine):.1f}"
                for kind in mine[0]["moves"]
            )
        score, bound, seconds = (
            statistics.mean(r[what] for r in mine) for what in ("score", "bound", "cpu_seconds")
        )
        lines.append(
            f"| {init} | {way} | {score:.3f} | {gain} | {bound:.3f} | {seconds:.2f} | {moves} |"
        )
    return "\n".join(lines) + "\n"


def main(argv=None) -> None:
    """Fit every problem in every way with every seed; write JSON and tables."""
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(
        prog="python -m experiments.restructuring", description=__doc__
    )
    parser.add_argument("--only", default="", help="problems whose names hold this")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("experiments/results/restructuring"))
    args = parser.parse_args(argv)
    seeds = list(range(args.seeds))
    source = provenance(
        "experiments.restructuring", argv, ["numpy", "numba", "scikit-learn"],
        {"data and fits": seeds},
    )  # fmt: skip
    args.out.mkdir(parents=True, exist_ok=True)
    rows: dict[str, list[dict]] = {}
    text = f"# Components that are moved while a mixture is fitted\n\n{described(source)}\n\n"
    text += "<!-- tables -->\n"
    for name in (name for name in PROBLEMS if args.only in name):
        fit(name, "kmeans", "restructure", 0)  # compiles
        rows[name] = [
            fit(name, init, way, seed)
            for init in ("merge", "kmeans", "random") for way in WAYS for seed in seeds
        ]  # fmt: skip
        text += f"\n**{name}**\n\n{table(rows[name])}"
        content = json.dumps({**source, "rows": rows}, indent=1)
        (args.out / "table.json").write_text(content + "\n")
        (args.out / "table.md").write_text(text)
        print(text[text.rindex("\n**") :], flush=True)


if __name__ == "__main__":
    main()
