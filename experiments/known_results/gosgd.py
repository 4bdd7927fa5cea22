"""GoSGD against EASGD."""

from __future__ import annotations

from experiments.known_results.claim import Outcome
from experiments.known_results.compare import (
    Entrant,
    compare,
    median,
    sooner,
    spread,
    values,
    wins,
)  # fmt: skip
from experiments.known_results.digits import fit

TITLE = "GoSGD against EASGD"
SOURCE = "Blot, Picard, Cord and Thome (2016)"
CLAIM = (
    "Workers that push to a random other one with probability p after a step learn sooner, in "
    "steps, than elastic averaging that exchanges every 1 / p steps, also with a p as small as "
    "0.02."
)
WORKERS, PASSES, PERIODS, TARGET = 8, 15, (10, 50), 0.25
TRIAL = (
    f"{WORKERS} workers, {PASSES} passes, p = 0.1 and 0.02: `gossip`, and `elastic` with 10 and 50 "
    "steps between exchanges. Looked at are the loss at the end and the passes until it is "
    f"{TARGET}, by which rates are chosen."
)


def passes_needed(run: dict) -> float:
    """Passes until the target."""
    return sooner(run, TARGET, 0)


def score(run: dict) -> float:
    """Loss at the end."""
    return run["loss"]


def run(seeds, workers: int = WORKERS, passes: int = PASSES, periods=PERIODS) -> dict:
    """Both for every p."""
    common = {"n": workers, "passes": passes, "looks": 0.25}
    entrants = []
    for period in periods:
        settings = {
            "GoSGD": {"strategy": "gossip", "options": {"probability": 1 / period}},
            "EASGD": {"strategy": "elastic", "local_steps": period},
        }
        for name, own in settings.items():
            entrants.append(
                Entrant(
                    f"{name}, p = {1 / period:g}",
                    lambda rate, seed, tuning, own=own: fit(
                        rate=rate, seed=seed, tuning=tuning, **own, **common
                    ),
                )
            )
    return compare(entrants, seeds, passes_needed)


def outcome(rows: dict) -> Outcome:
    """Sooner at the target for every p, and lower at the end."""
    names = [name for name in rows if name.startswith("GoSGD")]
    pairs = [(rows[name], rows[name.replace("GoSGD", "EASGD")]) for name in names]
    said, parts = [], []
    for name, (ours, theirs) in zip(names, pairs, strict=True):
        needed = [median(row, passes_needed) for row in (ours, theirs)]
        parts += [needed[0] < needed[1], median(ours, score) < median(theirs, score)]
        said.append(
            f"with {name.split(', ')[1]} GoSGD needs {needed[0]:.3g} passes to the target, EASGD "
            f"{needed[1]:.3g}, and GoSGD's loss at the end is lower for "
            f"{wins(ours, theirs, score)} of {len(ours['runs'])} seeds"
        )
    return Outcome(
        parts, "; ".join(said)[0].upper() + "; ".join(said)[1:] + ".",
        ["entrant", "rate", f"passes to a loss of {TARGET}", "test loss", "test error, %"],
        [
            [name, f"{row['rate']:g}", spread(values(row, passes_needed), ".3g"),
             spread(values(row, score)),
             spread([100 * error for error in values(row, lambda run: run["error"])], ".1f")]
            for name, row in rows.items()
        ],
    )  # fmt: skip
