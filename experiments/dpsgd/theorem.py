"""Theorem 3.1 on trial: mean squared gradient norms of a network on a virtual cluster.

The theorem says of runs as :mod:`experiments.dpsgd.descent` makes them

    (1/T) sum_t E |grad f(v_t)|^2 = O(1 / sqrt(T M p B))

whatever the staleness, as long as the workers n are at most of the order of sqrt(T) and the threads
p of T^(1/4).  Three sweeps: over T; over n and over p, each at three T, against serial SGD with as
many gradients and the same rate.  Too many are those that end :data:`WORSE` times above it.
"""

from __future__ import annotations

import statistics

import numpy as np

from experiments.dpsgd.descent import constants, measure

FORMS = {  # n, M, p, B
    "n = M = p = B = 1": (1, 1, 1, 1),
    "n = M = 4": (4, 4, 1, 1),
    "p = 4": (1, 1, 4, 1),
    "B = 4": (1, 1, 1, 4),
    "n = M = p = 2": (2, 2, 2, 1),
}
LENGTHS = (128, 512, 2048)  # T of the first sweep
BOUNDED = (256, 1024, 4096)  # T of the others
POWERS = {"workers": 1 / 2, "threads": 1 / 4}  # of T, in the bounds
NAMES = {"workers": "n", "threads": "p"}
SHARES = (1 / 8, 1 / 4, 1 / 2, 1, 3 / 2, 2, 4)  # n in sqrt(T)
THREADS = (4, 16, 64, 256)
MOST = 2**18  # T p, for the time that a sweep takes
WORSE = 1.25  # times the mean squared norm of serial SGD: this much is too much


def settings() -> list[tuple[str, str, tuple]]:
    """All that is run: sweep, name, (T, n, M, p, B)."""
    plan = [("T", name, (length, *form)) for name, form in FORMS.items() for length in LENGTHS]
    for length in BOUNDED:
        name = f"T = {length}"
        workers = [int(share * length**0.5) for share in SHARES]
        plan += [("workers", name, (length, n, 1, 1, 1)) for n in workers]
        threads = [p for p in THREADS if length * p <= MOST]
        plan += [("threads", name, (length, 1, 1, p, 1)) for p in threads]
    return plan


def run(seeds: int) -> list[dict]:
    """One record for each setting and seed, with the norm of serial SGD beside its own."""
    found, rows, serial = constants(), [], {}
    c = float(np.sqrt(found["drop"] / (found["L"] * found["V2"])))
    for sweep, name, (length, n, m, p, b) in settings():
        for seed in range(seeds):
            alone = length * m * p * b, seed
            if alone not in serial:
                serial[alone] = measure(alone[0], 0, 1, 1, 1, seed, c)["norm"]
            row = measure(length, n, m, p, b, seed, c)
            row["times_serial"] = row["norm"] / serial[alone]
            rows.append({"sweep": sweep, "name": name, **row, "c": c, **found})
        print(rows[-1], flush=True)
    return rows


def medians(rows, sweep: str) -> dict[str, list[dict]]:
    """Medians over the seeds: name -> records in the order of the sweep."""
    found = {}
    for row in rows:
        if row["sweep"] == sweep and row["seed"] == 0:
            same = [r for r in rows if all(r[k] == row[k] for k in ("sweep", "name", *"TnMpB"))]
            keys = "norm", "times_serial", "staleness", "loss"
            found.setdefault(row["name"], []).append(
                {**row, **{k: statistics.median(r[k] for r in same) for k in keys}}
            )
    return found


def leaving(found: list[dict], sweep: str) -> float | None:
    """Workers or threads at which the norm is `WORSE` times serial SGD's; None: at none tried.

    Log-linear between the two settings around it.
    """
    before = 1, 1.0
    for row in found:
        number, times = row[NAMES[sweep]], row["times_serial"]
        if times > WORSE:
            logs = np.log([before[1], times])
            return float(np.exp(np.interp(np.log(WORSE), logs, np.log([before[0], number]))))
        before = number, times
    return None


def scaled(row) -> float:
    """The mean squared norm times sqrt(T M p B): the theorem bounds it."""
    return row["norm"] * np.sqrt(row["T"] * row["M"] * row["p"] * row["B"])


def bound(row) -> float:
    """What (11) bounds :func:`scaled` by where nothing is over-written: 6 sqrt(L D V^2)."""
    return 6 * float(np.sqrt(row["L"] * row["drop"] * row["V2"]))
