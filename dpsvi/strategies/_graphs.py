"""Who a node without a master sends to: directed graphs, in which it has one out-neighbour a turn.

A graph is known by its name, or given as a list that holds the out-neighbours of every node, to
which it sends in turn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

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


def out_neighbour(graph: Graph, node: int, n_nodes: int, turn: int) -> int:
    """The node that `node`, one of `n_nodes` > 1, sends to for the `turn`-th time.

    Examples
    --------
    >>> [out_neighbour("exponential", 0, 8, turn) for turn in range(4)]
    [1, 2, 4, 1]
    >>> [out_neighbour("torus", 5, 6, turn) for turn in range(2)]  # two rows of three
    [3, 2]
    """
    if graph == "torus":
        return _beside(node, n_nodes, turn)
    if graph == "ring":
        distance = 1
    elif graph == "exponential":
        distance = 2 ** (turn % math.ceil(math.log2(n_nodes)))
    elif graph == "complete":
        distance = 1 + turn % (n_nodes - 1)
    else:
        return int(graph[node][turn % len(graph[node])])
    return (node + distance) % n_nodes


class InTurn:
    """The out-neighbours of a node, one after the other; nobody where it is alone.

    Parameters
    ----------
    graph : str or list of lists of int
    node, n_nodes : int

    Raises
    ------
    ValueError
        The graph is a list for another number of nodes.
    """

    def __init__(self, graph: Graph, node: int, n_nodes: int):
        check_size(graph, n_nodes)
        self._place, self._n_asked = (graph, node, n_nodes), 0

    def next(self) -> int | None:
        """The node to send to, each time the next."""
        if self._place[-1] == 1:
            return None
        self._n_asked += 1
        return out_neighbour(*self._place, self._n_asked - 1)


def neighbours(graph: Graph, n_nodes: int) -> list[list[int]]:
    """Nodes that each node sends to or hears from, in ascending order.

    Examples
    --------
    >>> neighbours("ring", 4)
    [[1, 3], [0, 2], [1, 3], [0, 2]]
    """
    found: list[set[int]] = [set() for _ in range(n_nodes)]
    for node in range(n_nodes if n_nodes > 1 else 0):
        # A named graph comes round in fewer turns than it has nodes.
        turns = n_nodes if isinstance(graph, str) else len(graph[node])
        for to in {out_neighbour(graph, node, n_nodes, turn) for turn in range(turns)}:
            found[node].add(to)
            found[to].add(node)
    return [sorted(nodes) for nodes in found]


def _beside(node: int, n_nodes: int, turn: int) -> int:
    """The node to the right or, every second turn, below; rows and columns are about as many."""
    n_rows = max(k for k in range(1, math.isqrt(n_nodes) + 1) if n_nodes % k == 0)
    n_columns = n_nodes // n_rows
    row, column = divmod(node, n_columns)
    if turn % 2 and n_rows > 1:
        row = (row + 1) % n_rows
    else:
        column = (column + 1) % n_columns
    return row * n_columns + column
