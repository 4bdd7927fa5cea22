"""What Figures 1, 3 and `beyond` show of the program's own step: the default, and kept sums.

The other panels are of the paper's step.  `DPSVILDA` has another one by default, collapsed, with
rates, priors and B that follow from the corpus; with `keep_responsibilities` the last passes are
incremental: what workers send is changes of a sum, so that nothing decays that is stale.

Three places for these were compared: (a) further series beside the paper's step, but they have
more passes and another serial fit to be compared with; (b) a picture of their own, but then Figure
1 does not say what who uses the program gets; (c) further panels of the same pictures, made from
problems of their own, each with its serial fit and all with a file of runs of their own, so that
neither file has to be made again for the other.  (c) is taken: what draws and tables points does
not ask which problem they are of.

Messages cost what they cost in the other panels, work what this step costs.  What a step takes
beyond its values is most of it for each of its documents; a step of part of a batch takes part of
it.  So the two costs are those of a line through whole batches and eighths of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dpsvi.cluster.virtual import Timing
from experiments.figures.plan import CHEAP, COMPILED, PLACES, Problem
from experiments.figures.runs import Run

STEP = "collapsed"
# About as many visits as in the other panels; two of three passes keep, the first one never does.
DOCUMENTS, PASSES = 60_000, 3


@dataclass(frozen=True)
class DefaultStep(Problem):
    """A fit by the program's own defaults, serial and on workers.

    Parameters
    ----------
    base : Run
        Whether it keeps responsibilities, it says.
    seeds : int
    nodes : tuple of int
        Values of n in Figure 1, with one thread each.
    few : tuple of int
        Those of them where exchanges are dear.
    both : tuple of int
        n = p in Figure 3.
    beyond : dict of int to tuple of int
        Threads of all workers in `beyond`, by the threads of one.
    """

    base: Run
    seeds: int
    nodes: tuple[int, ...]
    few: tuple[int, ...]
    both: tuple[int, ...]
    beyond: dict[int, tuple[int, ...]]

    @property
    def series(self) -> str:
        """How the figures call it."""
        return "default, incremental" if self.base.keep else "default"

    def serial(self) -> list[Run]:
        """The fits that workers are compared with."""
        return self._seeds(self.base)

    def points(self, figure: str) -> dict[tuple, list[Run]]:
        """Runs of a figure by point, (panel, series, x): one for each seed."""
        cells = {
            "fig1": [(place, self.series, n, n, 1) for place, nodes in
                     ((CHEAP, self.nodes), (COMPILED, self.few)) for n in nodes],
            "fig3": [(CHEAP, self.series, n, n, n) for n in self.both],
            "beyond": [(CHEAP, f"{self.series}, p = {p}", threads, threads // p, p)
                       for p, all_threads in self.beyond.items() for threads in all_threads],
        }  # fmt: skip
        return {
            (f"default step, {self.base.passes} passes; {place}", series, x): self._seeds(
                replace(self.base, n=n, p=p, **PLACES[place])
            )
            for place, series, x, n, p in cells.get(figure, [])
        }

    def _seeds(self, run: Run) -> list[Run]:
        return [replace(run, seed=seed) for seed in range(self.seeds)]


def default_steps(base: Run, seeds: int | None, quick: bool) -> list[DefaultStep]:
    """Both problems, on the documents of `base`: without and with kept responsibilities."""
    documents = base.documents if quick else DOCUMENTS
    base = replace(
        base, documents=documents, local_step=STEP, batch_size=None, kappa=None,
        eta=None, sweeps=None, B=None, passes=PASSES, every=0.125,
    )  # fmt: skip
    if quick:
        cells = (1, (2, 4), (2,), (2,), {1: (4,), 2: (4,)})
    else:
        beyond = {1: (16, 64), 8: (16, 64, 256, 512)}
        cells = (5, (2, 4, 8, 16, 32, 64), (2, 8, 64), (2, 4, 8), beyond)
    plans = (DefaultStep(replace(base, keep=keep), *cells) for keep in (False, True))
    return [replace(plan, seeds=seeds or plan.seeds) for plan in plans]


def costs_by_size(whole: tuple[Timing, float], part: tuple[Timing, float]) -> dict[str, float]:
    """Seconds of a step and of a value, of the line through batches of two sizes.

    Parameters
    ----------
    whole, part : tuple of Timing and float
        Costs as measured with batches of one size, and their values, in the mean.

    Examples
    --------
    >>> costs_by_size((Timing(0.25, 1.0), 8.0), (Timing(0.125, 1.0), 4.0))
    {'step': 0.0, 'value': 1.03125}
    """
    (n, seconds), (m, less) = ((n, costs.step + costs.value * n) for costs, n in (whole, part))
    value = min(max(0.0, (seconds - less) / (n - m)), seconds / n)
    return {"step": max(0.0, seconds - value * n), "value": value}  # rounded, it can be below 0
