"""Blocks of rows with owners: the equations, every step once, one owner, lost nodes."""

import numpy as np
import pytest
from reference.lda import count_visits
from reference.strategies import ETA, K, assert_close, first_of, lda, nodes_batches, steps_of

from dpsvi import Cluster, VirtualCluster, engines
from dpsvi.base import Model
from dpsvi.cluster.nodes.consensus import Consensus
from dpsvi.cluster.nodes.peer import Peer
from dpsvi.cluster.nodes.shares import shares
from dpsvi.cluster.turns import peers_take_turns
from dpsvi.cluster.virtual import Network, Timing
from dpsvi.kernels.jit import as_items
from dpsvi.strategies import ownership
from dpsvi.training.job import Job
from dpsvi.training.ledger import Ledger
from dpsvi.training.schedules import constant, robbins_monro
from dpsvi.training.state import State
from experiments import faults


def test_one_node_is_serial_svi_bit_for_bit(corpus):
    ours, theirs = (lda(corpus, 8, constant(0.5), strategy="ownership") for _ in range(2))
    peers_take_turns(ours, 1)
    engines.get("serial").fit(theirs)
    assert np.array_equal(ours.state.natural(), theirs.state.natural())


class Node:
    """A replica, (K, words), and a decay and statistics for each block, dense."""

    def __init__(self, first, node, n_nodes):
        n_words = first.shape[1]
        cuts = np.linspace(0, n_words, n_nodes + 1).round().astype(int)
        self.blocks = [np.arange(*ends) for ends in zip(cuts[:-1], cuts[1:], strict=True)]
        self.x, self.owned = first - ETA, [node]
        self.waiting = {k: [1.0, np.zeros((K, len(words)))] for k, words in enumerate(self.blocks)}

    def step(self, step, batch, rate):
        new = step(self.x + ETA, batch, rate) - ETA
        found = new - (1 - rate) * self.x
        for k, words in enumerate(self.blocks):
            a, b = self.waiting[k]
            self.waiting[k] = [(1 - rate) * a, (1 - rate) * b + found[:, words]]
        self.x = new

    def send(self):
        """One block, or all but the last one."""
        sent, self.owned = np.split(self.owned, [max(1, len(self.owned) - 1)])
        self.owned = self.owned.tolist()
        for k in sent:
            self.waiting[k] = [1.0, 0.0]
        return [(k, self.x[:, self.blocks[k]]) for k in sent]

    def take(self, k, block):
        a, b = self.waiting[k]
        self.x = self.x.copy()
        self.x[:, self.blocks[k]] = a * block + b
        self.owned.append(k)


def gathered(nodes, flying):
    """All blocks, after what waits for them with one node after the other."""
    whole = nodes[0].x.copy()
    true = {k: node.x[:, node.blocks[k]] for node in nodes for k in node.owned}
    true |= {k: block for _, _, sent in flying for k, block in sent}
    assert sorted(true) == list(range(len(nodes[0].blocks)))
    for k, block in true.items():
        for node in nodes:
            if k not in node.owned:
                a, b = node.waiting[k]
                block = a * block + b
        whole[:, nodes[0].blocks[k]] = block
    return whole + ETA


@pytest.mark.parametrize("n_nodes, delay", [(2, 0), (3, 0), (4, 5), (4, 14), (5, 2)])
@pytest.mark.parametrize("schedule", [robbins_monro(50.0, 0.7), constant(0.3)])
def test_ownership_is_its_equations(corpus, n_nodes, delay, schedule):
    job = lda(corpus, 3, schedule, strategy="ownership")
    _, step = steps_of(job, corpus)
    batches = nodes_batches(job, n_nodes)
    nodes = [Node(first_of(job), i, n_nodes) for i in range(n_nodes)]
    done, flying, turn, n_held = [0] * n_nodes, [], 0, 0
    while any(done[i] < len(batches[i]) for i in range(n_nodes)):
        for i, node in enumerate(nodes):
            for _, to, sent in [f for f in flying if f[0] <= turn]:
                for k, block in sent:
                    nodes[to].take(k, block)
            flying = [f for f in flying if f[0] > turn]
            if done[i] < len(batches[i]):
                rate = job.schedule(np.array([n_nodes * done[i]]))[0]
                node.step(step, batches[i][done[i]], rate)
                n_held = max(n_held, len(node.owned))
                if node.owned:
                    flying.append((turn + delay, (i + 1) % n_nodes, node.send()))
                done[i] += 1
            turn += 1
    expected = gathered(nodes, flying)
    peers_take_turns(job, n_nodes, delay)
    assert_close(job, expected)
    assert job.state.step == sum(done) and job.state.items == 3 * 200


