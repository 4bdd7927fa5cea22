"""One simulated fit, and what is asked of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpsvi import VirtualCluster
from dpsvi.cluster.virtual import TEN_GIGABIT, Timing
from dpsvi.errors import DivergedError
from experiments.strategies.problems import Problem
from experiments.strategies.settings import split

SLOW = 10.0


class Watch:
    """A callback: held-out score and lowest parameter at every evaluation."""

    def __init__(self, data: dict):
        self.data, self.model, self._items = data, None, None
        self.scores: list[tuple[float, float]] = []
        self.outside = 0.0

    def __call__(self, event) -> None:
        """Score the parameters of the event, and how far they are outside of the domain."""
        if self._items is None:
            self._items = self.model._read(y=None, reset=False, **self.data)
        found = self.model._held_out_score(event.state, self._items)
        self.scores.append((event.seconds, found["score"]))
        if event.state.model.nonnegative:
            rows = event.state.shared.rows
            self.outside = max(self.outside, -float(rows.min() * event.state.scale))


class Trials:
    """Fits of one problem that share the costs of work, which the first fit measures.

    Parameters
    ----------
    problem : Problem
    passes : int or None
        In the place of the problem's own.
    timing : Timing or None
    """

    def __init__(self, problem: Problem, passes: int | None = None, timing: Timing | None = None):
        self.problem, self.passes, self.timing = problem, passes or problem.passes, timing

    def fit(
        self, seed: int, strategy: str, settings: dict, n: int, *, tuning: bool = False,
        passes: int | None = None, **options
    ) -> dict:  # fmt: skip
        """What came of a fit, or why nothing did.

        Returns
        -------
        dict
            ``scores``, pairs of virtual seconds and held-out log-likelihood; ``seconds``, ``bytes``
            an item, ``outside``, how far a parameter was below its least value; or ``failed``.
        """
        own, parameters = split(settings)
        watch = Watch(self.problem.tuning if tuning else self.problem.test)
        try:
            cluster = VirtualCluster(
                n_workers=n, network=TEN_GIGABIT, timing=self.timing, strategy=strategy,
                strategy_options=own, seed=seed, **options,
            )  # fmt: skip
            model = self.problem.estimator(
                engine="simulated", cluster=cluster, max_iter=passes or self.passes,
                random_state=seed, callbacks=[watch], evaluate_every=0.5, **parameters,
            )  # fmt: skip
            watch.model = model
            model.fit(**self.problem.train)
        except (DivergedError, ValueError, np.linalg.LinAlgError) as error:
            return {"failed": f"{type(error).__name__}: {error}"}
        found = model.exchanges_
        self.timing = self.timing or replace(found["timing"], spread=(1.0,))
        return {
            "scores": watch.scores, "score": watch.scores[-1][1], "seconds": found["seconds"],
            "bytes": found["bytes"] / model._state.items, "outside": watch.outside,
        }  # fmt: skip

    def tune(self, strategy: str, choices: list[dict], n: int, seed: int) -> tuple[dict, list]:
        """The best of so many settings, and what each came to, on documents of their own."""
        tried = [self.fit(seed, strategy, each, n, tuning=True) for each in choices]
        scores = [found.get("score", -np.inf) for found in tried]
        return choices[int(np.argmax(scores))], [found.get("score") for found in tried]

    def row(self, strategy: str, settings: dict, seed: int, workers, apart: int, groups: int):
        """All answers for one strategy and one seed; the slow worker is one of `apart`."""
        found = {f"n = {n}": self.fit(seed, strategy, settings, n) for n in workers}
        found["one group each"] = self.fit(seed, strategy, settings, groups, sharding="shard")
        found["none slow"] = self.fit(seed, strategy, settings, apart)
        found["one slow"] = self.fit(seed, strategy, settings, apart, stragglers=(1 / apart, SLOW))
        return found
