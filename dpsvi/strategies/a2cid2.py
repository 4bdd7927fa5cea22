"""A2CiD2 (Nabli, Belilovsky and Oyallon 2023): gossip between neighbours, with momentum.

Beside its parameters x_i a node has a second variable, x_i + y_i.  Both are mixed all the time,
which moves x_i by its momentum y_i; gossip with a neighbour j moves the second one further than
x_i, so that y_i remembers where neighbours are::

    after s turns      x_i <- x_i + (1 - e) / 2 y_i     y_i <- e y_i         e = exp(-2 eta s)
    a copy m = x_j     x_i <- x_i - (x_i - m) / 2       y_i <- y_i - (alpha - 1/2) (x_i - m)

The graph says how strong that is.  With its Laplacian L, in which an edge weighs as
much as there are exchanges over it in a turn::

    chi_1 = 1 / lambda_2(L)        chi_2 = max over edges (i, j) of (e_i - e_j)' L^+ (e_i - e_j) / 2
    eta = 1 / (2 sqrt(chi_1 chi_2))        alpha = sqrt(chi_1 / chi_2) / 2

On a ring of n nodes chi_1 grows as n^2 and chi_2 as n: the nodes agree as if they had sent far more
messages.  In a complete graph both are the same, so alpha is 1/2 and there is no momentum: use
:mod:`dpsvi.strategies.gossip` there.

The steps of x_i are convex as long as x_i + y_i is a valid natural parameter.  Local steps decay
both variables and add the same statistics to them, so y_i decays as x_i does (the authors' own,
along plain gradients, leave it as it is, and so does this where nothing decays).  The only step
that is not convex is that of y_i along a copy: x_i + y_i is projected onto the domain of the model
after it.  Where a model has no such projection (``Model.nonnegative``) nothing keeps it there.

The authors let both ends of an edge take their step at the same moment, for which both must wait.
Here a node asks a neighbour, drawn uniformly, by a copy of its parameters, and goes on; the other
one takes its step when it can answer by a copy of its own, with which the first takes its step.  So
the two steps are half a round trip apart, and come in pairs: single ones, along copies that nobody
answers, are unstable on a long ring.  What is reported is the mean of all nodes; while nothing else
happens to a pair it is conserved.
"""

from __future__ import annotations

import math

import numpy as np

from dpsvi.base import Peers
from dpsvi.strategies._graphs import Graph, check_graph, check_size, neighbours


def constants(graph: list[list[int]]) -> tuple[float, float]:
    """Eta and alpha of a connected graph, given by the neighbours of each node.

    Examples
    --------
    >>> ring = [[(node - 1) % 16, (node + 1) % 16] for node in range(16)]
    >>> [round(number, 2) for number in constants(ring)]
    [0.14, 1.87]
    """
    n = len(graph)
    laplacian = np.zeros((n, n))
    for node, nodes in enumerate(graph):
        for to in nodes:  # half of the messages of both are answers
            weight = (1 / len(nodes) + 1 / len(graph[to])) / 2
            laplacian[node, node] += weight
            laplacian[node, to] -= weight
    inverse = np.linalg.pinv(laplacian, hermitian=True)
    chi_1 = 1 / float(np.linalg.eigvalsh(laplacian)[1])
    chi_2 = max(
        float(inverse[i, i] + inverse[j, j] - 2 * inverse[i, j]) / 2
        for i, nodes in enumerate(graph) for j in nodes
    )  # fmt: skip
    return 1 / (2 * math.sqrt(chi_1 * chi_2)), math.sqrt(chi_1 / chi_2) / 2


_COMPLETE = (
    "a2cid2 has no complete graph, as graph={!r} is: all nodes are neighbours, so there is nothing "
    "that momentum could speed up; use strategy='gossip', or graph='ring'"
)


def _check_incomplete(graph: Graph, found: list[list[int]]) -> None:
    """Raise ValueError where all nodes are neighbours, who are `found`; of up to three they may."""
    n_nodes = len(found)
    if n_nodes > 3 and all(len(nodes) == n_nodes - 1 for nodes in found):
        raise ValueError(_COMPLETE.format(graph))


