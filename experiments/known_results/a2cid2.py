"""A2CiD2 on a ring, against plain gossip that communicates twice as much."""

from __future__ import annotations

import statistics
from functools import partial

from experiments.known_results.claim import Outcome
from experiments.known_results.compare import Entrant, compare, median, spread, values
from experiments.known_results.digits import fit
from experiments.known_results.replicas import Replicas

TITLE = "A2CiD2's ring as good as twice the communication"
SOURCE = "Nabli, Belilovsky and Oyallon (2023)"
CLAIM = (
    "On a ring, momentum in the mixing of neighbours brings nodes as near to each other, and the "
    "loss as low, as twice as many exchanges do without it."
)
WORKERS, PASSES, RATE = 16, 15, 0.3
TRIAL = (
    f"A ring of {WORKERS} nodes, {PASSES} passes: `a2cid2` with an exchange begun after every "
    "second step; the same without momentum (eta = 0, alpha = 1/2: asynchronous means of "
    "pairs) after every second step, and after every step. Looked at are the mean squared "
    f"distance of nodes from their mean over the second half, all with a rate of {RATE:g}, and the "
    "test loss of that mean, each with its own rate."
)
MOMENTUM, TWICE, PLAIN = "momentum", "plain, twice as many", "plain"


def _no_momentum(strategy) -> None:
    strategy._eta, strategy._alpha = 0.0, 0.5


FORMS = {PLAIN: (2, _no_momentum), TWICE: (1, _no_momentum), MOMENTUM: (2, None)}


def score(run: dict) -> float:
    """Loss at the end, of the mean of all nodes."""
    return run["loss"]


def apart(run: dict) -> float:
    """Mean squared distance of nodes from their mean, over the second half of a fit."""
    looks = run["looks"]
    return statistics.mean(looks[len(looks) // 2 : -1])  # the last look is at the end of all


def run(seeds, workers: int = WORKERS, passes: int = PASSES) -> dict:
    """The three forms with rates of their own, and with the same rate."""

    def trial(local_steps, change, rate, seed, tuning):
        replicas = Replicas(change)
        return fit(
            "a2cid2", rate, seed, n=workers, passes=passes, local_steps=local_steps, looks=0.25,
            tuning=tuning, make=replicas.cluster, look=lambda x: replicas.apart(),
        )  # fmt: skip

    entrants = [Entrant(name, partial(trial, *form)) for name, form in FORMS.items()]
    rows = compare(entrants, seeds, score)
    for name, fit_it in entrants:
        rows[name]["apart"] = [apart(fit_it(RATE, seed, False)) for seed in seeds]
    return rows


def outcome(rows: dict) -> Outcome:
    """Both within a tenth of what twice the communication does."""
    near = {name: statistics.median(row["apart"]) for name, row in rows.items()}
    loss = {name: median(row, score) for name, row in rows.items()}
    return Outcome(
        [near[MOMENTUM] <= 1.1 * near[TWICE], loss[MOMENTUM] <= 1.1 * loss[TWICE]],
        f"Squared distances are {near[MOMENTUM] / near[PLAIN]:.2f} times those of plain gossip "
        f"with momentum, and {near[TWICE] / near[PLAIN]:.2f} times with twice as many exchanges; "
        f"the loss is {loss[PLAIN]:.3f} plain, {loss[MOMENTUM]:.3f} with momentum and "
        f"{loss[TWICE]:.3f} with twice as many exchanges (within a tenth counts as the same).",
        ["form", "squared distance, one rate", "rate", "test loss", "test error, %", "messages"],
        [
            [name, spread(row["apart"]), f"{row['rate']:g}", spread(values(row, score)),
             spread([100 * error for error in values(row, lambda run: run["error"])], ".1f"),
             spread(values(row, lambda run: run["exchanges"]), ",.0f")]
            for name, row in rows.items()
        ],
    )  # fmt: skip
