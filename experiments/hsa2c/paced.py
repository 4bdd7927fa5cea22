"""A virtual cluster of slow nodes: each makes 1,500 moves a second, and the master has one link.

A node is as slow as one whose loop is Python's, so that an exchange takes as long beside its steps
as on the paper's cluster, and a message takes as long as one of the paper's network for Atari: our
networks are smaller, and so is the bandwidth, by the same factor.
"""

from __future__ import annotations

import statistics
from functools import cache

from dpsvi import VirtualCluster
from dpsvi.cluster.virtual import Network, Timing
from dpsvi.rl import ActorCritic

MOVES_A_SECOND = 1500.0
PARAMETERS = 677_943  # of the paper's network
LINKS = {"1 Gbit/s": 1.25e8, "100 Mbit/s": 1.25e7}  # bytes a second, each way
LATENCY = 1e-4


def agent(settings: dict, **more) -> ActorCritic:
    """An HSA2C on the paced cluster that `settings` describe.

    Parameters
    ----------
    settings : dict
        ``environment``, ``hidden``, ``n_games``, ``n_moves``, ``n`` workers, ``B``, ``link`` of
        :data:`LINKS`, ``seed`` and, where they are not 1, the master's ``M`` and ``global_rate``.
    more
        Other parameters of :class:`dpsvi.rl.ActorCritic`.
    """
    hidden, moves = tuple(settings["hidden"]), settings["n_games"] * settings["n_moves"]
    return ActorCritic(
        settings["environment"], engine="simulated", hidden=hidden, n_games=settings["n_games"],
        n_moves=settings["n_moves"], local_steps=settings["B"], random_state=settings["seed"],
        cluster=cluster(
            settings["n"], moves, settings["link"],
            exchange_bytes(settings["environment"], hidden), strategy="momentum",
            strategy_options={"momentum": 0.0}, global_rate=settings.get("global_rate", 1.0),
            master_batch=settings.get("M", 1), seed=settings["seed"],
        ),
        **more,
    )  # fmt: skip


def cluster(n: int, moves: int, link: str, size: float, **options) -> VirtualCluster:
    """Slow nodes, n of them; so many moves of a local step, so many bytes of an exchange."""
    return VirtualCluster(
        n_workers=n, timing=Timing(step=moves / MOVES_A_SECOND, value=0.0),
        network=Network(latency=LATENCY, bandwidth=scaled(link, size)), **options,
    )  # fmt: skip


def scaled(link: str, size: float) -> float:
    """Bytes a second of a link on which an exchange of so many takes as long as the paper's."""
    return LINKS[link] * size / (2 * 4 * PARAMETERS)


def middle(agent: ActorCritic) -> dict:
    """Moves per second in the middle half of a fit, the share of time that workers wait, seconds.

    Its `n_evaluations` are 4 or a multiple.
    """
    looks = agent.history_
    early, late = (
        next(e for e in looks if e["moves"] >= share * looks[-1]["moves"]) for share in (0.25, 0.75)
    )
    exchanges = agent.exchanges_["exchanges"]
    waited, computed = (sum(getattr(e, name) for e in exchanges) for name in ("waited", "seconds"))
    return {
        "rate": (late["moves"] - early["moves"]) / (late["seconds"] - early["seconds"]),
        "waiting": waited / (waited + computed), "seconds": agent.exchanges_["seconds"],
    }  # fmt: skip


def exchange_seconds(link: str) -> float:
    """Seconds that parameters of the paper's size take to the master and back, if nobody waits."""
    return 2 * (4 * PARAMETERS / LINKS[link] + LATENCY)


def predicted(n: int, B: int, moves: int, link: str) -> float:
    """Moves per second of n workers whose local step has so many moves.

    ``min(n R', 2 B moves / t)`` with ``R' = B moves / (B moves / R + t)`` and the seconds t of an
    exchange: as many as n workers make while none waits for another, or as the master's link
    lets through, each way at the same time.
    """
    seconds, each = exchange_seconds(link), B * moves
    return min(n * each / (each / MOVES_A_SECOND + seconds), 2 * each / seconds)


@cache
def exchange_bytes(environment, hidden) -> float:
    """Bytes of an exchange between several workers, there and back, as the cluster counts them."""
    two = VirtualCluster(n_workers=2, timing=Timing(step=1.0, value=0.0), strategy="momentum")
    small = ActorCritic(
        environment, engine="simulated", cluster=two, hidden=hidden, local_steps=1, n_games=1,
        n_moves=1, n_evaluations=1, n_episodes=1, random_state=0,
    ).fit(20)  # fmt: skip
    return statistics.median(e.n_bytes for e in small.exchanges_["exchanges"])
