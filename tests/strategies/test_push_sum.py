"""Push-sum and its kin: equations, what is conserved, who waits; nodes lose and double nothing."""

import numpy as np
import pytest
from reference.lda import count_visits
from reference.strategies import (
    ETA,
    FLOAT,
    assert_close,
    first_of,
    lda,
    nodes_batches,
    nothing,
    steps_of,
    toy,
)  # fmt: skip

from dpsvi import VirtualCluster, engines, strategies
from dpsvi.base import Model
from dpsvi.cluster.nodes.consensus import Consensus
from dpsvi.cluster.nodes.peer import Peer
from dpsvi.cluster.nodes.shares import rest_of, shares
from dpsvi.cluster.transports.messages import deliver
from dpsvi.cluster.turns import peers_take_turns
from dpsvi.cluster.virtual import Network, Timing
from dpsvi.cluster.virtual.peers import _Peers
from dpsvi.errors import DivergedError
from dpsvi.training.ledger import Ledger
from dpsvi.training.schedules import constant, robbins_monro
from dpsvi.training.state import State


@pytest.mark.parametrize("schedule", [robbins_monro(50.0, 0.7), constant(0.5)])
def test_one_peer_is_serial_svi_bit_for_bit(corpus, schedule):
    """Also where the scale must be folded in, which nobody else makes it do."""
    ours, theirs = (lda(corpus, 8, schedule, strategy="push_sum") for _ in range(2))
    peers_take_turns(ours, 1)
    engines.get("serial").fit(theirs)
    assert np.array_equal(ours.state.natural(), theirs.state.natural())


@pytest.mark.parametrize("n_nodes, delay", [(1, 0), (2, 0), (4, 0), (4, 5), (3, 2)])
def test_push_sum_is_its_equations(corpus, n_nodes, delay):
    """With x and w as in the paper, halves pushed at distance 1, 2, 1, 2, ..."""
    job = lda(corpus, strategy="push_sum")
    _, step = steps_of(job, corpus)
    batches = nodes_batches(job, n_nodes)
    x, w = [first_of(job) - ETA] * n_nodes, [1.0] * n_nodes
    done, flying, turn = [0] * n_nodes, [], 0
    distances = [1] if n_nodes == 2 else [1, 2]
    while any(done[i] < len(batches[i]) for i in range(n_nodes)):
        for i in range(n_nodes):
            for _, to, mass, weight in [f for f in flying if f[0] <= turn]:
                x[to], w[to] = x[to] + mass, w[to] + weight
            flying = [f for f in flying if f[0] > turn]
            if done[i] < len(batches[i]):
                rate = job.schedule(np.array([n_nodes * done[i]]))[0]
                z = x[i] / w[i] + ETA
                x[i] = w[i] * (step(z, batches[i][done[i]], rate) - ETA)
                if n_nodes > 1:
                    to = (i + distances[done[i] % len(distances)]) % n_nodes
                    x[i], w[i] = x[i] / 2, w[i] / 2
                    flying.append((turn + delay, to, x[i], w[i]))
                done[i] += 1
            turn += 1
    expected = sum(x) + sum(mass for _, _, mass, _ in flying)
    peers_take_turns(job, n_nodes, delay)
    assert_close(job, expected / n_nodes + ETA)
    assert job.state.step == sum(done) == 40 and job.state.items == 400


def whole_numbers(strategy="push_sum"):
    """A problem whose steps change nothing; rows are whole numbers, halved 32 times at most."""
    job = toy(16, True, 2, 0.5, nothing, np.dtype(float), strategy=strategy)
    rows = np.random.default_rng(0).integers(1, 50, size=(16, 3)).astype(float)
    return job._replace(state=State.resume(job.state.model, rows, 1), passes=Ledger(16, 1, 2, 0))


def check_mass(peers, messages, first):
    """The sums of x and w over nodes and messages are what they were, to the last bit."""
    held = [(n["weight"], a["rows"]) for n, a in (p.strategy.whole(p.state) for p in peers)]
    held += [(m.header["numbers"]["weight"], m.arrays["rows"]) for m in messages]
    assert sum(weight for weight, _ in held) == len(peers)
    np.testing.assert_array_equal(sum(rows for _, rows in held), first)


@pytest.mark.parametrize("n_nodes, delay", [(2, 0), (4, 3), (5, 7), (8, 1)])
def test_no_mass_is_lost_on_the_way(n_nodes, delay):
    job, seen = whole_numbers(), []
    first = n_nodes * job.state.natural()

    def look(peers, flying):
        check_mass(peers, flying, first)
        seen.append(len(flying))

    peers = peers_take_turns(job, n_nodes, delay, look)
    assert max(seen) >= min(1, delay), "messages were on their way, and counted"
    assert len({peer.strategy.weight for peer in peers}) > 1, "somebody held more than others"
    np.testing.assert_allclose(job.state.natural(), first / n_nodes, rtol=1e-12)


