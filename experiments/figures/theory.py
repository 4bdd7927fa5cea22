"""The paper's theory on trial, on a problem where everything is known.

``f(v) = |v|^2 / 2`` in five dimensions, gradients with unit noise, the recursion (4) of Alg. 1 and
2 itself: the master adds M displacements of workers that had read the parameters D' steps ago, each
of pB steps in which the last p - 1 are not yet to be seen.  All numbers are SIMULATED.
"""

from __future__ import annotations

import math
from collections import deque
from pathlib import Path

import numpy as np

from dpsvi.strategies.displacement import stable_below
from experiments.figures.draw import pyplot, save

DIMENSIONS, START, N_SEEDS = 5, 3.0, 20
WORSE = 1.25  # times the mean squared gradient without staleness: this much is too much


def descend(
    T: int, *, M: int = 1, B: int = 1, p: int = 1, delay: int = 0, rate: float | None = None,
    seed: int = 0,
) -> float:  # fmt: skip
    """Mean over the T global steps and 20 runs of the squared gradient norm.

    `rate` is rho = eta; by default that of (9), up to its constant: ``1 / sqrt(T M p B)``.
    """
    rng = np.random.default_rng(seed)
    n_local = p * B
    rate = 1 / math.sqrt(T * M * n_local) if rate is None else rate
    v = np.full((N_SEEDS, DIMENSIONS), START)
    past = deque([v.copy()], delay + 1)
    total = 0.0
    for _ in range(T):
        total += float((v**2).sum(axis=1).mean())
        step = np.zeros_like(v)
        for _ in range(M):
            path = deque([past[0].copy()], p)
            for _ in range(n_local):
                gradient = path[0] + rng.standard_normal(v.shape)
                step += gradient
                path.append(path[-1] - rate * gradient)
        v = v - rate * step
        past.append(v.copy())
        if not np.isfinite(v).all() or np.abs(v).max() > 1e6:
            return math.inf
    return total / T


def rate_of_convergence(quick: bool) -> list[dict]:
    """(11): the mean squared gradient times sqrt(T M p B) does not depend on T, M, p, B."""
    rows = []
    for T in (100, 400) if quick else (100, 400, 1600, 6400):
        for M, p, B in ((1, 1, 1), (4, 1, 1), (1, 1, 4), (1, 4, 1), (4, 1, 4), (2, 2, 4)):
            found = descend(T, M=M, p=p, B=B, delay=1)
            rows.append(
                {"T": T, "M": M, "p": p, "B": B, "gradient": found,
                 "constant": found * math.sqrt(T * M * p * B)}
            )  # fmt: skip
    return rows


def guard(n_steps: int = 4000) -> list[dict]:
    """The largest stable product a for D' = 0 to 4: found by bisection, and as predicted."""
    rows = []
    for delay in range(5):
        low, high = 0.0, 3.0
        while high - low > 1e-3:
            middle = (low + high) / 2
            low, high = (middle, high) if _settles(middle, delay, n_steps) else (low, middle)
        rows.append({"D'": delay, "found": low, "predicted": stable_below(delay)})
    return rows


def _settles(a, delay, n_steps) -> bool:
    """Whether ``x_{t+1} = x_t - a x_{t-D'}`` dies out."""
    past = deque([1.0] * (delay + 1), delay + 1)
    largest = deque(maxlen=50)
    for _ in range(n_steps):
        past.append(past[-1] - a * past[0])
        largest.append(abs(past[-1]))
        if largest[-1] > 1e3:
            return False
    return max(largest) < 1


def most_workers(quick: bool) -> list[dict]:
    """How many workers, D' = n - 1, until the result is 25 % worse: grows as sqrt(T)."""
    return [
        {"T": T, "n": _largest(lambda n, T=T: descend(T, delay=n - 1), descend(T))}
        for T in ((100, 400) if quick else (100, 400, 1600, 6400))
    ]


def most_threads(quick: bool) -> list[dict]:
    """How many threads with B = 1 until the result is 25 % worse; the paper bounds it by T^1/4."""
    rows = []
    for T in (100, 200) if quick else (50, 100, 200, 400):

        def excess(p, T=T):
            # At p = 1 with the same number of samples and the same rate.
            rate = 1 / math.sqrt(T * p)
            return descend(T, p=p, rate=rate) / descend(T * p, rate=rate)

        rows.append({"T": T, "p": _largest(excess, 1.0)})
    return rows


