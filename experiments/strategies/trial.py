"""One fit, simulated or on real processes, and what is asked of it."""

from __future__ import annotations

import numpy as np

from dpsvi import Cluster, VirtualCluster
from dpsvi.cluster.virtual import TEN_GIGABIT, Timing
from dpsvi.errors import DivergedError
from experiments.strategies.problems import GROUPS, Problem
from experiments.strategies.settings import split

SLOW = 10.0
# Rough constants, so that results are the same on every machine: a step of a millisecond, on nodes
# whose links take half a one.
TIMING = Timing(step=1e-3, value=0.0, turn=2e-5, touch=1e-10, message=2e-5, read=2e-10, merge=5e-10)


class Watch:
    """A callback: held-out score and lowest parameter at every evaluation."""

    def __init__(self, data: dict):
        self.data, self.model, self._items = data, None, None
        # The score of sequences is a sum over their steps, that of other items a mean.
        self._parts = len(data["X"]) if "lengths" in data else 1
        self.scores: list[tuple[float, float]] = []
        self.outside = 0.0

    def __call__(self, event) -> None:
        """Score the parameters of the event, and how far they are outside of the domain."""
        if self._items is None:
            self._items = self.model._read(y=None, reset=False, **self.data)
        score = self.model._held_out_score(event.state, self._items)["score"] / self._parts
        self.scores.append((round(event.seconds, 6), round(score, 6)))
        if event.state.model.nonnegative:
            rows = event.state.shared.rows
            self.outside = max(self.outside, -float(rows.min() * event.state.scale))


class Trials:
    """Fits of one problem.

    Parameters
    ----------
    problem : Problem
    passes : int
    offset : float
        ``learning_offset`` of all estimators.
    every : float
        Passes between two looks at the score.
    """

    def __init__(self, problem: Problem, passes: int, offset: float, every: float = 0.5):
        self.problem, self.passes, self.offset, self.every = problem, passes, offset, every

    def fit(
        self, seed: int, strategy: str, settings: dict, n: int, *, tuning: bool = False, **options
    ) -> dict:
        """What came of a fit of `n` virtual workers, or why nothing did.

        Returns
        -------
        dict
            ``scores``, pairs of virtual seconds and held-out log-likelihood; ``score``, the last
            one; ``seconds``, ``bytes`` an item, ``outside``, how far a parameter was below its
            least value; or ``failed``.
        """
        given, parameters = split(settings)
        cluster = VirtualCluster(
            n_workers=n, network=TEN_GIGABIT, timing=TIMING, strategy=strategy, seed=seed,
            **given, **options,
        )  # fmt: skip
        return self._fit(seed, parameters, tuning, engine="simulated", cluster=cluster)

    def measured(self, seed: int, strategy: str, settings: dict) -> dict:
        """The same of a fit on the processes of this launch; seconds are real ones."""
        given, parameters = split(settings)
        cluster = Cluster(strategy=strategy, **given)
        return self._fit(seed, parameters, False, engine="mpi", cluster=cluster)

    def _fit(self, seed, parameters, tuning, **where) -> dict:
        watch = Watch(self.problem.tuning if tuning else self.problem.test)
        try:
            model = self.problem.estimator(
                max_iter=self.passes, learning_offset=self.offset, random_state=seed,
                callbacks=[watch], evaluate_every=self.every, **parameters, **where,
            )  # fmt: skip
            watch.model = model
            model.fit(**self.problem.train)
        except (DivergedError, ValueError, np.linalg.LinAlgError) as error:
            return {"failed": f"{type(error).__name__}: {error}"}
        report = model.exchanges_
        if not report:  # of a rank that was not the first
            return {}
        return {
            "scores": watch.scores, "score": watch.scores[-1][1], "seconds": report["seconds"],
            "bytes": report["bytes"] / model._state.items, "outside": watch.outside,
        }  # fmt: skip

    def tune(self, strategy: str, choices: list[dict], n: int, seed: int) -> tuple[dict, list]:
        """The best of so many settings, and what each came to, on items of their own."""
        tried = [self.fit(seed, strategy, each, n, tuning=True) for each in choices]
        scores = [found.get("score", -np.inf) for found in tried]
        return choices[int(np.argmax(scores))], [found.get("score") for found in tried]

    def row(self, strategy: str, settings: dict, seed: int, workers: list[int]) -> dict:
        """All answers for one strategy and one seed; one of the middle n is slow."""
        middle = workers[len(workers) // 2]
        found = {f"n = {n}": self.fit(seed, strategy, settings, n) for n in workers}
        found["one group each"] = self.fit(seed, strategy, settings, GROUPS, sharding="shard")
        found["one slow"] = self.fit(
            seed, strategy, settings, middle, stragglers=(1 / middle, SLOW)
        )
        return found
