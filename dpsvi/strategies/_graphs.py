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

NAMES = ("exponential", "ring", "complete")

Graph = str | Sequence[Sequence[int]]


def check_graph(graph: Graph) -> None:
    """Raise ValueError or TypeError unless `graph` has a name or can be a list of neighbours."""
    if isinstance(graph, str):
        check_choice("graph", graph, NAMES)
        return
    try:
        lists = [[int(node) for node in nodes] for nodes in graph]
    except (TypeError, ValueError):
        raise TypeError(
            f"graph must be one of {NAMES} or a list of the out-neighbours of every node, "
            f"got {graph!r}"
        ) from None
    for node, nodes in enumerate(lists):
        if not nodes or not all(0 <= to < len(lists) and to != node for to in nodes):
            raise ValueError(
                f"graph: node {node} must send to others of 0 to {len(lists) - 1}, got {nodes}"
            )
    ends = np.array([(node, to) for node, nodes in enumerate(lists) for to in nodes]).T
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
    """
    if graph == "ring":
        distance = 1
    elif graph == "exponential":
        distance = 2 ** (turn % math.ceil(math.log2(n_nodes)))
    elif graph == "complete":
        distance = 1 + turn % (n_nodes - 1)
    else:
        return int(graph[node][turn % len(graph[node])])
    return (node + distance) % n_nodes
