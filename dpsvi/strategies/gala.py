"""GALA's gossip (Assran et al. 2019): nodes send copies along a directed graph and take means.

After its local steps a node sends a copy of its parameters to one out-neighbour, as soon as that
one has read the last copy, and goes on; whoever receives takes the mean::

    x_i <- (x_i + m) / 2

This is convex.  Nobody waits: it is the paper's loop with an unlimited staleness bound, as its
authors ran it.  Nothing is conserved, as with push-sum, so a copy that is lost costs nothing; but a
node whose copies come in less often than others' counts less.  What is reported is the mean of all
nodes.
"""

from __future__ import annotations

from dpsvi.base import Peers
from dpsvi.strategies._graphs import Graph, check_graph, check_size, out_neighbour


class Strategy(Peers):
    """See :class:`dpsvi.base.Peers`.

    Parameters
    ----------
    graph : {"ring", "exponential", "complete"} or list of lists of int
        Who sends to whom, see :mod:`dpsvi.strategies._graphs`.
    """

    incremental = False  # a mean of two nodes holds half of each change

    def __init__(self, graph: Graph = "ring"):
        check_graph(graph)
        self.graph = graph
        self._node, self._n_nodes, self._n_sent = 0, 1, 0
        self._n_whole = 1  # nodes that the state is the mean of

    def begin(self, state, node: int, n_nodes: int) -> None:
        """See the base class; raises ValueError where the graph has another number of nodes."""
        check_size(self.graph, n_nodes)
        self._node, self._n_nodes, self._n_sent, self._n_whole = node, n_nodes, 0, 1
        state.renormalise()

    def target(self) -> int | None:
        """The next out-neighbour."""
        if self._n_nodes == 1:
            return None
        self._n_sent += 1
        return out_neighbour(self.graph, self._node, self._n_nodes, self._n_sent - 1)

    def send(self, state) -> tuple[dict, dict]:
        """A copy of the parameters."""
        state.renormalise()
        return {"n_whole": 0}, {"rows": state.shared.rows}

    def whole(self, state) -> tuple[dict, dict]:
        """The parameters; they are to count as one node."""
        state.renormalise()
        return {"n_whole": 1}, {"rows": state.shared.rows}

    def merge(self, state, numbers: dict, arrays: dict) -> None:
        """Take the mean; a copy does not change what is the mean of whole nodes already."""
        if numbers["n_whole"] == 0 and self._n_whole > 1:
            return
        state.renormalise()
        self._n_whole += numbers["n_whole"]
        share = 1 / self._n_whole if numbers["n_whole"] else 0.5
        rows = state.shared.rows
        rows += state.model.real.type(share) * (arrays["rows"] - rows)
        state.recount()
