"""Gossip without a master against dense replays: GoSGD and GALA."""

import numpy as np
import pytest
from reference.strategies import ETA, assert_close, first_of, lda, nodes_batches, steps_of
from sklearn.base import clone
from tools import mpi_fit

from dpsvi import VirtualCluster, engines, strategies
from dpsvi.cluster.nodes.peer import Peer
from dpsvi.cluster.turns import peers_take_turns
from dpsvi.cluster.virtual import TEN_GIGABIT, Network, Timing
from dpsvi.training.schedules import constant

PEERS = [name for name in strategies.names() if strategies.get(name).topology == "peers"]


@pytest.mark.parametrize("strategy", ["gossip", "gala"])
def test_one_node_is_serial_svi_bit_for_bit(corpus, strategy):
    ours, theirs = (lda(corpus, 8, constant(0.5), strategy=strategy) for _ in range(2))
    peers_take_turns(ours, 1)
    engines.get("serial").fit(theirs)
    assert np.array_equal(ours.state.natural(), theirs.state.natural())


@pytest.mark.parametrize("probability", [0.2, 1.0])
@pytest.mark.parametrize("n_nodes, delay", [(2, 0), (4, 0), (4, 5)])
def test_gosgd_is_its_equations(corpus, n_nodes, delay, probability):
    """With x and a as in the paper; who is sent to is recorded, and is what was drawn."""
    job = lda(corpus, strategy="gossip", strategy_options={"probability": probability})
    _, step = steps_of(job, corpus)
    batches = nodes_batches(job, n_nodes)
    x, a = [first_of(job)] * n_nodes, [1 / n_nodes] * n_nodes
    done, flying, turn, n_sent = [0] * n_nodes, [], 0, 0
    while any(done[i] < len(batches[i]) for i in range(n_nodes)):
        for i in range(n_nodes):
            for _, to, sent, share in [f for f in flying if f[0] <= turn]:
                x[to] = (a[to] * x[to] + share * sent) / (a[to] + share)
                a[to] += share
            flying = [f for f in flying if f[0] > turn]
            if done[i] < len(batches[i]):
                rate = job.schedule(np.array([n_nodes * done[i]]))[0]
                x[i] = step(x[i], batches[i][done[i]], rate)
                draws = np.random.default_rng([n_nodes, i, done[i]])
                if draws.random() < probability:
                    to = (i + int(draws.integers(1, n_nodes))) % n_nodes
                    a[i] /= 2
                    flying.append((turn + delay, to, x[i], a[i]))
                    n_sent += 1
                done[i] += 1
            turn += 1
    weights = a + [f[3] for f in flying]
    expected = sum(w * v for w, v in zip(weights, x + [f[2] for f in flying], strict=True))
    peers_take_turns(job, n_nodes, delay)
    assert sum(weights) == pytest.approx(1)
    assert n_sent == pytest.approx(probability * turn, rel=0.5)
    assert_close(job, expected)


@pytest.mark.parametrize("graph", ["ring", "complete", [[1], [2, 0], [3], [0]]])
@pytest.mark.parametrize("delay, tau", [(0, None), (5, None), (5, 0), (9, 1)])
def test_gala_is_its_equations(corpus, graph, delay, tau):
    """Also with a bound on staleness, by which nodes leave out turns."""
    n_nodes = 4
    job = lda(corpus, strategy="gala", strategy_options={"graph": graph, "tau": tau})
    _, step = steps_of(job, corpus)
    batches = nodes_batches(job, n_nodes)
    x, done, flying, turn = [first_of(job)] * n_nodes, [0] * n_nodes, [], 0
    deaf, n_waits = [0] * n_nodes, 0
    ways = {"ring": [[1], [2], [3], [0]],
            "complete": [[1, 2, 3], [2, 3, 0], [3, 0, 1], [0, 1, 2]]}  # fmt: skip
    ways = ways[graph] if isinstance(graph, str) else graph
    while any(done[i] < len(batches[i]) for i in range(n_nodes)):
        for i in range(n_nodes):
            for _, to, copy in [f for f in flying if f[0] <= turn]:
                x[to], deaf[to] = (x[to] + copy) / 2, 0
            flying = [f for f in flying if f[0] > turn]
            all_at_work = all(done[k] < len(batches[k]) for k in range(n_nodes))
            if tau is not None and deaf[i] > tau and all_at_work:
                n_waits += 1
            elif done[i] < len(batches[i]):
                deaf[i] += 1
                rate = job.schedule(np.array([n_nodes * done[i]]))[0]
                x[i] = step(x[i], batches[i][done[i]], rate)
                flying.append((turn + delay, ways[i][done[i] % len(ways[i])], x[i]))
                done[i] += 1
            turn += 1
    assert np.all(sum(x) / n_nodes >= ETA * 0.999)
    peers_take_turns(job, n_nodes, delay)
    assert_close(job, sum(x) / n_nodes)
    assert bool(n_waits) == (tau is not None)


