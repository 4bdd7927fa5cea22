"""Which runs each figure needs.

Every run visits the same number of documents; a point whose held-out perplexity then lies more than
2 % above that of serial SVI is drawn as missing.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field, replace

from experiments.figures.runs import Run, Store

TOLERANCE = 1.02  # of the perplexity of serial SVI
# gensim's local step, which descends from Hoffman's Python, against ours: 18.3 on 30,000 documents
# of wiki, one thread, ten inner iterations at most (results/peers of 21 November 2026, in the
# history of this repository).
PYTHON = 18.0
SLOW = f"1 GbE, local steps in Python ({PYTHON:g} times slower)"
PLACES = {
    SLOW: {"network": "1 GbE", "slower": PYTHON},
    "10 GbE": {"network": "10 GbE"},
    "1 GbE": {"network": "1 GbE"},
}

# The paper's grid for the baseline is lost; these lists are around the settings of Hoffman et al.
# Larger batches leave too few steps to share out.
GRID = {"kappa": (0.5, 0.7, 0.9), "tau0": (1.0, 24.0, 256.0, 1024.0), "batch_size": (16, 64)}
# The paper's workers have constant rates (Corollary 1), carried over by (13) or kept.
RATES = {"constant": (0.05, 0.02, 0.01, 0.005), "per_T": (0.2, 0.1, 0.05)}
TUNED_FOR = {"n": 10, "p": 1, "B": 16}
# Messages under way and what a thousand workers hold beside them take 19 GB.
FEWER = {("prefetch", 1000): 1}
STRATEGIES = ("decay", "displacement")  # the default and the paper's, each with a rate of its own
DISPLACED = 10  # most workers with the paper's: with the default more do not count, either


@dataclass(frozen=True)
class Plan:
    """How much is run.

    Parameters
    ----------
    base : Run
        Corpus, topics, schedule of serial SVI.
    seeds : int
    nodes, threads, both : tuple of int
        Values of n in Figure 1, p in Figure 2, n = p in Figures 3 and 4.
    Bs : tuple of int
        B in Figure 3; the largest in Figures 1 and 2.
    beyond : tuple of int
        Values of n beyond the paper's cluster.
    fixed : tuple of int
        Values of B that a steered one is compared with.
    waiting : tuple of float
        Shares of their time that workers are to wait, where B is steered.
    workers : dict
        What runs with workers have instead of the schedule of `base`, by strategy.
    """

    base: Run
    seeds: int
    nodes: tuple[int, ...]
    threads: tuple[int, ...]
    both: tuple[int, ...]
    Bs: tuple[int, ...]
    beyond: tuple[int, ...]
    fixed: tuple[int, ...] = (1, 4, 16, 64, 256)
    waiting: tuple[float, ...] = (0.1, 0.2, 0.4)
    workers: dict = field(default_factory=dict)

    def serial(self) -> list[Run]:
        """The baseline: serial SVI."""
        return [replace(self.base, every=0.1, seed=seed) for seed in range(self.seeds)]

    def grid(self) -> list[Run]:
        """What the baseline's settings are chosen from: one pass, one seed."""
        return [
            replace(
                self.base, passes=1, every=1.0, kappa=kappa, tau0=tau0, batch_size=batch_size,
                tuning=True,
            )
            for kappa in GRID["kappa"] for tau0 in GRID["tau0"]
            for batch_size in GRID["batch_size"]
        ]  # fmt: skip

    def rates(self, strategy: str) -> list[Run]:
        """What the rate of the workers is chosen from: with many of them, one seed."""
        return [
            replace(
                self.base, **TUNED_FOR, **PLACES[SLOW], rate=rate, rule=rule, every=1.0,
                tuning=True, strategy=strategy,
            )
            for rule, rates in RATES.items() for rate in rates
        ]  # fmt: skip

    def target(self, store: Store) -> float:
        """Highest held-out perplexity that counts as that of serial SVI."""
        finals = [store.get(run)["history"][-1][2] for run in self.serial()]
        return TOLERANCE * statistics.median(finals)

    def points(self, figure: str) -> dict[tuple, list[Run]]:
        """Runs of a figure by point, (panel, series, x): one for each seed."""
        make = {"fig1": self._nodes, "fig2": self._threads, "fig3": self._both,
                "fig4": self._both, "beyond": self._beyond,
                "steered": self._steered}[figure]  # fmt: skip
        points = {}
        for name, settings in make().items():
            chosen = self.workers.get(settings.get("strategy", "decay"), {})
            run = replace(self.base, **chosen | settings)
            n_seeds = min(self.seeds, FEWER.get(name[1:], self.seeds))
            points[name] = [replace(run, seed=seed) for seed in range(n_seeds)]
        return points

    def _nodes(self):
        B = self.Bs[-1]
        points = {
            (place, f"B = {B}", n): {"n": n, "B": B, **settings}
            for place, settings in PLACES.items() for n in self.nodes
        }  # fmt: skip
        paper = {"B": B, "strategy": "displacement", **PLACES[SLOW]}
        rates = {"the same rate": self.workers.get("decay", {}), "a rate of its own": {}}
        return points | {
            (SLOW, f"B = {B}, displacement, {name}", n): {"n": n, **paper, **rate}
            for name, rate in rates.items() for n in self.nodes if n <= DISPLACED
        }  # fmt: skip

    def _threads(self):
        B = self.Bs[-1]
        kinds = {"threads slow each other as measured": None, "threads do not": 0.0}
        return {
            (SLOW, name, p): {"n": 1, "p": p, "B": B, "contention": contention, **PLACES[SLOW]}
            for name, contention in kinds.items() for p in self.threads
        }  # fmt: skip

    def _both(self):
        return {
            (place, f"B = {B}", n): {
                "n": n, "p": n, "B": B, **PLACES[place],
                "every": 0.25 if B == self.B_of_curves else self.base.every,
            }
            for place in (SLOW, "10 GbE") for B in self.Bs for n in self.both
        }  # fmt: skip

    @property
    def B_of_curves(self) -> int:
        """B in Figure 4."""
        return self.Bs[len(self.Bs) // 2]

    def _beyond(self):
        place = f"10 GbE, local steps in Python ({PYTHON:g} times slower)"
        B = self.B_of_curves
        knobs = {
            f"B = {B}": {},
            f"B = {4 * B}": {"B": 4 * B},
            "M = 8": {"M": 8},
            "bfloat16": {"statistics": "bfloat16"},
            "prefetch": {"prefetch": True},
            "a link for each worker": {"network": "10 GbE, a link each"},
            "10 threads a worker": {"p": 10, "contention": 0.0},
        }
        return {
            (place, name, n): {
                "B": B, "network": "10 GbE", "slower": PYTHON, **knob,
                "n": n // knob.get("p", 1),
            }
            for name, knob in knobs.items() for n in self.beyond
        }  # fmt: skip

    def _steered(self):
        points = {}
        for place in (SLOW, "10 GbE"):
            common = {**TUNED_FOR, **PLACES[place]}
            points |= {(place, "fixed B", B): {**common, "B": B} for B in self.fixed}
            points |= {
                (place, "steered B", share): {**common, "B": None, "waiting": share}
                for share in self.waiting
            }
        return points


def make_plan(corpus: str, quick: bool) -> Plan:
    """The whole set, or one that takes a minute a figure."""
    if quick:
        base = Run(corpus, 6000, words=4000, topics=20)
        return Plan(base, 1, (1, 2, 4, 8), (1, 2, 6, 12), (1, 2, 4), (1, 4), (10, 100))
    base = Run(corpus, 100_000)
    return Plan(
        base, 5, (1, 2, 4, 6, 8, 10, 16, 24), (1, 2, 4, 6, 8, 12), (1, 2, 4, 6, 10), (1, 4, 16),
        (10, 30, 100, 300, 1000),
    )  # fmt: skip
