"""EASGD against DOWNPOUR."""

from __future__ import annotations

from experiments.known_results.claim import Outcome
from experiments.known_results.compare import Entrant, compare, median, spread, values, wins
from experiments.known_results.digits import fit

TITLE = "EASGD against DOWNPOUR"
SOURCE = "Zhang, Choromanska and LeCun (2015)"
CLAIM = (
    "With as many workers and as many steps between two exchanges, tau, elastic averaging comes to "
    "a lower loss than DOWNPOUR, and a larger tau harms it less."
)
WORKERS, PASSES, PERIODS = 8, 20, (4, 16, 64)
RATES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)  # DOWNPOUR adds up, and wants small ones
TRIAL = (
    f"{WORKERS} workers, {PASSES} passes, tau = 4, 16 and 64; `elastic` with its default, alpha = "
    "0.9 / n, `displacement` with a global rate of 1; rates from 0.001 to 1."
)
SIDES = {"EASGD": "elastic", "DOWNPOUR": "displacement"}


def score(run: dict) -> float:
    """Loss at the end."""
    return run["loss"]


def run(seeds, workers: int = WORKERS, passes: int = PASSES, periods=PERIODS) -> dict:
    """Both for every tau."""
    entrants = [
        Entrant(
            f"{name}, tau = {tau}",
            lambda rate, seed, tuning, kind=kind, tau=tau: fit(
                kind, rate, seed, n=workers, passes=passes, local_steps=tau, tuning=tuning
            ),
        )
        for tau in periods for name, kind in SIDES.items()
    ]  # fmt: skip
    return compare(entrants, seeds, score, RATES)


def outcome(rows: dict) -> Outcome:
    """Lower for every tau, and a smaller growth from the first tau to the last."""
    periods = [name.rsplit(" ", 1)[1] for name in rows if name.startswith("EASGD")]
    pairs = [[rows[f"{name}, tau = {tau}"] for name in SIDES] for tau in periods]
    ends = [[median(row, score) for row in pair] for pair in pairs]
    growth = [ends[-1][i] / ends[0][i] for i in range(2)]
    lower = [tau for tau, (ours, theirs) in zip(periods, ends, strict=True) if ours < theirs]
    won = ", ".join(f"{wins(*pair, score)} of {len(pair[0]['runs'])}" for pair in pairs)
    return Outcome(
        [len(lower) == len(periods), growth[0] < growth[1]],
        f"EASGD's median loss is lower for {len(lower)} of {len(periods)} tau (seeds won: {won}); "
        f"from tau = {periods[0]} to {periods[-1]} its loss grows {growth[0]:.2f} times, "
        f"DOWNPOUR's {growth[1]:.2f} times.",
        ["entrant", "rate", "test loss", "test error, %"],
        [
            [name, f"{row['rate']:g}", spread(values(row, score)),
             spread([100 * error for error in values(row, lambda run: run["error"])], ".1f")]
            for name, row in rows.items()
        ],
    )  # fmt: skip