class Strategy(Peers):
    """See :class:`dpsvi.base.Peers`.

    Parameters
    ----------
    graph : {"ring", "torus", "exponential"} or list of lists of int
        Who sends to whom, see :mod:`dpsvi.strategies._graphs`; both ways, whatever its direction.
        With 4, 5 or 7 nodes the exponential graph is complete, and refused.
    """

    incremental = False  # a mean of two nodes holds half of each change

    def __init__(self, graph: Graph = "ring"):
        check_graph(graph)
        if not isinstance(graph, str):
            _check_incomplete(graph, neighbours(graph, len(graph)))
        elif graph == "complete":
            raise ValueError(_COMPLETE.format(graph))
        self.graph = graph
        self._turns = 0  # since x and y were mixed
        self._asked: tuple[int, np.ndarray] | None = None  # who wants an answer, and its copy
        self._answers = False  # whether the next message is one
        self._n_whole = 1  # nodes that the state is the mean of

    def begin(self, state, node: int, n_nodes: int, before: dict | None) -> None:
        """Start with no momentum, or with that of a checkpoint.

        Raises
        ------
        ValueError
            The graph has another number of nodes, or of so many nodes it is complete.
        """
        check_size(self.graph, n_nodes)
        found = neighbours(self.graph, n_nodes)
        _check_incomplete(self.graph, found)
        self._seed, self._lost = [n_nodes, node], frozenset[int]()
        self._node, self._turns, self._n_drawn, self._n_whole = node, 0, 0, 1
        self._mix_with(found)
        self._asked, self._answers = None, False
        state.renormalise()
        self._momentum = np.zeros_like(state.shared.rows)
        if before is not None:
            self._momentum[...] = before["momentum"]
            self._turns, self._n_drawn = before["turns"], before["n_drawn"]
            self._project(state)

    def state(self) -> dict:
        """The momentum."""
        return {"momentum": self._momentum, "turns": self._turns, "n_drawn": self._n_drawn}

    def renormalise(self, state) -> None:
        """Let the momentum decay as the parameters did in the local steps."""
        self._momentum = self._momentum * state.model.real.type(state.scale)
        state.renormalise()

    def lost(self, node: int) -> None:
        """Ask others instead of `node`."""
        self._lost |= {node}
        self._mix_with(neighbours(self.graph, self._n_nodes, self._lost))
        if self._asked is not None and self._asked[0] == node:
            self._asked, self._answers = None, False

    def _mix_with(self, found):
        """Take over the graph in which each node has the neighbours `found`, lost ones none."""
        self._n_nodes, self._neighbours = len(found), found[self._node]
        left = [node for node in range(len(found)) if node not in self._lost]
        places = {node: place for place, node in enumerate(left)}
        graph = [[places[to] for to in found[node]] for node in left]
        self._eta, self._alpha = constants(graph) if len(left) > 1 else (0.0, 0.5)

    def target(self) -> int | None:
        """Who has asked last, or any neighbour."""
        self._turns += 1
        if self._answers:  # it could not be sent to, and nothing was done
            self._asked = None
        self._answers = self._asked is not None
        if self._asked is not None:
            return self._asked[0]
        if not self._neighbours:
            return None
        draws = np.random.default_rng([*self._seed, self._n_drawn])
        self._n_drawn += 1
        return self._neighbours[int(draws.integers(len(self._neighbours)))]

    def send(self, state) -> tuple[dict, dict]:
        """A copy of the parameters; if it is an answer, this node's own step follows."""
        self._mix(state)
        rows = state.shared.rows
        numbers = {"n_whole": 0, "node": self._node, "answer": self._answers}
        if self._answers:
            rows, (_, theirs) = rows.copy(), self._asked
            self._approach(state, theirs)
            self._asked, self._answers = None, False
        return numbers, {"rows": rows}

    def whole(self, state) -> tuple[dict, dict]:
        """The parameters; they are to count as one node."""
        self.renormalise(state)
        return {"n_whole": 1}, {"rows": state.shared.rows}

    def merge(self, state, numbers: dict, arrays: dict) -> None:
        """Take the step of an answer, or keep a question; none changes the mean of whole nodes."""
        if numbers["n_whole"]:
            state.renormalise()
            self._n_whole += 1
            rows = state.shared.rows
            rows += (arrays["rows"] - rows) / state.model.real.type(self._n_whole)
            state.recount()
        elif self._n_whole > 1:
            return
        elif numbers["answer"]:
            self._mix(state)
            self._approach(state, arrays["rows"])
        else:
            self._asked, self._answers = (numbers["node"], arrays["rows"].copy()), False

    def _approach(self, state, theirs):
        """Take one end's step of an exchange."""
        rows, real = state.shared.rows, state.model.real
        apart = rows - theirs
        self._momentum -= real.type(self._alpha - 0.5) * apart
        rows -= real.type(0.5) * apart
        self._project(state)
        state.recount()

    def _mix(self, state):
        """What the turns since the last time have made of both."""
        self.renormalise(state)
        if not self._turns:
            return
        real, kept = state.model.real, math.exp(-2 * self._eta * self._turns)
        self._turns = 0
        state.shared.rows[...] += real.type((1 - kept) / 2) * self._momentum
        self._momentum *= real.type(kept)
        state.recount()

    def _project(self, state):
        if state.model.nonnegative:
            np.maximum(self._momentum, -state.shared.rows, out=self._momentum)