N_ITEMS = 20


def move_all(shared, scale, hyper, items, batch, work):
    """Whatever the batch is, every row moves to the number of all items."""
    for row in range(work.stats.shape[0]):
        work.touched[row] = row
        for k in range(work.stats.shape[1]):
            work.stats[row, k] = batch.shape[0]
    return work.stats.shape[0]


def counting(n_rows, n_passes=40):
    """Every visit of item i adds 1 to row ``i % n_rows``."""
    return toy(n_rows, np.arange(N_ITEMS) % n_rows, count_visits, "incremental", n_passes)


def toy(n_rows, index, local, learner, n_passes):
    real = np.dtype(np.float32)
    model = Model(
        name="toy", shape=(n_rows, 3), prior=np.zeros(3, real), hyper=np.zeros(1),
        init=lambda rng: np.zeros((n_rows, 3), real), local=local, scratch=lambda longest: 0,
        learner=learner, nonnegative=True,
    )  # fmt: skip
    items = as_items(np.arange(N_ITEMS + 1), index, np.ones(N_ITEMS), real)
    return Job(
        State.start(model, None, 1), items, Ledger(N_ITEMS, min(4, n_rows), n_passes, 0),
        constant(0.05), local_steps=2, cluster=Cluster(strategy="ownership"),
    )  # fmt: skip


def together(peers, flying):
    """What all nodes and messages hold."""
    found = Consensus(peers[0], 0.0)
    for peer in peers[1:]:
        found.add(peer.whole())
    for message in flying:
        found.add(message)
    return found.snapshot().state.learned()


@pytest.mark.parametrize("n_nodes, delay", [(1, 0), (2, 0), (4, 6), (7, 30)])
@pytest.mark.parametrize("n_rows", [20, 3])
def test_every_step_counts_once_at_any_time(n_nodes, delay, n_rows):
    """The sum over nodes and messages is the number of visits so far, to the last one."""
    job, seen = counting(n_rows), []

    def look(peers, flying):
        found = together(peers, flying)
        n_items = sum(peer.n_items for peer in peers)
        np.testing.assert_array_equal(found.sum(axis=0), n_items)
        for peer in peers:
            shared = peer.state.shared
            np.testing.assert_allclose(shared.totals.sum(axis=0), shared.rows.sum(axis=0))
        seen.append(n_items)

    peers_take_turns(job, n_nodes, delay, look)
    expected = 40 * np.bincount(np.arange(N_ITEMS) % n_rows)
    np.testing.assert_array_equal(job.state.natural(), expected[:, None].repeat(3, axis=1))
    assert len(set(seen)) > 20


@pytest.mark.parametrize("n_nodes, delay", [(2, 0), (5, 9)])
def test_all_nodes_together_forget_as_serial_svi_does(n_nodes, delay):
    """Towards the same target all orders of the steps end at the same place."""
    job = toy(10, [], move_all, "natural", n_passes=6)
    peers_take_turns(job, n_nodes, delay)
    np.testing.assert_allclose(job.state.natural(), N_ITEMS * (1 - 0.95**30), rtol=1e-5)


