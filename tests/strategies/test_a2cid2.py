"""Gossip with continuous momentum: its equations, how much sooner nodes agree, what it refuses."""

from collections import deque

import numpy as np
import pytest
from reference.lda import TopicCorpus
from reference.strategies import ETA, assert_close, first_of, lda, nodes_batches, steps_of
from scipy.linalg import expm

from dpsvi import Cluster, engines
from dpsvi.cluster.nodes.peer import Peer
from dpsvi.cluster.turns import peers_take_turns
from dpsvi.strategies._graphs import neighbours
from dpsvi.strategies.a2cid2 import constants
from dpsvi.training.schedules import constant


def test_one_node_is_serial_svi_bit_for_bit(corpus):
    ours, theirs = (lda(corpus, 8, constant(0.5), strategy="a2cid2") for _ in range(2))
    peers_take_turns(ours, 1)
    engines.get("serial").fit(theirs)
    assert np.array_equal(ours.state.natural(), theirs.state.natural())


@pytest.mark.parametrize("schedule", [None, constant(0.5)])
@pytest.mark.parametrize("graph, n_nodes", [("ring", 2), ("ring", 8), ([[1], [2], [3], [0]], 4)])
@pytest.mark.parametrize("delay", [0, 5])
def test_a2cid2_is_its_equations(corpus, graph, n_nodes, delay, schedule):
    """With x and the second variable u as in the paper, u decayed like x and projected."""
    options = {"graph": graph}
    job = lda(corpus, 4, schedule, strategy="a2cid2", strategy_options=options)
    _, step = steps_of(job, corpus)
    batches = nodes_batches(job, n_nodes)
    both = neighbours(graph, n_nodes)
    eta, alpha = constants(both)
    mixing = expm(eta * np.array([[-1.0, 1.0], [1.0, -1.0]]))
    n_drawn = [0] * n_nodes
    x, u = [first_of(job)] * n_nodes, [first_of(job)] * n_nodes
    asked = [None] * n_nodes
    done, flying, turn, projected = [0] * n_nodes, [], 0, 0

    def approach(i, copy):
        apart = x[i] - copy
        x[i], u[i] = x[i] - apart / 2, np.maximum(u[i] - alpha * apart, ETA)
        return np.sum(u[i] <= ETA)

    while any(done[i] < len(batches[i]) for i in range(n_nodes)):
        for i in range(n_nodes):
            for _, to, sender, copy, answer in [f for f in flying if f[0] <= turn]:
                if answer:
                    projected += approach(to, copy)
                else:
                    asked[to] = sender, copy
            flying = [f for f in flying if f[0] > turn]
            if done[i] < len(batches[i]):
                rate = job.schedule(np.array([n_nodes * done[i]]))[0]
                new = step(x[i], batches[i][done[i]], rate)
                u[i] = new + (1 - rate) * (u[i] - x[i])
                x[i], u[i] = np.tensordot(mixing, [new, u[i]], 1)
                if asked[i] is None:
                    draws = np.random.default_rng([n_nodes, i, n_drawn[i]])
                    to, n_drawn[i] = both[i][int(draws.integers(len(both[i])))], n_drawn[i] + 1
                    flying.append((turn + delay, to, i, x[i], False))
                else:
                    flying.append((turn + delay, asked[i][0], i, x[i], True))
                    projected += approach(i, asked[i][1])
                    asked[i] = None
                done[i] += 1
            turn += 1
    assert np.all(sum(x) / n_nodes >= ETA * 0.999)
    if n_nodes == 8 and schedule is not None:
        assert projected, "a case in which the domain would be left"
    peers_take_turns(job, n_nodes, delay)
    assert_close(job, sum(x) / n_nodes)


def apart(job, momentum, n_nodes, n_turns, seed=0):
    """How far nodes of a ring that begin apart are from their mean, without local steps."""
    peers = [Peer(job, node, n_nodes) for node in range(n_nodes)]
    for node, peer in enumerate(peers):
        peer.state.shared.rows[...] = 10 + 5 * np.cos(2 * np.pi * node / n_nodes)
        if not momentum:
            peer.strategy._eta, peer.strategy._alpha = 0.0, 0.5
    rng, flying = np.random.default_rng(seed), deque()
    for _ in range(n_turns):
        for node in rng.permutation(n_nodes):
            peer = peers[node]
            to = peer.strategy.target()
            numbers, arrays = peer.strategy.send(peer.state)
            flying.append((to, numbers, {"rows": arrays["rows"].copy()}))
            if len(flying) > n_nodes // 2:  # turns that a message is on its way
                to, numbers, arrays = flying.popleft()
                peers[to].strategy.merge(peers[to].state, numbers, arrays)
    return np.std([peer.state.natural()[0, 0] for peer in peers])


@pytest.mark.parametrize("n_nodes, n_turns, share", [(16, 60, 0.5), (32, 150, 0.5)])
def test_nodes_of_a_ring_agree_sooner_with_momentum(n_nodes, n_turns, share):
    """By the same number of copies; it stays stable on a long ring, too."""
    words = TopicCorpus(4, n_words=8, n_documents=20, n_tokens=10, alpha=0.1, seed=1).corpus()
    job = lda(words, strategy="a2cid2")
    assert apart(job, True, n_nodes, n_turns) < share * apart(job, False, n_nodes, n_turns)


@pytest.mark.parametrize("graph", ["complete", [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]]])
def test_complete_graphs_are_refused(graph):
    with pytest.raises(ValueError, match="nothing that momentum could speed up"):
        Cluster(strategy="a2cid2", strategy_options={"graph": graph})


@pytest.mark.parametrize(("graph", "n_nodes", "complete"), [
    ("exponential", 4, True), ("exponential", 5, True), ("exponential", 7, True),
    ("exponential", 6, False), ("exponential", 8, False), ("torus", 4, False), ("ring", 3, False),
])  # fmt: skip
def test_a_named_graph_is_refused_where_it_is_complete(corpus, graph, n_nodes, complete):
    """Three nodes are neighbours on any ring: that is gossip without momentum."""
    job = lda(corpus, strategy="a2cid2", strategy_options={"graph": graph})
    if not complete:
        Peer(job, 0, n_nodes)
        return
    with pytest.raises(ValueError, match="has no complete graph, as graph='exponential' is"):
        Peer(job, 0, n_nodes)


@pytest.mark.parametrize("n_nodes", [2, 3, 5])
def test_there_is_no_momentum_where_all_are_neighbours(n_nodes):
    """Which is why complete graphs are refused: alpha is 1/2, whatever their size."""
    assert constants(neighbours("complete", n_nodes))[1] == pytest.approx(0.5)