def test_gala_agents_stay_together(corpus):
    """With copies sent they are near each other, without they part."""
    apart = []
    for ready in (True, False):
        job = lda(corpus, 6, constant(0.3), strategy="gala")
        peers = [Peer(job, node, 4) for node in range(4)]
        while not all(peer.finished for peer in peers):
            for peer in peers:
                if not peer.finished:
                    for to, message in peer.turn(lambda to, ready=ready: ready):
                        peers[to].take(peer.node, message)
        x = np.array([peer.state.natural() for peer in peers])
        apart.append(np.abs(x - x.mean(axis=0)).sum() / x.mean(axis=0).sum())
    assert apart[0] < 0.7 * apart[1]


GRAPHS = [("ring", 3), ("exponential", 6), ("complete", 4), ("torus", 6)]


@pytest.mark.parametrize("strategy", ["push_sum", "gala"])
@pytest.mark.parametrize("tau", [0, 2])
def test_nobody_makes_more_turns_than_tau_without_a_message(corpus, strategy, tau):
    """With messages that are late, and as long as all are at work."""
    for graph, n_nodes in GRAPHS:
        stale = [0]

        def look(peers, flying, stale=stale):
            if not any(peer.finished for peer in peers):
                stale += [peer.exchanges[-1].staleness for peer in peers if peer.exchanges]

        options = {"graph": graph, "tau": tau}
        job = lda(corpus, strategy=strategy, strategy_options=options)
        peers_take_turns(job, n_nodes, 7 * n_nodes, look)
        assert max(stale) == tau and job.state.items == 2 * 200


@pytest.mark.parametrize("strategy", ["push_sum", "gala"])
@pytest.mark.parametrize("tau", [0, 1])
def test_nodes_that_wait_do_not_wait_for_ever(corpus, strategy, tau):
    """One of a virtual cluster is ten times slower, and sets the pace until one has ended."""
    for graph, n_nodes in GRAPHS:
        cluster = VirtualCluster(
            n_workers=n_nodes, timing=Timing(step=1.0, value=0.0), strategy=strategy,
            strategy_options={"graph": graph, "tau": tau}, stragglers=(1 / n_nodes, 10.0),
        )  # fmt: skip
        job = lda(corpus)._replace(cluster=cluster)
        engines.get("simulated").fit(job)
        assert job.state.items == 2 * 200


@pytest.mark.parametrize("strategy", ["push_sum", "gala"])
@pytest.mark.parametrize("n_nodes", [2, 3, 8])
@pytest.mark.parametrize("latency", [0.01, 1.0])
def test_nodes_that_are_as_fast_do_not_wait_for_each_other(corpus, strategy, n_nodes, latency):
    """What was read is known of later: a node that cannot send for that must not wait."""
    network = Network(bandwidth=1e9, latency=latency)
    cluster = VirtualCluster(
        n_workers=n_nodes, timing=Timing(step=1.0, value=0.0), strategy=strategy, network=network,
        strategy_options={"graph": "ring", "tau": 0},
    )  # fmt: skip
    job = lda(corpus)._replace(cluster=cluster)
    engines.get("simulated").fit(job)
    assert job.state.items == 2 * 200


def test_a_node_waits_for_one_that_does_not_read(corpus):
    """What it sends, and what that one sends in the end, would be older and older."""
    job = lda(corpus, strategy="push_sum", strategy_options={"graph": "ring"})
    peer, n_turns = Peer(job, 0, 2), 1
    assert peer.turn()[0][0] == 1 and not peer.ahead([])
    while not peer.ahead([1]):
        assert peer.turn(lambda node: False) == []
        n_turns += 1
    assert n_turns == 17 and not peer.finished
    peer.restart(job.state)
    assert peer.turn()[0][0] == 1 and not peer.ahead([1])


@pytest.mark.parametrize("strategy", PEERS)
def test_what_a_very_slow_node_has_sent_spoils_nothing(strategy):
    """Its first steps, which are large, reached nodes that had no step left to mend them."""
    X, lda = mpi_fit.problem("collapsed")
    cluster = VirtualCluster(
        n_workers=3, timing=Timing(step=1e-3, value=0.0), network=TEN_GIGABIT,
        strategy=strategy, stragglers=(1 / 3, 100.0),
    )  # fmt: skip
    found = clone(lda).set_params(engine="simulated", max_iter=6, cluster=cluster).fit(X[:-200])
    alone = lda.set_params(engine="serial", max_iter=6).fit(X[:-200])
    assert found.score(X[-200:]) > alone.score(X[-200:]) - 0.04