@pytest.mark.parametrize(
    "n_nodes, delay, n_rows", [(4, 0, 20), (4, 9, 20), (5, 2, 3), (6, 40, 20)]
)
def test_every_block_has_one_owner_or_is_on_its_way(n_nodes, delay, n_rows):
    job, visited = counting(n_rows, 80), {}

    def look(peers, flying):
        held = [k for peer in peers for k in peer.strategy.owned]
        held += [k for message in flying for k in message.arrays["blocks"].tolist()]
        assert sorted(held) == list(range(min(n_nodes, n_rows)))
        for message in flying:
            visited.setdefault(message.header["node"], set()).update(message.arrays["blocks"])

    peers_take_turns(job, n_nodes, delay, look)
    if delay < 10:
        assert [len(visited[node]) for node in range(n_nodes)] == [min(n_nodes, n_rows)] * n_nodes


@pytest.fixture
def sent(monkeypatch):
    """What nodes send: lists of blocks, with the node."""
    found, send = [], ownership.Strategy.send

    def record(self, state):
        message = send(self, state)
        found.append((self._node, message[1]["blocks"].tolist()))
        return message

    monkeypatch.setattr(ownership.Strategy, "send", record)
    return found


@pytest.mark.parametrize("moment", faults.MOMENTS)
@pytest.mark.parametrize("turn", [0, 17, 30, 45, 62])
def test_what_survivors_have_counted_is_not_lost_with_a_node(turn, moment, sent):
    """Nor are the blocks that it had: all of them go round again."""
    job = counting(20, 80)
    assert faults._peers(job, faults.Fault("killed", moment, 2, turn))
    by_survivors = np.zeros(20)
    for node in (0, 1, 3):
        for work in shares(job.passes, faults.N_NODES)[node]:
            np.add.at(by_survivors, job.passes.items(work), 1)
    found = job.state.natural()[:, 0]
    assert np.all(found >= by_survivors) and np.all(found <= 80)
    assert {k for _, blocks in sent[-20:] for k in blocks} == {0, 1, 2, 3}


def test_a_slow_node_does_not_keep_blocks(sent):
    """One of four takes turns ten times as long; the other three have all blocks all the time."""
    faults._peers(counting(20, 80), faults.Fault("slow", "before", 2, 0))
    by_others = [blocks for node, blocks in sent if node != 2]
    assert max(len(blocks) for node, blocks in sent) <= 3
    for first in range(0, len(by_others) - 20, 20):
        assert {k for blocks in by_others[first : first + 20] for k in blocks} == {0, 1, 2, 3}


@pytest.mark.parametrize("n_nodes", [3, 4, 5])
def test_all_blocks_come_to_nodes_that_go_in_step(n_nodes, sent):
    """Word that a message was read comes a turn late: no node is passed over for that."""
    cluster = VirtualCluster(
        strategy="ownership", n_workers=n_nodes, timing=Timing(step=1.0, value=0.0),
        network=Network(latency=0.0),
    )  # fmt: skip
    engines.get("simulated").fit(counting(20, 100)._replace(local_steps=1, cluster=cluster))
    visits = np.zeros((n_nodes, n_nodes))
    for node, blocks in sent:
        visits[node, blocks] += 1
    assert visits.min() > 0.5 * visits.mean() > 2


@pytest.mark.parametrize("lost", [None, 2])
def test_nodes_go_on_from_what_they_have_together(lost):
    """As after a checkpoint; the block of a lost node is then that of the next."""
    job = counting(20, 40)
    peers = [Peer(job, node, 4) for node in range(4)]

    def take_turns(peers, n):
        for _ in range(n):
            for peer in peers:
                found = [] if peer.finished else peer.turn(lambda to: to != lost)
                for to, message in found:
                    peers_by_node[to].take(peer.node, message)

    peers_by_node = dict(enumerate(peers))
    take_turns(peers, 7)
    if lost is not None:
        peers.pop(lost)
        for peer in peers:
            peer.strategy.lost(lost)
    together(peers, [])
    for peer in peers:
        peer.restart(job.state)
    expected = [[0], [1], [2], [3]] if lost is None else [[0], [1], [2, 3]]
    assert [peer.strategy.owned for peer in peers] == expected
    take_turns(peers, 100)
    found, n_items = together(peers, []), sum(peer.n_items for peer in peers)
    assert all(peer.finished for peer in peers)
    assert n_items <= found[:, 0].sum() < n_items + 4 * 7 * 2 * (lost is not None) + 1
