"""Pairs of nodes that exchange replicas, or parts of them: a dense replay; there is one of each."""

import numpy as np
import pytest
from reference.strategies import ETA, assert_close, first_of, lda, nodes_batches, steps_of

from dpsvi import Cluster, engines
from dpsvi.cluster.nodes.consensus import Consensus
from dpsvi.cluster.nodes.peer import Peer
from dpsvi.cluster.transports.memory import Memory
from dpsvi.cluster.turns import peers_take_turns
from dpsvi.training.schedules import constant


def pairs(n_nodes, meeting):
    """Who meets whom at a meeting of a fit from its start."""
    order = np.random.default_rng([n_nodes, 0, meeting]).permutation(n_nodes)
    both = {}
    for i, j in zip(order[::2], order[1::2], strict=False):
        both |= {int(i): int(j), int(j): int(i)}
    return both


def test_one_node_is_serial_svi_bit_for_bit(corpus):
    ours, theirs = (lda(corpus, 8, constant(0.5), strategy="gap") for _ in range(2))
    peers_take_turns(ours, 1)
    engines.get("serial").fit(theirs)
    assert np.array_equal(ours.state.natural(), theirs.state.natural())


@pytest.mark.parametrize("schedule", [None, constant(0.3)])
@pytest.mark.parametrize("period", [1, 3])
@pytest.mark.parametrize(
    "n_nodes, delay, last_rows",
    [(2, 0, None), (4, 0, 30), (4, 5, None), (4, 5, 30), (5, 13, None), (5, 13, 1)],
)
def test_gap_is_its_equations(corpus, n_nodes, delay, last_rows, period, schedule):
    """In float64; what is on its way when all have ended is counted as if it had come."""
    options = {"period": period, "last_rows": last_rows}
    job = lda(corpus, 4, schedule, strategy="gap", strategy_options=options)
    moving = np.arange(corpus.n_features) >= corpus.n_features - (last_rows or corpus.n_features)
    _, step = steps_of(job, corpus)
    batches = nodes_batches(job, n_nodes)
    x, meeting, done = [first_of(job)] * n_nodes, [0] * n_nodes, [0] * n_nodes
    sent = [None] * n_nodes  # the replica that was sent, and the decay since then
    came, flying, turn, met = [{} for _ in range(n_nodes)], [], 0, 0

    def exchange(i):
        """Take over what moves of the other at this meeting, where both nodes have sent theirs."""
        nonlocal met
        if sent[i] is None or meeting[i] not in came[i]:
            return
        v, (w, a) = came[i].pop(meeting[i]), sent[i]
        b = (x[i] - ETA) - a * (w - ETA)
        x[i] = np.where(moving, ETA + a * (v - ETA) + b, x[i])
        sent[i], meeting[i], met = None, meeting[i] + 1, met + 1

    def arrive(now):
        for _, to, number, copy in [f for f in flying if f[0] <= now]:
            came[to][number] = copy
            exchange(to)
        flying[:] = [f for f in flying if f[0] > now]

    while any(done[i] < len(batches[i]) for i in range(n_nodes)):
        for i in range(n_nodes):
            arrive(turn)
            if done[i] < len(batches[i]):
                rate = job.schedule(np.array([n_nodes * done[i]]))[0]
                x[i] = step(x[i], batches[i][done[i]], rate)
                done[i] += 1
                if sent[i] is not None:
                    sent[i] = sent[i][0], sent[i][1] * (1 - rate)
                while sent[i] is None and done[i] >= period * (meeting[i] + 1):
                    to = pairs(n_nodes, meeting[i]).get(i)
                    if to is None:
                        meeting[i] += 1
                        continue
                    flying.append((turn + delay, to, meeting[i], x[i]))
                    sent[i] = x[i], 1.0
                    exchange(i)
                    break
            turn += 1
    n_flying = len(flying)
    arrive(np.inf)
    assert met >= 2 * n_nodes / period and (n_flying > 0 or delay < 13)
    assert all(np.all(each >= ETA * 0.999) for each in x)
    peers_take_turns(job, n_nodes, delay)
    assert_close(job, sum(x) / n_nodes)


