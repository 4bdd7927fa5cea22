"""Batches that grow with falling curvature, against batches of one size."""

from __future__ import annotations

from functools import partial

from dpsvi import DPSGD
from dpsvi.optimize import network
from experiments.known_results.claim import Outcome
from experiments.known_results.compare import Entrant, compare, median, spread, values
from experiments.known_results.digits import CLASSES, HIDDEN, error, loss, parts, start

TITLE = "Batches that grow as the curvature falls"
SOURCE = "Yao, Gholami, Keutzer and Mahoney (2018)"
CLAIM = (
    "Doubling batch and rate whenever the largest eigenvalue of the Hessian has halved comes to "
    "the accuracy of small batches with a fraction of the updates, without a rate of its own to "
    "choose; large batches throughout lose accuracy."
)
PASSES, SMALL, LARGE = 40, 4, 64
TRIAL = (
    f"One thread, {PASSES} passes: `DPSGD` with batches of {SMALL}, of {LARGE}, and of {SMALL} "
    f"that may grow up to {LARGE} (`max_batch_size`) at the rate that was chosen for batches of "
    f"{SMALL}. Looked at are test error and updates. The authors' adversarial images are the next "
    "trial."
)
SIZES = {
    "small batches": (SMALL, None), "growing batches": (SMALL, LARGE),
    "large batches": (LARGE, None),
}  # fmt: skip


def fit(batch: int, most: int | None, passes: int, rate: float, seed: int, tuning: bool) -> dict:
    """What a fit came to, and how batches grew."""
    images, judged = parts()["train"], parts()["tuning" if tuning else "test"]
    found = DPSGD(
        learning_rate=rate, batch_size=batch, max_batch_size=most, max_iter=passes,
        engine="serial", random_state=seed,
    ).minimize(network.objective(*images, CLASSES, HIDDEN), start(seed))  # fmt: skip
    return {
        "loss": loss(found.x, judged), "error": error(found.x, judged),
        "train": loss(found.x, images), "updates": found.njev,
        "growth": [[int(look["epoch"]), float(look["eigenvalue"]), int(look["batch_size"])]
                   for look in found.growth],
    }  # fmt: skip


def score(run: dict) -> float:
    """Share of the images that are taken for another digit, at the end; ties go by the loss."""
    return run["error"] + 1e-6 * run["loss"]


def run(seeds, passes: int = PASSES) -> dict:
    """Small and large batches with rates of their own, growing ones with that of the small."""
    small, growing, large = (
        Entrant(name, partial(fit, *size, passes)) for name, size in SIZES.items()
    )
    rows = compare([small, large], seeds, score)
    rate = rows[small.name]["rate"]
    return {**rows, **compare([growing], seeds, score, (rate,))}


def outcome(rows: dict) -> Outcome:
    """No more errors than small batches, within half a point; fewer updates; large ones lose."""
    errors = {name: 100 * median(row, score) for name, row in rows.items()}
    updates = {name: median(row, lambda run: run["updates"]) for name, row in rows.items()}
    small, growing, large = SIZES
    ratio = updates[small] / updates[growing]
    return Outcome(
        [errors[growing] <= errors[small] + 0.5, ratio > 1.5, errors[large] > errors[growing]],
        f"Growing batches come to {errors[growing]:.1f} % errors, small ones to "
        f"{errors[small]:.1f} % with {ratio:.1f} times as many updates, large ones to "
        f"{errors[large]:.1f} %.",
        ["entrant", "rate", "updates", "test error, %", "test loss", "training loss"],
        [
            [name, f"{row['rate']:g}", spread(values(row, lambda run: run["updates"]), ",.0f"),
             spread([100 * found for found in values(row, lambda run: run["error"])], ".1f"),
             spread(values(row, lambda run: run["loss"])),
             spread(values(row, lambda run: run["train"]), ".4f")]
            for name, row in rows.items()
        ],
    )  # fmt: skip
