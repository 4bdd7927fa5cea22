"""Seconds to a test error: DPSGD on one and two threads beside scikit-learn.

The mark is the test error at which the first peer ends with its own stopping rule, the median of
all seeds.  Each entrant gets as many passes as its own curve, with the same seed, needs to be at or
below the mark, and the whole call of its fit with so many passes is timed: all entrants in turn,
`rounds` times, medians.  All code is compiled before, and BLAS has one thread.
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDClassifier
from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_limits

from dpsvi import DPSGD, DPSGDLogisticRegression, DPSGDMLPClassifier

PASSES = [1, 2, 3, 4, 5, 6, 8, 11, 15, 20, 30, 40, 60, 80, 100, 150, 200]


class Problem(NamedTuple):
    """Training and test data, and what is fitted to them."""

    name: str
    data: tuple  # X, y, test X, test y
    peers: dict  # name -> function of (seed, passes or None) that makes a classifier
    ours: dict
    same: dict = {}  # entrants whose parameters are those of another one, bit for bit


def logistic(name, data, alpha, scaling, **rates) -> Problem:
    """One-vs-rest logistic regression, the loss and the penalty of ``SGDClassifier``."""

    def peer(n_jobs):
        def make(seed, passes):
            limit = {} if passes is None else {"max_iter": passes, "tol": None}
            return SGDClassifier(
                loss="log_loss", alpha=alpha, random_state=seed, n_jobs=n_jobs, **limit
            )

        return make

    def ours(n_jobs):
        def make(seed, passes):
            optimizer = DPSGD(n_jobs=n_jobs, max_iter=passes, random_state=seed, **rates)
            return DPSGDLogisticRegression(
                alpha=alpha, loss="ovr", intercept_scaling=scaling, optimizer=optimizer
            )

        return make

    return Problem(
        name, data,
        {"SGDClassifier": peer(None), "SGDClassifier, n_jobs=2": peer(2)},
        {"DPSGD, 1 thread": ours(1), "DPSGD, 2 threads": ours(2)},
        {"SGDClassifier, n_jobs=2": "SGDClassifier"},
    )  # fmt: skip


def network(name, data, alpha, hidden, **rates) -> Problem:
    """A hidden layer of tanh and a softmax; scikit-learn divides its penalty by the batch."""

    def peer(**settings):
        def make(seed, passes):
            limit = {} if passes is None else {"max_iter": passes, "tol": 0.0}
            batch = 200
            return MLPClassifier(
                (hidden,), activation="tanh", alpha=alpha * batch, batch_size=batch,
                random_state=seed, **settings, **limit,
            )  # fmt: skip

        return make

    def ours(n_jobs):
        def make(seed, passes):
            optimizer = DPSGD(n_jobs=n_jobs, max_iter=passes, random_state=seed, **rates)
            return DPSGDMLPClassifier(
                hidden, activation="tanh", alpha=alpha, optimizer=optimizer, random_state=seed
            )

        return make

    sgd = {"solver": "sgd", "learning_rate_init": 0.1}
    return Problem(
        name, data, {"MLPClassifier, adam": peer(), "MLPClassifier, sgd": peer(**sgd)},
        {"DPSGD, 1 thread": ours(1), "DPSGD, 2 threads": ours(2)},
    )  # fmt: skip


def run(problem: Problem, seeds: int, rounds: int) -> list[dict]:
    """One record for each entrant and seed; the mark is that of the first peer."""
    makers = {**problem.peers, **problem.ours}
    for make in makers.values():
        _fit(make, problem, 0, 1)  # compiles
    first = next(iter(problem.peers.values()))
    mark = statistics.median(_fit(first, problem, seed, None)[1] for seed in range(seeds))
    records = []
    for seed in range(seeds):
        needed = {
            name: _needed(make, problem, seed, mark)
            for name, make in makers.items() if name not in problem.same
        }  # fmt: skip
        needed |= {name: needed[other] for name, other in problem.same.items()}
        seconds = {name: [] for name, passes in needed.items() if passes}
        errors = {name: [] for name in seconds}
        for _ in range(rounds):
            for name in seconds:
                taken, error = _fit(makers[name], problem, seed, needed[name])
                seconds[name].append(taken)
                errors[name].append(error)
        for name, passes in needed.items():
            records.append(
                {"problem": problem.name, "seed": seed, "entrant": name, "mark": mark,
                 "passes": passes, "seconds": seconds.get(name), "errors": errors.get(name)}
            )  # fmt: skip
            print(records[-1], flush=True)
    return records


def table(records) -> list[str]:
    """Lines of Markdown: medians over the seeds, ratios to the first peer seed by seed."""
    lines = [
        "| problem | test error to reach | entrant | seeds that do | passes | seconds | error "
        "| times as soon (range over seeds) |",
        "|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for problem in dict.fromkeys(r["problem"] for r in records):
        mine = [r for r in records if r["problem"] == problem]
        entrants = list(dict.fromkeys(r["entrant"] for r in mine))
        base = {
            r["seed"]: r["seconds"] for r in mine if r["entrant"] == entrants[0] and r["passes"]
        }
        for name in entrants:
            rows = [r for r in mine if r["entrant"] == name]
            reached = [r for r in rows if r["passes"]]
            count = f"{len(reached)} of {len(rows)}"
            start = f"| {problem} | {rows[0]['mark']:.4f} | {name} | {count} |"
            if not reached:
                lines.append(f"{start} | | | |")
                continue
            seconds = {r["seed"]: statistics.median(r["seconds"]) for r in reached}
            ratios = [
                statistics.median(base[seed]) / own for seed, own in seconds.items() if seed in base
            ]
            lines.append(
                f"{start} {statistics.median(r['passes'] for r in reached):g} "
                f"| {statistics.median(seconds.values()):.3f} "
                f"| {statistics.median(statistics.median(r['errors']) for r in reached):.4f} "
                + (f"| {statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f}) |"
                   if ratios else "| |")
            )  # fmt: skip
    return lines


def _fit(make: Callable, problem, seed, passes) -> tuple[float, float]:
    """Seconds of a fit and its test error."""
    X, y, test_X, test_y = problem.data
    classifier = make(seed, passes)
    started = time.perf_counter()
    with warnings.catch_warnings(), threadpool_limits(1, "blas"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        classifier.fit(X, y)
    seconds = time.perf_counter() - started
    return seconds, float(np.mean(classifier.predict(test_X) != test_y))


def _needed(make, problem, seed, mark) -> int | None:
    """The fewest passes after which the test error is at most `mark`."""
    for passes in PASSES:
        if _fit(make, problem, seed, passes)[1] <= mark:
            return passes
    return None
