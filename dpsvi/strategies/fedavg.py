"""Federated averaging (McMahan et al. 2017): rounds of some clients, drawn anew each time.

In each round a share C of the n clients, which is drawn uniformly, reads the parameters v, makes
local steps on data of its own, and the master takes the mean of where they ended, with the items
that each has seen as weights::

    v <- sum_k n_k u_k / sum_k n_k        over max(1, C n) clients k

This is :mod:`dpsvi.strategies.local_sgd` with other clients in every round: convex, so v stays a
valid natural parameter.  Take ``sharding="shard"``, and as many ``local_steps`` as a shard has:
that is E = 1, the most, since a round ends where a pass of a shard does.
A client's statistics stand for the data of all, so those who are not drawn are forgotten for a
while: the larger C n, the less; :mod:`dpsvi.strategies.pvi` forgets nobody.

A client that has made all its passes is not drawn any more.
"""

from __future__ import annotations

import numpy as np

from dpsvi.base import Parameters
from dpsvi.errors import check_number
from dpsvi.strategies import local_sgd


class Strategy(local_sgd.Strategy):
    """See :class:`dpsvi.base.Star`.

    Parameters
    ----------
    fraction : float, in (0, 1]
        C.  With fewer than 15 workers, 0.1 draws a single one for each round.
    """

    def __init__(self, fraction: float = 0.1):
        check_number("fraction", fraction, low=0, high=1, open_low=True)
        super().__init__()
        self.fraction = fraction

    def begin(self, parameters: Parameters, n_workers: int, state: dict | None) -> None:
        """Start with the first round, or with that of a checkpoint."""
        self._n_workers = n_workers
        self._n_rounds = int(state["n_rounds"]) if state else 0

    def averaged(self, n_workers: int) -> int:
        """Clients of a round."""
        return max(1, round(self.fraction * n_workers))

    def drawn(self, workers: list[int]) -> list[int]:
        """Some of those that have data left."""
        draws = np.random.default_rng([self._n_workers, self._n_rounds])
        self._n_rounds += 1
        n = min(len(workers), self.averaged(self._n_workers))
        return draws.choice(sorted(workers), n, replace=False).tolist()

    def state(self) -> dict:
        """The number of rounds, by which clients are drawn."""
        return {"n_rounds": self._n_rounds}
