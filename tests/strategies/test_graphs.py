"""Directed graphs: whoever follows them comes everywhere, and every node is sent to as often."""

import numpy as np
import pytest

from dpsvi.strategies._graphs import (
    NAMES,
    InTurn,
    check_graph,
    check_size,
    neighbours,
    out_neighbours,
)


@pytest.mark.parametrize("n_nodes", [2, 3, 5, 8, 13])
@pytest.mark.parametrize("graph", NAMES)
def test_a_named_graph(graph, n_nodes):
    turns = [InTurn(graph, node, n_nodes) for node in range(n_nodes)]
    sent = np.array([[of_one.next() for of_one in turns] for _ in range(24 * (n_nodes - 1))])
    assert np.all(sent != np.arange(n_nodes)), "nobody sends to itself"
    assert np.all(np.sort(sent, axis=1) == np.arange(n_nodes)), "all are sent to, in each turn"
    known = np.eye(n_nodes, dtype=bool)
    rounds = {"exponential": int(np.ceil(np.log2(n_nodes))), "ring": n_nodes - 1,
              "torus": 2 * n_nodes, "complete": n_nodes - 1}[graph]  # fmt: skip
    for turn in range(rounds):
        before = known.copy()
        for node, to in enumerate(sent[turn]):
            known[to] |= before[node]
    assert known.all(), "after so many turns all have heard of all"


def test_a_list_of_neighbours_is_gone_through_in_turn():
    graph = [[1, 2], [0], [1]]
    check_graph(graph)
    turns = InTurn(graph, 0, 3)
    assert [turns.next() for _ in range(3)] == [1, 2, 1]
    with pytest.raises(ValueError, match="graph has 3 nodes, the fit has 4"):
        check_size(graph, 4)


@pytest.mark.parametrize(("graph", "error", "what"), [
    ("star", ValueError, "graph must be one of"), (3, TypeError, "graph must be one of"),
    ([], TypeError, "graph must be one of"), ([[True], [False]], TypeError, "graph must be one of"),
    ([["1"], ["0"]], TypeError, "graph must be one of"),
    ([[1], []], ValueError, "node 1 must send to others of 0 to 1"),
    ([[1], [1]], ValueError, "node 1 must send to others"),
    ([[1], [0], [0]], ValueError, "not every node can reach every other one"),
])  # fmt: skip
def test_bad_graphs(graph, error, what):
    with pytest.raises(error, match=what):
        check_graph(graph)


def test_a_torus_has_rows_and_columns():
    """Of 12 nodes three rows of four, whose ends meet; of a prime number a ring."""
    grid = np.arange(12).reshape(3, 4)
    expected = [[np.roll(grid, -1, axis=1), np.roll(grid, -1, axis=0)][turn % 2].ravel()
                for turn in range(4)]  # fmt: skip
    turns = [InTurn("torus", node, 12) for node in range(12)]
    sent = [[of_one.next() for of_one in turns] for _ in range(4)]
    np.testing.assert_array_equal(sent, expected)
    assert [len(nodes) for nodes in neighbours("torus", 12)] == [4] * 12
    assert neighbours("torus", 7) == neighbours("ring", 7)


@pytest.mark.parametrize(("graph", "expected"), [
    ("complete", [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]]),
    ("exponential", [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]]),
    ([[1, 1], [2], [3], [0]], [[1, 3], [0, 2], [1, 3], [0, 2]]),
])  # fmt: skip
def test_neighbours_are_those_of_both_directions(graph, expected):
    assert neighbours(graph, 4) == expected


@pytest.mark.parametrize(
    "graph", [*NAMES, [[1], [2], [3, 0], [4], [0, 2]], [[1], [0, 2], [3], [4], [0]]]
)
@pytest.mark.parametrize("lost", [{0}, {4}, {1, 2}, {4, 0, 3}])
def test_nodes_that_are_left_reach_each_other(graph, lost):
    """And none of them sends to a lost one."""
    left = sorted(set(range(5)) - lost)
    found = [out_neighbours(graph, node, 5, lost) for node in range(5)]
    assert all(set(found[node]) <= set(left) - {node} for node in left)
    assert all(found[node] == [] for node in lost)
    check_graph([[left.index(to) for to in found[node]] for node in left])  # else it raises
    turns = InTurn(graph, left[0], 5)
    for node in lost:
        turns.lose(node)
    assert {turns.next() for _ in range(8)} == set(found[left[0]])


def test_the_last_node_sends_to_nobody():
    turns = InTurn("ring", 1, 2)
    assert turns.next() == 0
    turns.lose(0)
    assert turns.next() is None
