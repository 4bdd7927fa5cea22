"""GoSGD (Blot et al. 2016): gossip between nodes that are drawn at random, no master.

After its local steps a node pushes, with probability p, half of its weight and its parameters to
another node, which is drawn uniformly; whoever receives takes the weighted mean::

    x_i <- (a_i x_i + a_s x_s) / (a_i + a_s)        a_i <- a_i + a_s

The mean is convex, so x_i stays a valid natural parameter.  The weights always sum to what they
were, messages on their way included, and the result is the weighted mean of all nodes.  In the
terms of :mod:`dpsvi.strategies.push_sum`, a x is the mass: this is push-sum along random edges.
With a small p messages are rare, and replicas come far apart.
"""

from __future__ import annotations

import numpy as np

from dpsvi.errors import check_number
from dpsvi.strategies import push_sum


class Strategy(push_sum.Strategy):
    """See :class:`dpsvi.base.Peers`.

    Parameters
    ----------
    probability : float, in (0, 1]
        p, of a push after each turn.
    """

    def __init__(self, probability: float = 0.5):
        check_number("probability", probability, low=0, high=1, open_low=True)
        super().__init__()
        self.probability = probability

    def begin(self, state, node: int, n_nodes: int, before: dict | None) -> None:
        """Give this node a weight of 1, and draws of its own."""
        super().begin(state, node, n_nodes, before)
        self._others = [(node + distance) % n_nodes for distance in range(1, n_nodes)]
        self._seed, self._n_asked = [n_nodes, node], before["n_asked"] if before else 0

    def state(self) -> dict:
        """How often it was asked whom to send to."""
        return {"n_asked": self._n_asked}

    def lost(self, node: int) -> None:
        """Draw others instead of `node`."""
        self._others = [other for other in self._others if other != node]

    def _next(self) -> int | None:
        """Any other node, or nobody."""
        draws = np.random.default_rng([*self._seed, self._n_asked])
        self._n_asked += 1
        if not self._others or draws.random() >= self.probability:
            return None
        return self._others[int(draws.integers(len(self._others)))]
