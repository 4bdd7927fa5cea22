"""Reinforcement learning: environments whose moves are compiled, and what learns from them.

>>> from dpsvi.rl import ActorCritic
>>> agent = ActorCritic("cartpole", n_jobs=2).fit(1_000_000)  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpsvi.rl.actor_critic import ActorCritic as ActorCritic

__all__ = ["ActorCritic"]


def __getattr__(name: str):
    if name == "ActorCritic":  # on first use, as in `dpsvi`: it loads scikit-learn and numba
        from dpsvi.rl.actor_critic import ActorCritic

        return ActorCritic
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
