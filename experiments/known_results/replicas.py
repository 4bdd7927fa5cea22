"""What the nodes of a cluster without a master hold while a fit goes on."""

from __future__ import annotations

from functools import partial

import numpy as np

from dpsvi import VirtualCluster


class Replicas:
    """The parameters of all nodes of one virtual fit.

    Parameters
    ----------
    change : callable(strategy) or None
        What is to be different in the strategy of every node, once it has begun.
    """

    def __init__(self, change=None):
        self._states, self._change = {}, change

    def cluster(self, **options) -> VirtualCluster:
        """A virtual cluster whose nodes can be looked at."""
        note = self._note

        class Watched(VirtualCluster):
            def make_strategy(self):
                made = super().make_strategy()
                made.begin = partial(note, made, made.begin)
                return made

        return Watched(**options)

    def _note(self, strategy, begin, state, node, n_nodes, before):
        self._states[node] = state
        begin(state, node, n_nodes, before)
        if self._change is not None:
            self._change(strategy)

    def now(self) -> np.ndarray:
        """Parameters of all nodes, (n, size)."""
        return np.array([state.natural().ravel() for state in self._states.values()])

    def distance(self) -> float:
        """The largest distance of a node from the mean of all."""
        found = self.now()
        return float(np.sqrt(np.sum((found - found.mean(axis=0)) ** 2, axis=1).max()))

    def apart(self) -> float:
        """The mean squared distance of the nodes from their mean."""
        found = self.now()
        return float(np.mean(np.sum((found - found.mean(axis=0)) ** 2, axis=1)))
