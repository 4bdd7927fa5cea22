"""Clients with data of their own: shards that may be unequal, and of few classes."""

from __future__ import annotations

import numpy as np

from dpsvi import VirtualCluster, engines
from dpsvi.errors import DivergedError
from dpsvi.optimize import network
from dpsvi.training.job import Job
from dpsvi.training.ledger import Ledger
from dpsvi.training.state import State
from experiments.known_results.digits import CLASSES, FREE, HIDDEN, TIMING, error, parts, start


class Clients(Ledger):
    """Passes of clients over shards of their own, whatever their sizes.

    Parameters
    ----------
    shards : list of int arrays
        Items of each client.
    visits : int
        How often an item is visited in what counts as one pass: E.
    batch_size, n_passes, seed : int
    """

    def __init__(self, shards, visits: int, batch_size: int, n_passes: int, seed: int):
        self._mine = [np.asarray(shard, np.int32) for shard in shards]
        self._visits = visits
        lengths = [visits * len(shard) for shard in shards]
        super().__init__(sum(lengths), batch_size, n_passes, seed, len(shards))
        self._steps = [-(-length // batch_size) for length in lengths]

    def items(self, work):
        """Item numbers of `work`: a new order for each visit of a client to its shard."""
        rng, mine = np.random.default_rng([self.seed, work.epoch, work.shard]), self._mine
        whole = np.concatenate([rng.permutation(mine[work.shard]) for _ in range(self._visits)])
        return whole[work.first * self.batch_size : work.last * self.batch_size]

    def sizes(self, work):
        """Items of every step of `work`."""
        starts = np.arange(work.first, work.last) * self.batch_size
        return np.minimum(self.batch_size, self._visits * len(self._mine[work.shard]) - starts)


def shards(y: np.ndarray, n_clients: int, classes: bool, unequal: bool, seed: int) -> list:
    """Items of each client, all items together.

    Parameters
    ----------
    y : int array, (n,)
    n_clients : int
    classes : bool
        Whether each client has two slices of the items in the order of their classes (McMahan et
        al. 2017), so about two classes; else a sample of all.
    unequal : bool
        Whether the k-th client has items in proportion to k; else all have as many.
    seed : int
    """
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    weights = np.arange(1, n_clients + 1) if unequal else np.ones(n_clients)
    if not classes:
        return _cut(order, weights)
    order = order[np.argsort(y[order], kind="stable")]
    owners = rng.permutation(np.repeat(np.arange(n_clients), 2))
    slices = _cut(order, weights[owners])
    return [
        np.concatenate([part for part, owner in zip(slices, owners, strict=True) if owner == k])
        for k in range(n_clients)
    ]


def _cut(order, weights) -> list:
    ends = np.round(np.cumsum(weights) / np.sum(weights) * len(order)).astype(int)
    return np.split(order, ends[:-1])


def rounds(
    held: list, fraction: float, rate: float, seed: int, *, visits: int, batch: int, most: int,
    target: float, tuning: bool = False,
) -> float:  # fmt: skip
    """Rounds of federated averaging until the error is at most `target`.

    Parameters
    ----------
    held : list of int arrays
        Items of each client.
    fraction : float
        C.
    rate : float
        Of a client's own steps.
    visits : int
        E, passes of a client over its shard in a round.
    batch : int
        B; as large as the largest shard it is one full gradient a client, so FedSGD.
    most : int
        Rounds after which it is given up.
    target : float

    Returns
    -------
    float
        Infinity where it is never reached, or diverges.
    """
    images, judged = parts(), parts()["tuning" if tuning else "test"]
    n, drawn = len(held), max(1, round(fraction * len(held)))
    cluster = VirtualCluster(
        n_workers=n, strategy="fedavg", strategy_options={"fraction": fraction}, network=FREE,
        timing=TIMING, seed=seed,
    )  # fmt: skip
    objective = network.objective(*images["train"], CLASSES, HIDDEN)
    state = State.resume(objective.model(0.0), start(seed), 1)
    # No client comes to an end of its passes before all rounds are made.
    passes = Clients(held, visits, batch, most, seed)
    report: dict = {}
    reached = []

    def look(event):
        reached.append(error(event.state.natural(), judged) <= target)
        return reached[-1] or len(reached) >= most

    job = Job(
        state, objective.items, passes, lambda t: np.full(np.shape(t), rate / drawn),
        local_steps=passes.steps_a_pass, observe_every=0.5 / passes.steps_a_pass, observer=look,
        cluster=cluster, report=report,
    )  # fmt: skip
    try:
        with np.errstate(all="ignore"):
            engines.get("simulated").fit(job)
    except DivergedError:
        return float("inf")
    return float(len(reached)) if reached[-1] else float("inf")
