"""An actor-critic that learns CartPole: moves instead of passes, returns instead of likelihoods."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType

from dpsvi.rl import ActorCritic
from experiments.strategies.measures import RETURNS
from experiments.strategies.settings import OF_AGENT

LEARNING_RATES = (0.002, 0.005, 0.01)
EPISODES = 100
SETTINGS = {"hidden": (32, 32), "n_games": 8, "n_moves": 8, "local_steps": 4}
EVALUATIONS = {"n_evaluations": 10, "n_episodes": 10}


class Agent:
    """What :class:`experiments.strategies.problems.Problem` is of items, of an actor-critic."""

    unit, measure, rates, length, has_groups = "episode", RETURNS, LEARNING_RATES, 100_000, False
    choices = MappingProxyType(OF_AGENT)

    def fit(
        self, seed: int, parameters: dict, tuning: bool, moves: int, rate: float, every: float,
        **where,
    ) -> dict:  # fmt: skip
        """What came of a fit, see `Problem.fit`; its own seed is all that tuning needs.

        Raises
        ------
        ValueError
            It cannot be fitted so.
        """
        if parameters.get("incremental"):
            raise ValueError("an actor-critic has no items whose statistics could be replaced")
        agent = ActorCritic(
            "cartpole", learning_rate=rate, random_state=seed, **EVALUATIONS,
            **{**SETTINGS, **parameters}, **where,
        ).fit(moves)  # fmt: skip
        report = agent.exchanges_
        if not report:  # of a rank that was not the first
            return {}
        return {
            "scores": [(round(look["seconds"], 6), look["score"]) for look in agent.history_],
            "score": float(agent.evaluate(EPISODES, random_state=seed).mean()),
            "seconds": report["seconds"], "bytes": report["bytes"] / agent.n_moves_,
        }  # fmt: skip


def agent(folder: Path) -> Agent:
    """The problem; it needs no files."""
    return Agent()
