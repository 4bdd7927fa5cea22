"""GALA's agents stay near each other."""

from __future__ import annotations

import math
import statistics

from experiments.known_results.claim import Outcome
from experiments.known_results.compare import spread
from experiments.known_results.digits import fit
from experiments.known_results.replicas import Replicas

TITLE = "GALA's agents stay near each other"
SOURCE = "Assran, Romoff, Ballas, Pineau and Rabbat (2019)"
CLAIM = (
    "However long they learn, agents that mix along a directed graph stay within a ball around "
    "their mean, whose radius is at most proportional to their step size."
)
WORKERS, PASSES, RATES = 8, 20, (0.03, 0.1, 0.3)
TRIAL = (
    f"A directed ring of {WORKERS} nodes, {PASSES} passes, `gala` with `tau=0` (all wait) and "
    "without a bound, and nodes that never send; at rates of "
    f"{', '.join(f'{rate:g}' for rate in RATES)}, nothing is chosen. Looked at is the "
    "largest distance of a node from the mean of all, four times a pass: the most of it in each "
    "half of the fit."
)
FORMS = {"tau = 0": {"tau": 0}, "no bound": {}, "alone": {}}


def _never_send(strategy) -> None:
    strategy.target = lambda: None


def run(seeds, workers: int = WORKERS, passes: int = PASSES, rates=RATES) -> dict:
    """The largest distances in each half, for all forms and rates."""
    rows = {}
    for form, options in FORMS.items():
        for rate in rates:
            halves = []
            for seed in seeds:
                replicas = Replicas(_never_send if form == "alone" else None)
                looks = fit(
                    "gala", rate, seed, n=workers, passes=passes, options=options, looks=0.25,
                    make=replicas.cluster, look=lambda x, replicas=replicas: replicas.distance(),
                )["looks"][:-1]  # fmt: skip
                middle = len(looks) // 2
                halves.append([max(looks[:middle]), max(looks[middle:])])
            rows[f"{form}, {rate:g}"] = {"form": form, "rate": rate, "halves": halves}
            print(f"{form}, {rate:g}: {spread([late for _, late in halves])}", flush=True)
    return rows


def _medians(rows: dict, form: str) -> list[tuple[float, float, float]]:
    """Rate, and the largest distances in both halves, medians over seeds, of all rates."""
    return [
        (row["rate"], *(statistics.median(half) for half in zip(*row["halves"], strict=True)))
        for row in rows.values() if row["form"] == form
    ]  # fmt: skip


def outcome(rows: dict) -> Outcome:
    """It does not grow in the second half, and grows no faster than the rate."""
    parts, said = [], []
    for form in ("tau = 0", "no bound"):
        found = _medians(rows, form)
        growth = max(late / early for _, early, late in found)
        (low, *first), (high, *last) = found[0], found[-1]
        exponent = math.log(max(last) / max(first)) / math.log(high / low)
        parts += [growth <= 1, exponent <= 1]
        said.append(
            f"{form}: at most {growth:.2f} times as far apart in the second half as in the first, "
            f"distances grow as the rate to the power of {exponent:.2f}"
        )
    alone = [late / early for _, early, late in _medians(rows, "alone")]
    return Outcome(
        parts,
        f"{'; '.join(said)[0].upper()}{'; '.join(said)[1:]}. Nodes that never send are "
        f"{min(alone):.2f} to {max(alone):.2f} times as far apart in the second half.",
        ["nodes, rate", "most in the first half", "most in the second half"],
        [
            [name, *(spread(half) for half in zip(*row["halves"], strict=True))]
            for name, row in rows.items()
        ],
    )  # fmt: skip
