"""Equal chances: all entrants of a trial choose their rates from one grid, by one score."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from typing import NamedTuple

RATES = (0.1, 0.3, 1.0, 3.0)
TUNING_SEEDS = (1000, 1001, 1002)


class Entrant(NamedTuple):
    """One side of a comparison.

    Parameters
    ----------
    name : str
    fit : callable(rate, seed, tuning) -> dict
        As :func:`experiments.known_results.digits.fit`.
    """

    name: str
    fit: Callable[[float, int, bool], dict]


def compare(
    entrants: Sequence[Entrant], seeds: Sequence[int], score: Callable[[dict], float],
    rates: Sequence[float] = RATES,
) -> dict[str, dict]:  # fmt: skip
    """Fits of all entrants, each with the rate at which its median score of tuning fits is lowest.

    Returns
    -------
    dict of dict
        By entrant: ``rate``, ``tried``, the scores of all rates, None where fits failed, and
        ``runs``, a dict for each seed.
    """
    found = {}
    for name, fit in entrants:
        tried = [
            statistics.median(scored(fit(rate, seed, True), score) for seed in TUNING_SEEDS)
            for rate in rates
        ]
        best = rates[min(range(len(rates)), key=tried.__getitem__)]
        runs = [fit(best, seed, False) for seed in seeds]
        told = [value if math.isfinite(value) else None for value in tried]  # as JSON can hold
        found[name] = {"rate": best, "tried": dict(zip(map(str, rates), told, strict=True)),
                       "runs": runs}  # fmt: skip
        print(f"{name}: rate {best:g}, {spread([scored(run, score) for run in runs])}", flush=True)
    return found


def scored(run: dict, score: Callable[[dict], float]) -> float:
    """The score of a run; infinite where it failed or is no number."""
    value = math.inf if "failed" in run else score(run)
    return value if math.isfinite(value) else math.inf


def values(row: dict, score: Callable[[dict], float]) -> list[float]:
    """The scores of all seeds of an entrant."""
    return [scored(run, score) for run in row["runs"]]


def median(row: dict, score: Callable[[dict], float]) -> float:
    """Their median."""
    return statistics.median(values(row, score))


def wins(row: dict, other: dict, score: Callable[[dict], float]) -> int:
    """Seeds with which `row` has a lower score than `other`, which has the same seeds."""
    pairs = zip(values(row, score), values(other, score), strict=True)
    return sum(mine < theirs for mine, theirs in pairs)


def sooner(run: dict, target: float, clock: int) -> float:
    """Passes (`clock` 0) or virtual seconds (1) until the loss is at most `target`; or infinity."""
    return next((row[clock] for row in run["curve"] if row[2] <= target), math.inf)


def spread(numbers: Sequence[float], form: str = ".3f") -> str:
    """Median and range, as tables have them.

    Examples
    --------
    >>> spread([0.2, 0.1, 0.4])
    '0.200 (0.100-0.400)'
    """
    texts = [
        "never" if number == math.inf else format(number, form)
        for number in (statistics.median(numbers), min(numbers), max(numbers))
    ]
    return f"{texts[0]} ({texts[1]}-{texts[2]})"
