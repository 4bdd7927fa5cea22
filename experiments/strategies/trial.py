"""One fit, simulated or on real processes, and what is asked of it."""

from __future__ import annotations

import numpy as np

from dpsvi import Cluster, VirtualCluster
from dpsvi.cluster.virtual import TEN_GIGABIT, Timing
from dpsvi.errors import DivergedError
from experiments.faults import only_errors
from experiments.strategies.agent import Agent
from experiments.strategies.measures import SLOW
from experiments.strategies.problems import GROUPS, Problem
from experiments.strategies.settings import ENTRANTS, split

# Rough constants, so that results are the same on every machine: a step of a millisecond, on nodes
# whose links take half a one.
TIMING = Timing(step=1e-3, value=0.0, turn=2e-5, touch=1e-10, message=2e-5, read=2e-10, merge=5e-10)


class Trials:
    """Fits of one problem.

    Parameters
    ----------
    problem : Problem or Agent
    length : int
        Passes, or moves.
    rate : float
        The parameter of the rates of all fits.
    every : float
        Passes between two looks at the score.
    """

    def __init__(self, problem: Problem | Agent, length: int, rate: float, every: float = 0.5):
        self.problem, self.length, self.rate, self.every = problem, length, rate, every

    def fit(
        self, seed: int, entrant: str, settings: dict, n: int, *, tuning: bool = False, **options
    ) -> dict:
        """What came of a fit of `n` virtual workers, or why nothing did.

        Returns
        -------
        dict
            ``scores``, pairs of virtual seconds and held-out log-likelihood; ``score``, the last
            one; ``seconds``, ``bytes`` an item, ``outside``, how far parameters were outside of
            their domain; or ``failed``.
        """
        given, parameters = split(settings)
        cluster = VirtualCluster(
            n_workers=n, network=TEN_GIGABIT, timing=TIMING, strategy=ENTRANTS[entrant][0],
            seed=seed, **given, **options,
        )  # fmt: skip
        return self._fit(seed, parameters, tuning, engine="simulated", cluster=cluster)

    def killed(self, seed: int, entrant: str, settings: dict, n: int, seconds: float) -> dict:
        """The same of a fit of which one worker is killed; without that it takes `seconds`."""
        rng = np.random.default_rng([seed, n])
        # A cluster without a master cannot do without its first node, and n are too many there.
        failure = {int(rng.integers(1, n)): seconds * rng.uniform(0.1, 0.9)}
        with only_errors():
            return self.fit(seed, entrant, settings, n, killed=failure)

    def measured(self, seed: int, entrant: str, settings: dict) -> dict:
        """The same of a fit on the processes of this launch; seconds are real ones."""
        given, parameters = split(settings)
        cluster = Cluster(strategy=ENTRANTS[entrant][0], **given)
        return self._fit(seed, parameters, False, engine="mpi", cluster=cluster)

    def _fit(self, seed, parameters, tuning, **where) -> dict:
        try:
            return self.problem.fit(
                seed, parameters, tuning, self.length, self.rate, self.every, **where
            )
        except (DivergedError, np.linalg.LinAlgError) as error:
            return {"failed": f"{type(error).__name__}: {error}"}
        except ValueError as error:
            return {"failed": f"Refused: {error}"}

    def tune(self, entrant: str, choices: list[dict], n: int, seed: int) -> tuple[dict, list]:
        """The best of so many settings, and what each came to, on items of their own."""
        tried = [self.fit(seed, entrant, each, n, tuning=True) for each in choices]
        scores = [found.get("score", -np.inf) for found in tried]
        return choices[int(np.argmax(scores))], [found.get("score") for found in tried]

    def row(self, entrant: str, settings: dict, seed: int, workers: list[int]) -> dict:
        """All answers for one entrant and one seed; of the middle n one is slow, or killed."""
        middle = workers[len(workers) // 2]
        found = {f"n = {n}": self.fit(seed, entrant, settings, n) for n in workers}
        if self.problem.has_groups:
            found["one group each"] = self.fit(seed, entrant, settings, GROUPS, sharding="shard")
        found["one slow"] = self.fit(seed, entrant, settings, middle, stragglers=(1 / middle, SLOW))
        seconds = found[f"n = {middle}"].get("seconds")
        if seconds is not None:
            found["one killed"] = self.killed(seed, entrant, settings, middle, seconds)
        return found