def wander(job, n_nodes, n_turns, killed=None, seed=0, row=0):
    """Replicas that are numbered, moved by nodes that make no steps; where each `row` was."""
    peers = [Peer(job, node, n_nodes) for node in range(n_nodes)]
    for node, peer in enumerate(peers):
        peer.state.shared.rows[...] = 2.0**node
    memory, rng = Memory(dict(enumerate(peers)), delay=n_nodes), np.random.default_rng(seed)
    lost, places = set(), np.zeros((n_nodes, n_nodes), bool)
    for turn in range(n_turns):
        if turn == killed:
            memory.lose(1, "killed")
            lost = {1}
            for peer in peers:
                peer.lose(1, "killed")
        node = int(rng.integers(n_nodes))
        if node in lost:
            continue
        peer, transport = peers[node], memory.at(node)
        for sender, message in transport.poll():
            peer.take(sender, message)
        if (to := peer.strategy.target()) is not None:
            share = peer._message("share", *peer.strategy.send(peer.state))
            transport.send(to, share)
        memory.time += 1
        held = [int(each.state.shared.rows[row, 0]) for each in peers]
        for place, number in enumerate(held):
            if place not in lost:
                places[number.bit_length() - 1, place] = True
        yield peers, memory, lost, places


def mean_of(peers, memory, lost, row=0):
    """What all nodes have come to together in a row, as a sum."""
    together = Consensus(peers[0], 0.0)
    for peer in peers[1:]:
        if peer.node not in lost:
            together.add(peer.whole())
    for message in memory.unread():
        together.add(message)
    return float(together._state.natural()[row, 0] - ETA) * (len(peers) - len(lost))


def test_there_is_always_one_of_each_replica(corpus):
    """Numbers are powers of two, so that their sum says which of them are there."""
    n_nodes = 6
    job = lda(corpus, strategy="gap", strategy_options={"period": 2})
    for peers, memory, lost, places in wander(job, n_nodes, 600):  # noqa: B007
        assert mean_of(peers, memory, lost) == pytest.approx(2.0**n_nodes - 1, abs=1e-3)
    assert places.all(), "every replica has been everywhere"


def test_the_last_rows_go_round_and_the_others_stay(corpus):
    """As discriminators do, each of which is with one generator at any time."""
    n_nodes, first = 6, corpus.n_features - 2
    job = lda(corpus, strategy="gap", strategy_options={"period": 2, "last_rows": 2})
    own = 2.0 ** np.arange(n_nodes)
    for peers, memory, lost, places in wander(job, n_nodes, 600, row=first):  # noqa: B007
        held = np.array([peer.state.shared.rows[:, 0] for peer in peers])
        assert np.all(held[:, :first] == own[:, None]), "generators stay where they are"
        assert np.all(held[:, first] == held[:, first + 1]), "a discriminator moves as a whole"
        for row in (0, first):
            assert mean_of(peers, memory, lost, row) == pytest.approx(2.0**n_nodes - 1, abs=1e-3)
    assert places.all(), "every discriminator has met every generator"


@pytest.mark.parametrize("killed", range(200, 240, 10))
def test_a_lost_node_takes_one_replica_with_it_and_the_others_go_on(corpus, killed):
    n_nodes = 6
    job = lda(corpus, strategy="gap", strategy_options={"period": 2})
    before, sums = None, set()
    for turn, (peers, memory, lost, places) in enumerate(wander(job, n_nodes, 900, killed)):
        if turn == killed + 100:
            before = places.copy()
            places[...] = False
        if lost:
            sums.add(round(mean_of(peers, memory, lost), 2))
    (left,) = sums
    gone = int(2**n_nodes - 1 - left)
    assert left == int(left)
    assert before is not None and places.any(axis=1).sum() == n_nodes - 1
    assert places[:, [0, 2, 3, 4, 5]].sum() >= 20, "those that are left still go round"
    assert gone > 0 and gone & (gone - 1) == 0


def test_options_out_of_range(corpus):
    with pytest.raises(ValueError, match="period must be an integer >= 1"):
        Cluster(strategy="gap", strategy_options={"period": 0})
    with pytest.raises(ValueError, match="last_rows must be an integer >= 1, got 0"):
        Cluster(strategy="gap", strategy_options={"last_rows": 0})
    job = lda(corpus, strategy="gap", strategy_options={"last_rows": corpus.n_features + 1})
    with pytest.raises(ValueError, match=rf"last_rows must be .* <= {corpus.n_features}, got"):
        Peer(job, 0, 2)
