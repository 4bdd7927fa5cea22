"""Who a node without a master sends to: directed graphs, in which it has one out-neighbour a turn.

A graph is known by its name, or given as a list that holds the out-neighbours of every node, to
which it sends in turn.  When nodes are lost, those that are left still reach each other: a named
graph is made anew, of them alone; in a list the neighbours of a lost node take its place.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from dpsvi.errors import check_choice

NAMES = ("exponential", "ring", "torus", "complete")

Graph = str | Sequence[Sequence[int]]


def check_graph(graph: Graph) -> None:
    """Raise ValueError or TypeError unless `graph` has a name or can be a list of neighbours."""
    if isinstance(graph, str):
        check_choice("graph", graph, NAMES)
        return
    lists = graph if isinstance(graph, (list, tuple)) else []
    if not lists or not all(isinstance(nodes, (list, tuple)) for nodes in lists) or not all(
        type(node) is int for nodes in lists for node in nodes
    ):
        raise TypeError(
            f"graph must be one of {NAMES} or a list of the out-neighbours of every node, "
            f"got {graph!r}"
        )
    for node, nodes in enumerate(lists):
        if not nodes or not all(0 <= to < len(lists) and to != node for to in nodes):
            raise ValueError(
                f"graph: node {node} must send to others of 0 to {len(lists) - 1}, got {nodes}"
            )
    # SciPy 1.11 takes numbers of nodes of 32 bits alone.
    ends = np.array([(node, to) for node, nodes in enumerate(lists) for to in nodes], np.int32).T
    adjacency = csr_array((np.ones(ends.shape[1]), ends), shape=(len(lists), len(lists)))
    n_parts = connected_components(adjacency, connection="strong", return_labels=False)
    if n_parts > 1:
        raise ValueError(f"graph: not every node can reach every other one, got {graph!r}")


def check_size(graph: Graph, n_nodes: int) -> None:
    """Raise ValueError where `graph` is a list for another number of nodes."""
    if not isinstance(graph, str) and len(graph) != n_nodes:
        raise ValueError(f"graph has {len(graph)} nodes, the fit has {n_nodes}")


def out_neighbours(
    graph: Graph, node: int, n_nodes: int, lost: Collection[int] = ()
) -> list[int]:
    """The nodes that `node`, one of `n_nodes`, sends to in turn; nobody where it is alone or lost.

    Raises
    ------
    ValueError
        The graph is a list for another number of nodes.

    Examples
    --------
    >>> out_neighbours("exponential", 0, 8)
    [1, 2, 4]
    >>> out_neighbours("torus", 5, 6)  # two rows of three
    [3, 2]
    >>> out_neighbours("ring", 1, 4, lost={2})
    [3]
    >>> out_neighbours([[1], [2, 0], [3], [0]], 1, 4, lost={2})
    [3, 0]
    """
    check_size(graph, n_nodes)
    left = [other for other in range(n_nodes) if other not in lost]
    if node in lost or len(left) == 1:
        return []
    if isinstance(graph, str):
        return [left[to] for to in _named(graph, left.index(node), len(left))]
    found = [list(nodes) for nodes in graph]
    for gone in lost:
        behind, found[gone] = found[gone], []
        for other, nodes in enumerate(found):
            there = [k for to in nodes for k in (behind if to == gone else (to,))]
            found[other] = [to for to in there if to != other]
    return found[node]


class InTurn:
    """The out-neighbours of a node, one after the other; nobody where it is alone.

    Parameters
    ----------
    graph : str or list of lists of int
    node, n_nodes : int
    n_asked : int
        How often it was asked for the next one before.

    Raises
    ------
    ValueError
        The graph is a list for another number of nodes.
    """

    def __init__(self, graph: Graph, node: int, n_nodes: int, n_asked: int = 0):
        self._place, self._lost, self.n_asked = (graph, node, n_nodes), frozenset[int](), n_asked
        self._nodes = out_neighbours(*self._place)

    def lose(self, node: int) -> None:
        """Send to others instead of `node`."""
        self._lost |= {node}
        self._nodes = out_neighbours(*self._place, self._lost)

    def next(self) -> int | None:
        """The node to send to, each time the next."""
        if not self._nodes:
            return None
        self.n_asked += 1
        return self._nodes[(self.n_asked - 1) % len(self._nodes)]


def neighbours(graph: Graph, n_nodes: int, lost: Collection[int] = ()) -> list[list[int]]:
    """Nodes that each node sends to or hears from, in ascending order.

    Examples
    --------
    >>> neighbours("ring", 4)
    [[1, 3], [0, 2], [1, 3], [0, 2]]
    """
    found: list[set[int]] = [set() for _ in range(n_nodes)]
    for node in range(n_nodes):
        for to in out_neighbours(graph, node, n_nodes, lost):
            found[node].add(to)
            found[to].add(node)
    return [sorted(nodes) for nodes in found]


def _named(graph: str, node: int, n_nodes: int) -> list[int]:
    """The out-neighbours of `node`, one of `n_nodes` > 1."""
    if graph == "torus":
        return _beside(node, n_nodes)
    if graph == "ring":
        distances = [1]
    elif graph == "exponential":
        distances = [2**power for power in range(math.ceil(math.log2(n_nodes)))]
    else:
        distances = list(range(1, n_nodes))
    return [(node + distance) % n_nodes for distance in distances]


def _beside(node: int, n_nodes: int) -> list[int]:
    """The nodes to the right and below; rows and columns are about as many."""
    n_rows = max(k for k in range(1, math.isqrt(n_nodes) + 1) if n_nodes % k == 0)
    n_columns = n_nodes // n_rows
    row, column = divmod(node, n_columns)
    right = row * n_columns + (column + 1) % n_columns
    below = (row + 1) % n_rows * n_columns + column
    return [right, below] if n_rows > 1 else [right]
