"""Stochastic gradient push (SGP; Assran et al. 2019): nodes push halves of a mass, no master.

Node i holds a mass x_i and a weight w_i, 1 at first, and fits with the de-biased parameters

    z_i = prior + x_i / w_i.

After B local steps it keeps half of both and sends the other half to one node of a directed graph,
by default the exponential one: at distance 1, 2, 4, ... in turn.  Whoever receives adds.  No push
changes the sums of x and w over all nodes and all messages on the way, and their quotient is the
mean that all z tend to.

By default a node goes on with what has come, and messages may be late.  That is
overlapped SGP (OSGP), with the authors' bound on how late if `tau` is given: more turns than that
without a message, and a node waits for one.  ``tau=0`` is SGP, in which all wait in each turn.

A local step on z_i moves it by exactly ``rho (target - z_i)``, so x_i by w_i times as much.  The
other form, that moves x_i by ``rho (target - z_i)``, can leave the natural parameters' domain where
w_i is below rho; this one cannot, and a merge is a convex mixture of two z.

A node of very little weight sends nothing until it has received more.

With a lost node go its mass and weight and those of messages from and to it; what the others hold
keeps its weights, and the quotient of their sums is reported.

The mass is kept as the rows of the state and 1 / w is its scale, so that local steps know nothing
of it.  A push is dense: it sends, and costs, the whole matrix.
"""

from __future__ import annotations

from dpsvi.base import Peers
from dpsvi.errors import check_number
from dpsvi.strategies._graphs import Graph, InTurn, check_graph

# A node with less than this keeps what it has.  One that nobody sends to for a while, since others
# are slow or lost, would halve its mass until it is below the smallest float32.
_LEAST_SENT = 2.0**-20


class Strategy(Peers):
    """See :class:`dpsvi.base.Peers`.

    Parameters
    ----------
    graph : {"exponential", "ring", "torus", "complete"} or list of lists of int
        Who sends to whom, see :mod:`dpsvi.strategies._graphs`.
    tau : int >= 0, or None
        Turns without a message after which a node waits for one, if it could send in the last of
        them; None: it waits for no message.

    Attributes
    ----------
    weight : float
        w of this node.
    """

    incremental = False  # the mean of n nodes would get 1 / n of each change

    def __init__(self, graph: Graph = "exponential", tau: int | None = None):
        check_graph(graph)
        if tau is not None:
            check_number("tau", tau, low=0, integer=True)
        self.graph, self.tau, self.weight = graph, tau, 1.0
        self._folded = 1.0  # the scale when the rows were last exactly the mass

    def begin(self, state, node: int, n_nodes: int, before: dict | None) -> None:
        """Give this node a weight of 1.

        Raises
        ------
        ValueError
            The graph has another number of nodes.
        """
        n_asked = before["n_asked"] if before else 0
        self.weight, self._turns = 1.0, InTurn(self.graph, node, n_nodes, n_asked)
        state.renormalise()
        self._folded = 1.0

    def state(self) -> dict:
        """How often it was asked whom to send to."""
        return {"n_asked": self._turns.n_asked}

    def lost(self, node: int) -> None:
        """Send to others instead of `node`."""
        self._turns.lose(node)

    def target(self) -> int | None:
        """The next out-neighbour; nobody while there is hardly any weight to share."""
        return None if self.weight < _LEAST_SENT else self._next()

    def _next(self) -> int | None:
        return self._turns.next()

    def send(self, state) -> tuple[dict, dict]:
        """Half of the mass and the weight; the other half stays."""
        self._fold(state)
        state.shared.rows[...] *= state.model.real.type(0.5)
        self._weigh(state, self.weight / 2)
        return {"weight": self.weight}, {"rows": state.shared.rows}

    def whole(self, state) -> tuple[dict, dict]:
        """All of both."""
        self._fold(state)
        return {"weight": self.weight}, {"rows": state.shared.rows}

    def merge(self, state, numbers: dict, arrays: dict) -> None:
        """Add a mass and a weight."""
        self._fold(state)
        state.shared.rows[...] += arrays["rows"]
        self._weigh(state, self.weight + numbers["weight"])

    def _fold(self, state):
        """Make the rows the mass again: local steps have changed the scale."""
        if state.scale != self._folded:
            state.shared.rows[...] *= state.model.real.type(state.scale / self._folded)
            state.scale = self._folded
            state.recount()

    def _weigh(self, state, weight):
        self.weight = weight
        state.scale = self._folded = 1.0 / weight
        state.recount()
