"""SGP against all-reduce on a slow link."""

from __future__ import annotations

import math
import statistics

from dpsvi.cluster.virtual import Network
from experiments.known_results.claim import Outcome
from experiments.known_results.compare import Entrant, compare, median, sooner, spread, values
from experiments.known_results.digits import fit

TITLE = "SGP against all-reduce on a slow link"
SOURCE = "Assran, Loizou, Ballas and Rabbat (2019)"
CLAIM = (
    "Over a slow network push-sum with one neighbour a step takes a fraction of the time of "
    "all-reduce for as many passes, and overlapped with computing even less, for at most 1.2 "
    "points of accuracy; over a fast network they take about the same time."
)
WORKERS, PASSES, BATCH, TARGET = 16, 15, 8, 0.25
# A message has 19.8 kB: two milliseconds over the slow link, 0.02 over the fast one, beside one for
# a step.  Not shared: an all-reduce sends and receives two vectors a node, and no node more.
LINKS = {
    "slow": Network(latency=1e-4, bandwidth=1e7, shared=False),
    "fast": Network(latency=1e-6, bandwidth=1e9, shared=False),
}
TRIAL = (
    f"{WORKERS} workers, {PASSES} passes, batches of {BATCH}: `local_sgd` with one local step, "
    "whose exchanges take as long as an ideal all-reduce of two vectors a node; `push_sum` with "
    "`tau=0`, in which all wait for their neighbours, and with `tau=1`, overlapped: while a "
    "message is on its way a node goes on, and sends none to a node that has not read the last. A "
    "message takes 2.1 times as long as a step over the slow link, 0.02 times over the fast one."
)
ENTRANTS = {
    "all-reduce": {"strategy": "local_sgd"},
    "SGP": {"strategy": "push_sum", "options": {"tau": 0}},
    "OSGP": {"strategy": "push_sum", "options": {"tau": 1}},
}


def score(run: dict) -> float:
    """Loss at the end."""
    return run["loss"]


def run(seeds, workers: int = WORKERS, passes: int = PASSES) -> dict:
    """All three over the slow link, then over the fast one with the rates chosen before."""
    entrants = [
        Entrant(
            name,
            lambda rate, seed, tuning, own=own, link="slow": fit(
                rate=rate, seed=seed, tuning=tuning, n=workers, passes=passes, batch=BATCH,
                link=LINKS[link], looks=0.25, **own,
            ),
        )
        for name, own in ENTRANTS.items()
    ]  # fmt: skip
    rows = compare(entrants, seeds, score)
    for name, fit_it in entrants:
        rows[name]["fast"] = [
            fit_it(rows[name]["rate"], seed, False, link="fast")["seconds"] for seed in seeds
        ]
    return rows


def _after(seconds: float) -> str:
    return f"{seconds:.2f} s" if math.isfinite(seconds) else "no time"


def outcome(rows: dict) -> Outcome:
    """Ratios of times, differences of errors."""
    seconds = {name: median(row, lambda run: run["seconds"]) for name, row in rows.items()}
    fast = {name: statistics.median(row["fast"]) for name, row in rows.items()}
    errors = {name: 100 * median(row, lambda run: run["error"]) for name, row in rows.items()}
    needed = {name: median(row, lambda run: sooner(run, TARGET, 1)) for name, row in rows.items()}
    ratio = {name: seconds["all-reduce"] / seconds[name] for name in rows}
    near = {name: fast["all-reduce"] / fast[name] for name in rows}
    worse = {name: errors[name] - errors["all-reduce"] for name in rows}
    return Outcome(
        [ratio["SGP"] > 1.1, ratio["OSGP"] > ratio["SGP"], worse["SGP"] <= 1.2,
         worse["OSGP"] <= 1.2, near["SGP"] < ratio["SGP"]],
        f"Over the slow link all-reduce takes {ratio['SGP']:.2f} times as long as SGP and "
        f"{ratio['OSGP']:.2f} times as long as OSGP, over the fast one {near['SGP']:.2f} and "
        f"{near['OSGP']:.2f} times; SGP has {worse['SGP']:+.1f} points of test error, OSGP "
        f"{worse['OSGP']:+.1f}. A loss of {TARGET} is reached after {_after(needed['all-reduce'])} "
        f"by all-reduce, {_after(needed['SGP'])} by SGP and {_after(needed['OSGP'])} by OSGP.",
        ["entrant", "rate", "seconds, slow", "seconds, fast", f"seconds to {TARGET}, slow",
         "test loss", "test error, %"],
        [
            [name, f"{row['rate']:g}", spread(values(row, lambda run: run["seconds"]), ".2f"),
             spread(row["fast"], ".2f"),
             spread(values(row, lambda run: sooner(run, TARGET, 1)), ".2f"),
             spread(values(row, score)),
             spread([100 * error for error in values(row, lambda run: run["error"])], ".1f")]
            for name, row in rows.items()
        ],
    )  # fmt: skip
