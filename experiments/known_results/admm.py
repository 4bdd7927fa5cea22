"""EASGD where ADMM is unstable: a quadratic, workers in turn."""

from __future__ import annotations

import numpy as np

from dpsvi import DPSGD, VirtualCluster
from dpsvi.cluster.virtual import Timing
from experiments.known_results.claim import Outcome
from experiments.known_results.digits import FREE

TITLE = "EASGD where ADMM is unstable"
SOURCE = "Zhang, Choromanska and LeCun (2015)"
CLAIM = (
    "On the quadratic x^2 / 2, with workers that take turns, there are step sizes and penalties at "
    "which the (linearised) method of multipliers diverges; elastic averaging with the same step "
    "size and alpha = step size * penalty is stable at all of them."
)
WORKERS, CYCLES, START = (3, 8), 100, 1000.0
RATES = (0.001, 0.003, 0.01, 0.03, 0.1)
PENALTIES = (0.5, 1.0, 2.5, 4.0, 6.0, 9.0)
TRIAL = (
    "3 and 8 workers, step sizes "
    f"{', '.join(f'{rate:g}' for rate in RATES)}, penalties "
    f"{', '.join(f'{penalty:g}' for penalty in PENALTIES)}; nothing is drawn, so there is one run "
    "each. ADMM is plain NumPy: it is unstable where the spectral radius of a cycle of all workers "
    f"is above 1. EASGD is `elastic` with one local step, {CYCLES} cycles from {START:g}: it is "
    "unstable where the centre has ever been further from 0 than at the start."
)


def admm_cycle(n: int, rate: float, penalty: float) -> np.ndarray:
    """The linear map of one cycle: multipliers and parameters of n workers, and the centre.

    In turn, worker i steps on the quadratic and its penalty, as in equations (9) to (11) there::

        lambda_i <- lambda_i - (x_i - centre)
        x_i <- (x_i - rate x_i + rate penalty (lambda_i + centre)) / (1 + rate penalty)
        centre <- mean_j (x_j - lambda_j)
    """
    cycle = np.eye(2 * n + 1)
    for i in range(n):
        multiplier, own, mean = np.eye(2 * n + 1), np.eye(2 * n + 1), np.eye(2 * n + 1)
        multiplier[i, n + i], multiplier[i, -1] = -1, 1
        own[n + i, n + i] = 1 - rate
        own[n + i, i] = own[n + i, -1] = rate * penalty
        own[n + i] /= 1 + rate * penalty
        mean[-1, :n], mean[-1, n:-1], mean[-1, -1] = -1 / n, 1 / n, 0
        cycle = mean @ own @ multiplier @ cycle
    return cycle


def radius(cycle: np.ndarray) -> float:
    """The spectral radius; values that are 1 but for rounding count as 1."""
    return float(np.abs(np.linalg.eigvals(cycle)).max())


def easgd(n: int, rate: float, penalty: float, cycles: int) -> list[float]:
    """Distances of the centre from 0 after each cycle, by this program."""
    cluster = VirtualCluster(
        n_workers=n, strategy="elastic", strategy_options={"alpha": rate * penalty}, network=FREE,
        timing=Timing(step=1.0, value=0.0),
    )  # fmt: skip
    optimizer = DPSGD(
        learning_rate=rate / n, batch_size=1, max_iter=cycles, engine="simulated", local_steps=1,
        cluster=cluster, random_state=0,
    )  # fmt: skip
    found = optimizer.minimize(lambda x, items: x, np.array([START]), n, fun=lambda x: abs(x[0]))
    return found.history["fun"].tolist()


def run(
    seeds, workers=WORKERS, rates=RATES, penalties=PENALTIES, cycles: int = CYCLES
) -> dict:  # fmt: skip
    """Both at all points."""
    rows = {}
    for n in workers:
        for rate in rates:
            for penalty in penalties:
                centres = easgd(n, rate, penalty, cycles)
                rows[f"{n}, {rate:g}, {penalty:g}"] = {
                    "n": n, "radius": radius(admm_cycle(n, rate, penalty)),
                    "most": max(centres) / START, "end": centres[-1] / START,
                }  # fmt: skip
    return rows


def outcome(rows: dict) -> Outcome:
    """ADMM diverges somewhere, EASGD nowhere."""
    unstable = {name: row for name, row in rows.items() if row["radius"] > 1 + 1e-9}
    far = [name for name, row in rows.items() if row["most"] > 1]
    said = ", ".join(
        f"{sum(row['n'] == n for row in unstable.values())} of "
        f"{sum(row['n'] == n for row in rows.values())} points with {n} workers"
        for n in sorted({row["n"] for row in rows.values()})
    )
    worst = max((row["most"] for row in unstable.values()), default=0.0)
    return Outcome(
        [bool(unstable), not far],
        f"ADMM is unstable at {said}, elastic averaging at {len(far)} of {len(rows)}; where ADMM "
        f"is unstable, the centre never comes further than {worst:.4f} times its first distance.",
        ["workers, step size, penalty", "ADMM: spectral radius", "EASGD: most distance",
         "EASGD: distance at the end"],
        [
            [name, f"{row['radius']:.5f}", f"{row['most']:.4f}", f"{row['end']:.2g}"]
            for name, row in unstable.items()
        ],
    )  # fmt: skip