@pytest.mark.parametrize("n_nodes", [2, 5])
@pytest.mark.parametrize("latency", [0.0, 3.7])
def test_no_mass_is_lost_in_virtual_time(n_nodes, latency):
    """After each event, and at the end, where half of the nodes are slower."""
    cluster = VirtualCluster(
        strategy="push_sum", n_workers=n_nodes, network=Network(latency), stragglers=(0.5, 3.0)
    )  # fmt: skip
    job, seen = whole_numbers()._replace(cluster=cluster), []
    first = n_nodes * job.state.natural()

    class Watched(_Peers):
        def until(self, finished):
            super().until(lambda: self.look() or finished())

        def look(self):
            messages = self._links.unread()
            check_mass(self.peers, messages, first)
            seen.append(len(messages))

    simulation = Watched(job, Timing(step=1.0, value=0.0))
    simulation.run()
    simulation.end()
    assert max(seen) > 0, "messages were on their way, and counted"
    np.testing.assert_allclose(job.state.natural(), first / n_nodes, rtol=1e-12)


@pytest.mark.parametrize("strategy", ["push_sum", "gossip", "push_rows"])
@pytest.mark.parametrize("seed", range(4))
def test_what_survivors_hold_is_conserved_when_a_node_is_lost(strategy, seed):
    """With it go its weight and messages from and to it, nothing else: their mean is reported."""
    job, rng = whole_numbers(strategy), np.random.default_rng(seed)
    peers, flying = [Peer(job, node, 5) for node in range(5)], []
    first, lost, held, lost_at = job.state.natural(), None, [], int(rng.integers(15, 40))
    for node, peer in enumerate(peers):
        peer.state.shared.rows[...] *= node + 1
    for turn in range(60):
        if turn == lost_at:
            lost = int(rng.integers(1, 5))
            flying = [f for f in flying if lost not in f[:2]]
            for peer in peers:
                peer.lose(lost, "killed")
        live = [peer for peer in peers if peer.node != lost]
        peer = live[turn % len(live)]
        arrived = [f for f in flying if f[1] == peer.node and rng.random() < 0.7]
        flying = [f for f in flying if all(f is not other for other in arrived)]
        for sender, _, message in arrived:
            peer.take(sender, message)
        to = peer.strategy.target()
        if to is not None:
            assert to != lost
            message = peer._message("share", *peer.strategy.send(peer.state))
            flying.append((peer.node, to, deliver(message, peer.pool, peers[to].pool)))
        if lost is not None:
            parts = [peer.strategy.whole(peer.state) for peer in live]
            parts += [(message.header["numbers"], message.arrays) for *_, message in flying]
            held.append([sum(part) for part in zip(*map(mass_of, parts), strict=True)])
    assert len(held) >= 20
    for weights, rows in held:
        np.testing.assert_allclose(weights, held[0][0], rtol=1e-12)
        np.testing.assert_allclose(rows, held[0][1], rtol=1e-12)
    assert np.all(held[0][0] < 5), "some was lost"
    together = Consensus(peers[0], 0.0)
    for peer in live[1:]:
        together.add(peer.whole())
    for *_, message in flying:
        together.add(message)
    together.snapshot()
    mean = held[0][1] / held[0][0][:, None]
    np.testing.assert_allclose(job.state.natural(), mean, rtol=1e-6)
    assert np.all(mean >= first) and np.all(mean <= 5 * first), "a weighted mean of what nodes had"


def mass_of(part):
    """The weights of all rows in a message, and weighted rows, dense."""
    numbers, arrays = part
    if "weight" in numbers:  # the rows are the mass
        return np.full(16, numbers["weight"]), arrays["rows"].copy()
    weights, rows = np.zeros(16), np.zeros((16, 3))
    weights[arrays["sent"]] = arrays["weights"]
    rows[arrays["sent"]] = arrays["weights"][:, None] * arrays["rows"]
    return weights, rows


def test_nodes_come_to_agree():
    """Without local steps all de-biased parameters tend to the mean of what nodes start from."""
    job = whole_numbers()
    peers = [Peer(job, node, 5) for node in range(5)]
    for node, peer in enumerate(peers):
        peer.state.shared.rows[...] *= node
    for _ in range(60):
        for peer in peers:
            to, message = peer.strategy.target(), peer.strategy.send(peer.state)
            numbers, arrays = message
            peers[to].strategy.merge(peers[to].state, numbers, {"rows": arrays["rows"].copy()})
    for peer in peers:
        expected = 2 * job.state.natural()  # the mean of 0, 1, 2, 3 and 4
        np.testing.assert_allclose(peer.state.natural(), expected, rtol=1e-5)