def _largest(measure, alone) -> int:
    """The largest n with ``measure(n) <= WORSE * alone``, by doubling and bisection."""
    low, high = 1, 2
    while measure(high) <= WORSE * alone:
        low, high = high, 2 * high
        if high > 4096:
            return low
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if measure(middle) <= WORSE * alone else (low, middle)
    return low


def slope(rows: list[dict], name: str) -> float:
    """Exponent e of ``rows[name] ~ T^e``."""
    return float(np.polyfit(np.log([r["T"] for r in rows]), np.log([r[name] for r in rows]), 1)[0])


def draw(found: dict, path: Path) -> None:
    """Four trials: the rate, the guard, the bounds on n and on p; and a table."""
    plt = pyplot()
    figure, axes = plt.subplots(1, 4, figsize=(16, 3.8))
    rate, guard = found["rate"], found["guard"]
    for M, p, B in dict.fromkeys((r["M"], r["p"], r["B"]) for r in rate):
        mine = [r for r in rate if (r["M"], r["p"], r["B"]) == (M, p, B)]
        axes[0].plot(
            [r["T"] * M * p * B for r in mine], [r["gradient"] for r in mine], "o-",
            label=f"M={M}, p={p}, B={B}", markersize=4, linewidth=1,
        )  # fmt: skip
    axes[0].set(xscale="log", yscale="log", xlabel="T M p B", ylabel="mean |gradient|^2",
                title="rate: 1/sqrt(T M p B)")  # fmt: skip
    axes[0].legend(fontsize=7)
    delays = [row["D'"] for row in guard]
    axes[1].plot(delays, [row["predicted"] for row in guard], "-", label="2 cos(D' pi/(2D'+1))")
    axes[1].plot(delays, [row["found"] for row in guard], "o", label="found by bisection")
    axes[1].set(xlabel="D'", ylabel="largest stable product a", title="guard", xticks=delays)
    axes[1].legend(fontsize=8)
    for axis, name, title, bound in (
        (axes[2], "n", "workers until 25 % worse", 0.5),
        (axes[3], "p", "threads (B = 1) until 25 % worse", 0.25),
    ):
        rows = found["workers" if name == "n" else "threads"]
        T = np.array([row["T"] for row in rows])
        axis.plot(T, [row[name] for row in rows], "o-", label="found")
        axis.plot(T, rows[0][name] * (T / T[0]) ** bound, "--", label=f"paper: T^{bound:g}")
        axis.set(xscale="log", yscale="log", xlabel="T", ylabel=name, title=title)
        axis.set_xticks(T, [str(t) for t in T])
        axis.set_yticks([row[name] for row in rows], [str(row[name]) for row in rows])
        axis.minorticks_off()
        axis.legend(fontsize=8)
    for axis in axes:
        axis.grid(alpha=0.3)
    figure.suptitle("The recursion (4) on a quadratic (SIMULATED)", fontsize=10)
    save(figure, path)
    lines = ["| T | M | p | B | mean squared gradient | times sqrt(T M p B) |"]
    lines += ["|---|---|---|---|---|---|"]
    lines += [
        f"| {r['T']} | {r['M']} | {r['p']} | {r['B']} | {r['gradient']:.3f} | {r['constant']:.1f} |"
        for r in rate
    ]
    lines += ["", "| D' | largest stable a, found | predicted |", "|---|---|---|"]
    lines += [
        f"| {delay} | {r['found']:.3f} | {r['predicted']:.3f} |"
        for delay, r in zip(delays, guard, strict=True)
    ]
    lines += ["", "| T | workers n | T | threads p |", "|---|---|---|---|"]
    lines += [
        f"| {w['T']} | {w['n']} | {t['T']} | {t['p']} |"
        for w, t in zip(found["workers"], found["threads"], strict=True)
    ]
    lines += [
        "", f"n grows as T^{slope(found['workers'], 'n'):.2f} (paper: 1/2), "
        f"p as T^{slope(found['threads'], 'p'):.2f} (the paper's 1/4 is safe, not tight, here).",
    ]  # fmt: skip
    path.with_suffix(".md").write_text("\n".join(lines) + "\n", "utf-8")
