"""GALA's gossip (Assran et al. 2019): nodes send copies along a directed graph and take means.

After its local steps a node sends a copy of its parameters to one out-neighbour, as soon as that
one has read the last copy, and goes on; whoever receives takes the mean::

    x_i <- (x_i + m) / 2

This is convex.  A node that has had no message for more than tau turns waits for one; by default,
and as the authors ran it, nobody waits for messages.  Nothing is conserved, as with push-sum, so a
copy that is lost costs nothing; but a node whose copies come in less often than others' counts
less.  What is reported is the mean of all nodes.
"""

from __future__ import annotations

from dpsvi.base import Peers
from dpsvi.errors import check_number
from dpsvi.strategies._graphs import Graph, InTurn, check_graph


class Strategy(Peers):
    """See :class:`dpsvi.base.Peers`.

    Parameters
    ----------
    graph : {"ring", "torus", "exponential", "complete"} or list of lists of int
        Who sends to whom, see :mod:`dpsvi.strategies._graphs`.
    tau : int >= 0, or None
        The authors' bound on staleness; None: there is none.
    """

    incremental = False  # a mean of two nodes holds half of each change

    def __init__(self, graph: Graph = "ring", tau: int | None = None):
        check_graph(graph)
        if tau is not None:
            check_number("tau", tau, low=0, integer=True)
        self.graph, self.tau = graph, tau
        self._n_whole = 1  # nodes that the state is the mean of

    def begin(self, state, node: int, n_nodes: int, before: dict | None) -> None:
        """See the base class; raises ValueError where the graph has another number of nodes."""
        n_asked = before["n_asked"] if before else 0
        self._turns, self._n_whole = InTurn(self.graph, node, n_nodes, n_asked), 1
        state.renormalise()

    def state(self) -> dict:
        """How often it was asked whom to send to."""
        return {"n_asked": self._turns.n_asked}

    def lost(self, node: int) -> None:
        """Send to others instead of `node`."""
        self._turns.lose(node)

    def target(self) -> int | None:
        """The next out-neighbour."""
        return self._turns.next()

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
