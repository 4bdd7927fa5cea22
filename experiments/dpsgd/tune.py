"""Step sizes, chosen on a validation split: a fifth of the training data, with seeds of its own."""

from __future__ import annotations

import statistics
import time
import warnings
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from experiments.dpsgd.entrants import Problem

PASSES = (1, 2, 3, 4, 5, 6, 8, 11, 15, 20, 30, 40, 60)
SEEDS = (100, 101, 102)  # none of the race's


class Fit(NamedTuple):
    """What a fit came to: seconds by the clock and of all processors, share of wrong labels."""

    seconds: float
    processor: float
    error: float


class Choice(NamedTuple):
    """A step size, the passes after which it was at the mark on the validation split, the error."""

    step: str
    passes: int
    error: float


class Tuned(NamedTuple):
    """What the validation split says.

    Parameters
    ----------
    ends : str
        The step size with which the first entrant has the lowest error at its own end.
    mark : float
        That error, the median over the seeds.
    choices : dict of str to Choice
        By entrant: what was soonest at the mark.
    """

    ends: str
    mark: float
    choices: dict[str, Choice]


def tuned(problem: Problem) -> Tuned:
    """Choose a step size for every entrant: the one that needs the fewest passes to the mark.

    Of several the one with the lowest error; where none gets there, the lowest after all passes.
    """
    inner = _validation(problem)
    name, first = next(iter(inner.entrants.items()))
    errors = {step: _median(inner, name, step, None) for step in first.steps}
    ends = min(errors, key=errors.get)
    choices = {}
    for name, entrant in inner.entrants.items():
        if entrant.like:
            choices[name] = choices[entrant.like]
            continue
        for passes in PASSES:
            found = {step: _median(inner, name, step, passes) for step in entrant.steps}
            best = min(found, key=found.get)
            choices[name] = Choice(best, passes, found[best])
            if found[best] <= errors[ends]:
                break
        print(problem.name, name, choices[name], flush=True)
    return Tuned(ends, errors[ends], choices)


def fit(problem: Problem, name: str, step: str, seed: int, passes: int | None) -> Fit:
    """One fit of an entrant; BLAS has one thread."""
    X, y, test_X, test_y = problem.data
    entrant = problem.entrants[name]
    classifier = entrant.make(entrant.steps[step], seed, passes)
    started = time.perf_counter(), time.process_time()
    with warnings.catch_warnings(), threadpool_limits(1, "blas"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        classifier.fit(X, y)
    ended = time.perf_counter(), time.process_time()
    error = float(np.mean(classifier.predict(test_X) != test_y))
    return Fit(ended[0] - started[0], ended[1] - started[1], error)


def _median(problem, name, step, passes) -> float:
    return statistics.median(fit(problem, name, step, seed, passes).error for seed in SEEDS)


def _validation(problem: Problem) -> Problem:
    """The same problem without its test data."""
    X, y, *_ = problem.data
    rows = np.arange(X.shape[0])
    train, held_out = train_test_split(rows, test_size=0.2, random_state=0, stratify=y)
    return problem._replace(data=(X[train], y[train], X[held_out], y[held_out]))
