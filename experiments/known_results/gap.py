"""GAP's coverage of modes: generators that exchange discriminators, against those that do not."""

from __future__ import annotations

import statistics
from functools import partial

import numpy as np

from dpsvi import DPSGD
from dpsvi.errors import DivergedError
from experiments.known_results import pairs
from experiments.known_results.claim import Outcome
from experiments.known_results.compare import Entrant, compare, median, spread, values, wins
from experiments.known_results.digits import FREE, TIMING
from experiments.known_results.gala import _never_send
from experiments.known_results.replicas import Replicas

TITLE = "GAP's coverage of modes"
SOURCE = "Im, Ma, Kim and Taylor (2016)"
CLAIM = (
    "Adversarial pairs that are trained side by side and exchange their discriminators at random "
    "converge better, and cover more modes of the data, than pairs that stay as they are."
)
PAIRS, PASSES, STEPS, RATES = 4, 250, 16, (0.001, 0.003, 0.01)
UPDATES = PASSES * pairs.POINTS // pairs.BATCH // PAIRS
PERIODS = (6, 60)  # turns of so many steps
TRIAL = (
    "Points in the plane around 8 modes on a ring and around 25 on a grid, standard deviation "
    f"{pairs.DEVIATION:g}. {PAIRS} pairs of networks with one hidden layer of {pairs.HIDDEN} start "
    f"apart and make {UPDATES:,} updates each (RMSprop, batches of {pairs.BATCH}): alone, and with "
    f"discriminators exchanged every {' or '.join(str(STEPS * turns) for turns in PERIODS)} "
    f"updates (`gap` with `last_rows=1`); one pair makes the {PAIRS * UPDATES:,} updates of all. A "
    "mode is missed where less than a quarter of the points that should be within three standard "
    "deviations are generated there. Looked at are the modes that a pair misses, those that all "
    "pairs together miss, and the points that are near no mode. Rates are chosen from "
    f"{', '.join(f'{rate:g}' for rate in RATES)} by the first and the last of these, on points "
    "and with seeds for that."
)
ONE, ALONE = "one pair", "alone"
GAP = {f"GAP, every {STEPS * turns}": turns for turns in PERIODS}


class Apart(Replicas):
    """Pairs that start from parameters of their own, (n, 2, width), instead of equal ones."""

    def __init__(self, starts, change=None):
        super().__init__(change)
        self._starts = starts

    def _note(self, strategy, begin, state, node, n_nodes, before):
        state.shared.rows[...] = self._starts[node]
        state.recount()
        super()._note(strategy, begin, state, node, n_nodes, before)


def fit(
    form: str, n: int, period: int | None, passes: int, rate: float, seed: int, tuning: bool
) -> dict:
    """What n pairs came to: modes and shares, of each of them and of all together."""
    rng = np.random.default_rng(seed)
    real = pairs.points(form, rng)
    starts = np.array([pairs.start(rng) for _ in range(n)])
    nodes = Apart(starts, _never_send if period is None else None)
    cluster = nodes.cluster(
        n_workers=n, strategy="gap", strategy_options={"period": period or 1, "last_rows": 1},
        network=FREE, timing=TIMING, seed=seed,
    )  # fmt: skip
    optimizer = DPSGD(
        learning_rate=rate / n, batch_size=pairs.BATCH, max_iter=passes, engine="simulated",
        local_steps=STEPS, cluster=cluster, random_state=seed,
    )  # fmt: skip
    try:
        with np.errstate(all="ignore"):
            found = optimizer.minimize(pairs.objective(real, rng), starts[0])
    except DivergedError as reason:
        return {"failed": str(reason)}
    noise = rng.normal(size=(pairs.SAMPLES, 2))
    made = [pairs.generated(x, noise) for x in nodes.now().reshape(starts.shape)]
    return {
        "pairs": [pairs.judged(samples, form) for samples in made],
        "together": pairs.judged(np.concatenate(made), form), "modes": len(pairs.modes(form)),
        "updates": found.njev // n, "messages": int(np.sum(found.exchanges["n_bytes"] > 0)),
    }  # fmt: skip


def missed(run: dict) -> float:
    """Modes that a pair misses, on average."""
    return run["modes"] - statistics.mean(modes for modes, _ in run["pairs"])


def missed_by_all(run: dict) -> float:
    """Modes that all pairs together miss."""
    return run["modes"] - run["together"][0]


def astray(run: dict) -> float:
    """Per cent of the generated points that are near no mode."""
    return 100 * (1 - statistics.mean(share for _, share in run["pairs"]))


def score(run: dict) -> float:
    """Modes that a pair misses; where these are as many, points that are near none."""
    return missed(run) + 1e-2 * astray(run)


def run(seeds, forms=("ring", "grid"), passes: int = PASSES) -> dict:
    """All on every form of data, each with a rate of its own."""
    sides = {ONE: (1, None), ALONE: (PAIRS, None)} | {
        name: (PAIRS, period) for name, period in GAP.items()
    }
    return compare(
        [Entrant(f"{form}: {name}", partial(fit, form, *side, passes))
         for form in forms for name, side in sides.items()],
        seeds, score, RATES,
    )  # fmt: skip


def outcome(rows: dict) -> Outcome:
    """On each form of data a pair misses fewer modes, all together no more, and fewer stray."""
    parts, said = [], []
    for form in dict.fromkeys(name.split(": ")[0] for name in rows):
        one, alone = (rows[f"{form}: {name}"] for name in (ONE, ALONE))
        said.append(
            f"of the {form} a pair alone misses {median(alone, missed):.2f} modes, all {PAIRS} "
            f"together {median(alone, missed_by_all):g}, one pair with the updates of all "
            f"{median(one, missed):g}, and {median(alone, astray):.0f} % of the points of a pair "
            "alone are near no mode"
        )
        for name in GAP:
            gap = rows[f"{form}: {name}"]
            lost, out, far = (median(gap, of) for of in (missed, missed_by_all, astray))
            parts += [
                lost < median(alone, missed), out <= median(alone, missed_by_all),
                far < median(alone, astray),
            ]  # fmt: skip
            fewer = f"fewer for {wins(gap, alone, missed)} of {len(gap['runs'])} seeds"
            said.append(
                f"with {name} updates, a pair misses {lost:.2f} ({fewer}), all together {out:g}, "
                f"and {far:.0f} % are near none"
            )
    sentence = "; ".join(said) + "."
    return Outcome(
        parts, sentence[0].upper() + sentence[1:],
        ["points: pairs", "rate", "missed by a pair", "missed by all together",
         "near no mode, %", "updates of a pair"],
        [
            [name, f"{row['rate']:g}", spread(values(row, missed), ".2f"),
             spread(values(row, missed_by_all), "g"), spread(values(row, astray), ".0f"),
             spread(values(row, lambda run: run["updates"]), ",.0f")]
            for name, row in rows.items()
        ],
    )  # fmt: skip
