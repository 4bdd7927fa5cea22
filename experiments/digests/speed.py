"""The speed of one side in shares of the other's: pairs of fits, in turn."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

PAIRS = 20  # of a fit
PROCESSES = 10  # of each side, which make them


def pairs(
    name: str, there: Callable, here: Callable, n_pairs: int = PAIRS
) -> list[tuple[float, float]]:
    """Seconds of a fit on both sides, so many times; who begins changes from pair to pair.

    A first fit of each, which compiles and makes the data, does not count.
    """
    there(name), here(name)
    found = []
    for number in range(n_pairs):
        if number % 2:
            mine = here(name)
            found.append((there(name), mine))
        else:
            other = there(name)
            found.append((other, here(name)))
    return found


def ratio(seconds: list[tuple[float, float]]) -> tuple[float, float, float]:
    """Speed here over speed there.

    Returns
    -------
    ratio, low, high : float
        The ratio of the medians, and the middle 95 % of it over 2,000 samples of the pairs drawn
        with replacement.
    """
    found = np.array(seconds)
    chosen = np.random.default_rng(0).integers(len(found), size=(2000, len(found)))
    there, here = np.median(found[chosen], axis=1).T
    low, high = np.quantile(there / here, [0.025, 0.975])
    there, here = np.median(found, axis=0)
    return float(there / here), float(low), float(high)


def table(ratios: dict[str, tuple[float, float, float]]) -> str:
    """Ratios as Markdown."""
    lines = ["| fit | speed here / there | 95 % |", "|---|---|---|"]
    for name, (middle, low, high) in ratios.items():
        lines.append(f"| {name} | {middle:.3f} | {low:.3f} to {high:.3f} |")
    return "\n".join(lines)
