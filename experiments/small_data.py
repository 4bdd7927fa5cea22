"""``python -m experiments.small_data``: how large a step of a fit to few items is to be.

Mixtures are fitted to small data sets of scikit-learn, factorisations to digits, as users of
pixels, and to made-up counts and ratings.  A batch is 256 items, or such that a pass has 5 to 80
steps, none of fewer than 16 items.  Scored are the lower bound, for each item, and held-out items,
a quarter of all, by the method `score`: means of the seeds, and what they gain over batches of 256.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from statistics import mean

import numpy as np

from dpsvi import (
    DPSVIDPMixture,
    DPSVIGaussianMixture,
    DPSVIMatrixFactorization,
    DPSVIPoissonFactorization,
)
from dpsvi.estimators.run_parameters import FEWEST, MOST, STEPS
from experiments.provenance import described, provenance
from experiments.record import kept

STEPS_A_PASS = 5, 10, 20, 40, 80
_RULE = f"{STEPS} steps"


def points(seed: int) -> Iterable[tuple[str, int, np.ndarray]]:
    """Names of data sets, numbers of components, and standardised points."""
    from sklearn import datasets
    from sklearn.decomposition import PCA

    yield "digits, 16 components", 20, PCA(16, random_state=0).fit_transform(
        datasets.load_digits().data
    )
    for name, n_components, n_features in (
        ("iris", 3, 4), ("wine", 5, 6), ("breast_cancer", 8, 8), ("diabetes", 6, 10)
    ):  # fmt: skip
        X = getattr(datasets, f"load_{name}")().data[:, :n_features]
        yield name, n_components, (X - X.mean(axis=0)) / X.std(axis=0)


def counts(seed: int) -> Iterable[tuple[str, int, np.ndarray]]:
    """Names of data sets, numbers of factors, and counts of users and items."""
    from sklearn.datasets import load_digits

    rng = np.random.default_rng(seed)
    yield "digits, 64 pixels", 10, load_digits().data
    for name, expected in _tastes(rng):
        yield name, 8, rng.poisson(expected).astype(float)


def ratings(seed: int) -> Iterable[tuple[str, int, np.ndarray]]:
    """The same with normal noise and four of five ratings missing, which are zero."""
    rng = np.random.default_rng(seed)
    for name, expected in _tastes(rng):
        rated = expected + 0.3 * rng.normal(size=expected.shape)
        yield name, 8, rated * (rng.random(rated.shape) < 0.2)


def _tastes(rng):
    """Names, and what users of five tastes choose of items on average."""
    for n_users, n_items in ((200, 100), (1_000, 200), (3_000, 300)):
        users, items = (rng.gamma(0.3, size=(n, 5)) for n in (n_users, n_items))
        yield f"made up, {n_items} items", users @ items.T


MODELS = {
    DPSVIGaussianMixture: points, DPSVIDPMixture: points,
    DPSVIPoissonFactorization: counts, DPSVIMatrixFactorization: ratings,
}  # fmt: skip


def sizes(n_items: int) -> dict[str, int]:
    """Batches to compare, by name."""
    by_steps = {
        f"{steps} steps": int(np.clip(n_items // steps, FEWEST, MOST)) for steps in STEPS_A_PASS
    }
    return {f"{MOST} items": MOST, **by_steps}


def samples(n_seeds: int) -> Iterable[tuple[dict, partial, np.ndarray, np.ndarray]]:
    """What a row says of the data, the estimator but for its batches, rows to fit and to score."""
    for model, draw in MODELS.items():
        for seed in range(n_seeds):
            for name, size, data in draw(seed):
                whole = np.random.default_rng(seed).permutation(data)
                test, train = np.split(whole, [len(whole) // 4])
                facts = {"model": model.__name__, "data": name, "items": len(train), "K": size}
                yield (
                    {**facts, "seed": seed}, partial(model, size, random_state=seed, n_jobs=1),
                    train, test,
                )  # fmt: skip


def measure(n_seeds: int) -> list[dict]:
    """Fit every model to all its data with every batch and seed."""
    rows = []
    for facts, estimator, train, test in samples(n_seeds):
        fitted: dict[int, tuple[float, float]] = {}
        for way, batch in sizes(len(train)).items():
            if batch not in fitted:
                fit = estimator(batch_size=batch).fit(train)
                fitted[batch] = fit.lower_bound_ / len(train), float(fit.score(test))
            bound, score = fitted[batch]
            rows.append({**facts, "way": way, "bound": bound, "score": score})
    return rows


def lines_of(rows: list[dict], ways: list[str], cells: Callable[[list[dict]], list[str]]):
    """A table with a line for each model and data set, whose `cells` are made of its rows."""
    yield "| model | data | items | K | " + " | ".join(ways) + " |"
    yield "|" + "---|" * (4 + len(ways))
    key = itemgetter("model", "data", "items", "K")
    for group, found in groupby(sorted(rows, key=key), key):
        yield "| {} | {} | {:,} | {} | ".format(*group) + " | ".join(cells(list(found))) + " |"


def table(rows: list[dict]) -> list[str]:
    """The page, but for its title."""
    ways = list(dict.fromkeys(row["way"] for row in rows))

    def cells(mine):
        bound, score = (
            [mean(row[what] for row in mine if row["way"] == way) for way in ways]
            for what in ("bound", "score")
        )
        pairs = zip(bound, score, strict=True)
        gains = [f"{b - bound[0]:+.3f} / {s - score[0]:+.3f}" for b, s in pairs][1:]
        return [f"{bound[0]:.3f} / {score[0]:.3f}", *gains]

    return [
        "Lower bound an item / score of held-out items: with batches of the first size, then what "
        f"others gain. The rule of `batch_size=None` is {_RULE}; mean of "
        f"{len({row['seed'] for row in rows})} seeds.", "", *lines_of(rows, ways, cells),
    ]  # fmt: skip


def command(name: str, text: str, title: str, seeds: int, measure, table, argv) -> None:
    """``python -m experiments.NAME``: measure, and write JSON and a page."""
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(prog=f"python -m experiments.{name}", description=text)
    parser.add_argument("--seeds", type=int, default=seeds)
    parser.add_argument("--out", type=Path, default=Path(f"experiments/results/{name}"))
    parser.add_argument("--redraw", action="store_true", help="the table, from what was kept")
    args = parser.parse_args(argv)
    source = provenance(
        f"experiments.{name}", argv, ["numpy", "numba", "scikit-learn"],
        {"fit": list(range(args.seeds))},
    )  # fmt: skip
    found = kept(
        args.out / f"{name}.json", source, None if args.redraw else lambda: measure(args.seeds)
    )
    page = [f"# {title}", "", described(found), "", *table(found["rows"])]
    (args.out / f"{name}.md").write_text("\n".join(page) + "\n")


def main(argv=None) -> None:
    """Compare batches."""
    command("small_data", __doc__, "Batches of small data", 8, measure, table, argv)


if __name__ == "__main__":
    main()
