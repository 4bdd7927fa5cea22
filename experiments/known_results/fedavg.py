"""FedAvg's rounds, with clients alike and unlike, with as many images and with unequal ones."""

from __future__ import annotations

import math
import statistics
from functools import partial

from experiments.known_results.claim import Outcome
from experiments.known_results.clients import rounds, shards
from experiments.known_results.compare import Entrant, compare, spread
from experiments.known_results.digits import BATCH, parts

TITLE = "FedAvg's rounds"
SOURCE = "McMahan, Moore, Ramage, Hampson and Agüera y Arcas (2017)"
CLAIM = (
    "To the same accuracy, clients that make several passes with small batches before the mean of "
    "them is taken need 10 to 100 times fewer rounds than one gradient of each client's data "
    "(FedSGD); fewer also where clients have unequal numbers of images, and images of two classes "
    "only."
)
CLIENTS, FRACTION, VISITS, TARGET, MOST = 20, 0.25, 5, 0.05, {"FedAvg": 200, "FedSGD": 600}
TRIAL = (
    f"{CLIENTS} clients, of which {round(FRACTION * CLIENTS)} are drawn for a round; E = {VISITS} "
    f"passes with batches of {BATCH}, or one step with the whole shard. Images are dealt out at "
    "random or in two slices of the order by class; the k-th client has as many as the others, or "
    f"k times as many as the first. Looked at are the rounds until {100 * TARGET:g} % of the test "
    f"images are taken for another digit; FedSGD is given up after {MOST['FedSGD']:,} rounds, "
    f"FedAvg after {MOST['FedAvg']}."
)
SHARDS = {
    "alike": (False, False), "alike, unequal": (False, True), "two classes": (True, False),
    "two classes, unequal": (True, True),
}  # fmt: skip


def score(run: dict) -> float:
    """Rounds to the target."""
    return run["rounds"]


def run(
    seeds, clients: int = CLIENTS, visits: int = VISITS, target: float = TARGET, most=MOST
) -> dict:  # fmt: skip
    """Both for all ways to deal images out; how they are dealt follows from the seed."""
    y = parts()["train"].y

    def trial(side, how, rate, seed, tuning):
        held = shards(y, clients, *SHARDS[how], seed)
        largest = max(map(len, held))
        own = {"visits": visits, "batch": BATCH} if side == "FedAvg" else {
            "visits": 1, "batch": largest,
        }  # fmt: skip
        needed = rounds(
            held, FRACTION, rate, seed, most=most[side], target=target, tuning=tuning, **own
        )
        return {"rounds": needed} if math.isfinite(needed) else {"failed": "not reached"}

    entrants = [
        Entrant(f"{side}, {how}", partial(trial, side, how)) for how in SHARDS for side in MOST
    ]
    return compare(entrants, seeds, score)


def needed(row: dict) -> list[float]:
    """Rounds of all seeds; infinite where the target was not reached."""
    return [found.get("rounds", math.inf) for found in row["runs"]]


def outcome(rows: dict) -> Outcome:
    """At least ten times fewer where clients are alike, fewer everywhere."""
    ratios = {}
    for how in SHARDS:
        sgd, avg = (
            statistics.median(needed(rows[f"{side}, {how}"])) for side in ("FedSGD", "FedAvg")
        )
        ratios[how] = sgd / avg if math.isfinite(avg) else 0.0
    said = ", ".join(f"{ratio:.1f} ({how})" for how, ratio in ratios.items())
    alike = [ratios["alike"], ratios["alike, unequal"]]
    unlike = [ratios["two classes"], ratios["two classes, unequal"]]
    return Outcome(
        [min(alike) >= 10, min(unlike) > 1],
        f"Medians of FedSGD's rounds over FedAvg's: {said}.",
        ["entrant, shards", "rate", f"rounds to {100 * TARGET:g} % errors"],
        [
            [name, f"{row['rate']:g}", spread(needed(row), ",.0f")] for name, row in rows.items()
        ],
    )  # fmt: skip
