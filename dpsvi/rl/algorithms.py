"""The algorithms of the paper and its neighbours, as settings of one actor-critic.

All of them make the same local step, on a network that several agents share.  They differ in how
many games an agent plays at once, how long what it played waits, how many steps it makes before
others get them, and how the changes of several workers become one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple


class Algorithm(NamedTuple):
    """What an algorithm chooses where the user has not.

    Parameters
    ----------
    n_games : int
        Games that each agent, a thread, plays at once; with `divided`, all workers together.
    local_steps : int or None
        B, steps of each thread between two exchanges of a worker.
    cluster : callable(n) -> dict, or None
        Options of :class:`dpsvi.Cluster` for n workers.  None: it runs in one process.
    one_thread : bool
        Whether a worker has one thread only.
    needs_workers : bool
        Whether it needs an engine with workers.
    queue : int
        Steps of an agent that wait before it learns from them (:mod:`dpsvi.rl.waiting`).
    divided : bool
        Whether `n_games` are those of all workers, each of which has a part.
    """

    n_games: int
    local_steps: int | None
    cluster: Callable[[int], dict[str, Any]] | None
    one_thread: bool = False
    needs_workers: bool = False
    queue: int = 0
    divided: bool = False

    def games(self, n_workers: int) -> int:
        """Games that each agent plays at once, of so many workers."""
        return max(1, self.n_games // n_workers) if self.divided else self.n_games


def _momentum(n_workers: int) -> dict[str, Any]:
    # In the long run the master moves by the mean of its workers: with their sum it does not learn
    # from many (`experiments.hsa2c figure6`).
    mu = 0.5
    rate = (1 - mu) / n_workers
    return {"strategy": "momentum", "strategy_options": {"momentum": mu}, "global_rate": rate}


def _named(strategy: str) -> Callable[[int], dict[str, Any]]:
    return lambda n_workers: {"strategy": strategy}


ALGORITHMS: Mapping[str, Algorithm] = MappingProxyType({
    "hsa2c": Algorithm(16, 16, _momentum),
    "pa3c": Algorithm(1, None, None),
    "ga3c": Algorithm(8, None, None, queue=4),
    "da3c": Algorithm(1, 1, _named("displacement"), one_thread=True, needs_workers=True),
    "paac": Algorithm(32, 1, _named("local_sgd"), one_thread=True, divided=True),
    "gala": Algorithm(8, 1, _named("gala"), one_thread=True, needs_workers=True),
})  # fmt: skip
