"""Local SGD (Stich 2019), in rounds; post-local SGD.

All workers read the same parameters v, make B local steps each, and the master takes the mean of
where they ended, with the items that each has seen as weights::

    v <- sum_i n_i u_i / sum_i n_i

Then the next round begins: a worker waits for the slowest one, and nothing is stale.  The mean is
convex, so v stays a valid natural parameter.

Post-local SGD (Lin et al. 2020) makes rounds of one local step at first, so that all workers see
each other while much still changes, and longer ones when a share of the passes is over.

With ``sharding="shard"`` and as many ``local_steps`` as a shard has this is federated averaging
with all clients in every round; :mod:`dpsvi.strategies.fedavg` draws some of them.

Where the steps of a fit are not so many that all workers have equal parts of the last round, fewer
of them take part in it, and their mean moves v as far as that of all would: choose ``local_steps``
that divide a worker's part of a pass, or leave them to the engine, which makes parts smaller then.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from dpsvi.base import Parameters, Star, Update
from dpsvi.errors import check_number


class Strategy(Star):
    """See :class:`dpsvi.base.Star`.

    Parameters
    ----------
    post_local : float, in [0, 1]
        Share of the passes in which every round has one local step; 0: none.
    """

    synchronous = True
    replicas = True
    incremental = False  # the mean of n workers would get 1 / n of each change
    refuses: ClassVar[dict[str, str]] = {
        "master_batch": "all workers of a round are merged at once",
        "global_rate": "the mean of all workers is taken as it is",
        "strict": "there is no unstable rate",
        "prefetch": "a round is read when the last one has been merged, not before",
        "waiting": "all wait for the slowest worker",
    }

    def __init__(self, post_local: float = 0.0):
        check_number("post_local", post_local, low=0, high=1)
        self.post_local = post_local

    def local_steps(self, done: float) -> float:
        """One at first."""
        return 1 if done < self.post_local else math.inf

    def __call__(self, parameters: Parameters, updates: list[Update]) -> None:
        """Take the mean, in parts: of the decays and of the statistics."""
        if len(updates) == 1:
            parameters.decay(updates[0], 1.0)
            parameters.add(updates[0], 1.0)
            return
        weights = shares_of(updates)
        parameters.combine(float(weights @ [update.decay for update in updates]))
        for weight, update in zip(weights, updates, strict=True):
            parameters.add(update, weight)


def shares_of(updates: list[Update]) -> np.ndarray:
    """Weights of the updates in a mean: float64, (n,), their sum is 1."""
    return _shares([update.n_items for update in updates])


def become_mean(parameters: Parameters, replicas: list[Parameters], n_items: list[int]) -> None:
    """Make `parameters` the mean of `replicas`, each of which has seen so many items."""
    shares = _shares(n_items)
    first = int(shares.argmax())  # its scale does not become 0
    parameters.restore(replicas[first].content())
    parameters.combine(float(shares[first]))
    for i, replica in enumerate(replicas):
        if i != first and shares[i]:
            parameters.combine(1.0, float(shares[i]), replica)


def _shares(n_items):
    counts = np.array(n_items, np.float64)
    if not counts.any():  # workers were stopped before a step
        return np.full(len(counts), 1 / len(counts))
    return counts / counts.sum()