@pytest.mark.parametrize("n_shards", [1, 3])
@pytest.mark.parametrize("local_steps", [1, 4, None])
def test_peers_lose_and_double_no_item(n_shards, local_steps):
    """What nodes make and what is left of the ledger are all passes over all items, once."""
    job = toy(203, False, 3, 0.1, strategy="push_sum")._replace(local_steps=local_steps)
    job = job._replace(passes=Ledger(203, 5, 3, 0, n_shards))
    done = np.zeros(203, int)
    for works in shares(job.passes, 3):
        for work in works:
            np.add.at(done, job.passes.items(work), 1)
    assert np.all(done == 3)
    peers = [Peer(job, node, 3) for node in range(3)]
    for turns, peer in zip([4, 0, 9], peers, strict=True):
        for _ in range(min(turns, len(peer.left))):
            peer.turn()
    rest = rest_of(job.passes, [work[:4] for peer in peers for work in peer.left])
    assert rest.n_done == sum(peer.n_done for peer in peers)
    again = Ledger.resume(203, 5, 3, rest.position())
    while work := again.grant(0, 7):
        again.done(0, work)
    assert again.finished and again.n_done == 3 * job.passes.steps_a_pass


def test_a_node_that_cannot_be_sent_to_is_left_out(corpus):
    """It keeps its mass, and goes on."""
    job = lda(corpus, strategy="push_sum")
    peer = Peer(job, 0, 2)
    assert peer.turn(ready=lambda node: False) == []
    assert peer.strategy.weight == 1 and peer.n_done == 1
    assert peer.turn()[0][0] == 1 and peer.strategy.weight == 0.5


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("tau", [0, 2])
def test_nodes_that_wait_for_each_other_go_on_when_one_is_lost(corpus, seed, tau):
    """Those that are left keep to their bound on staleness, and do not wait in a circle."""
    options = {"tau": tau, "graph": "ring"}
    job = lda(corpus, strategy="gala", strategy_options=options)._replace(local_steps=1)
    peers, rng = [Peer(job, node, 4) for node in range(4)], np.random.default_rng(seed)
    flying, live, told = [], {0, 1, 2, 3}, set()
    lost_after, turns, late = int(rng.integers(1, 20)), 0, []
    while not any(peers[node].finished for node in live):
        turns += 1
        if turns == lost_after:
            live.discard(2)  # with what is on its way to it
            flying = [sent for sent in flying if sent[1] != 2]
        able = [("turn", n) for n in live if not peers[n].waits]
        able += [("take", i) for i in range(len(flying))]
        able += [("lose", n) for n in live - told if 2 not in live]
        assert able, "all wait"
        what, n = able[rng.integers(len(able))]
        if what == "lose":
            peers[n].lose(2, "killed")
            told.add(n)
        elif what == "take":
            sender, to, message = flying.pop(n)
            peers[to].take(sender, message)
        else:
            for to, message in peers[n].turn():
                if to in live:
                    flying.append((n, to, deliver(message, peers[n].pool, peers[to].pool)))
        if told == {0, 1, 3} and what == "turn":
            late.append(peers[n].exchanges[-1].staleness)
    assert told == {0, 1, 3}
    assert max(late) <= tau + 1


def test_parameters_that_are_no_numbers_end_a_fit_of_peers(corpus):
    job = lda(corpus, strategy="push_sum")
    job.state.model.hyper[: job.state.model.shape[1]] = np.nan  # alpha
    with pytest.raises(DivergedError):
        peers_take_turns(job, 3)


def test_a_node_that_nobody_sends_to_keeps_some_mass():
    """It is finite after 5,000 turns, and what it has is still its own parameters."""
    strategy = strategies.get("push_sum")()
    prior = np.full((1, 2), 0.5, FLOAT)
    model = Model("toy", (3, 2), prior, np.zeros(0), count_visits, scratch=lambda longest: 0)
    state = State.resume(model, np.arange(6, dtype=FLOAT).reshape(3, 2), 1)
    before = state.natural()
    strategy.begin(state, 0, 4, None)
    n_sent = 0
    for _ in range(5000):
        if strategy.target() is not None:
            strategy.send(state)
            n_sent += 1
    assert 10 < n_sent < 30 and strategy.weight == 0.5**n_sent
    np.testing.assert_allclose(state.natural(), before, rtol=1e-6)
