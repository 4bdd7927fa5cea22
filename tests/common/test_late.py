"""Nodes that come after others have begun, in memory and in virtual time, with every strategy."""

from collections import Counter

import numpy as np
import pytest
from members import SECOND
from reference.lda import TopicCorpus, count_visits
from scipy.sparse import csr_array
from tools.end_at import EndAt
from tools.lda_cases import mass
from tools.node_jobs import FLOAT, job, lda, toy

from dpsvi import DPSVILDA, VirtualCluster, strategies
from dpsvi.base import Model
from dpsvi.cluster.nodes.master import Master
from dpsvi.cluster.nodes.worker import Worker
from dpsvi.cluster.transports.memory import Memory
from dpsvi.cluster.turns import exchange, peers_take_turns, replay, take_turns
from dpsvi.cluster.virtual import Network
from dpsvi.kernels.jit import as_items
from dpsvi.training.ledger import Ledger
from dpsvi.training.state import State

INSTANT = Network(0.0, np.inf)
N, PASSES = 800, 4  # documents, of which a step has 10
STARS = [name for name in strategies.names() if strategies.get(name).topology == "star"]
PEERS = [name for name in strategies.names() if name not in STARS]
every_strategy = pytest.mark.parametrize("strategy", strategies.names())
GIVEN = {"doc_topic_prior": None, "topic_word_prior": None}  # what is learned may differ
# SDA-Bayes never forgets what it found with topics that were hardly known.
near = {"sda": 0.25}.get


@pytest.fixture(scope="module")
def texts():
    drawn = TopicCorpus(5, n_words=150, n_documents=900, n_tokens=60, alpha=0.1, seed=3)
    X = csr_array(drawn.counts.astype(np.float64))
    return X[:N], X[N:]


@pytest.fixture(scope="module")
def serial(texts):
    train, test = texts
    settings = dict(batch_size=10, max_iter=PASSES, random_state=0, **GIVEN)
    return DPSVILDA(5, engine="serial", **settings).fit(train).perplexity(test)


def estimator(strategy, late, callbacks=None, checkpoint_dir=None, **cluster):
    """Four nodes; a step takes a second."""
    cluster = VirtualCluster(
        n_workers=4, timing=SECOND, network=INSTANT, strategy=strategy, late=late, **cluster
    )
    return DPSVILDA(
        5, engine="simulated", cluster=cluster, batch_size=10, max_iter=PASSES, random_state=0,
        local_steps=1, callbacks=callbacks, checkpoint_dir=checkpoint_dir, **GIVEN,
    )  # fmt: skip


def steps(model):
    """How many each node made."""
    found = Counter()
    for turn in model.exchanges_["exchanges"]:
        found[turn.worker] += turn.n_steps
    return found


# --- in virtual time -----------------------------------------------------------------------------


@every_strategy
def test_a_late_node_joins(texts, serial, strategy):
    """It makes steps, none is lost, and the fit learns as much."""
    train, test = texts
    found = estimator(strategy, {2: 40.5}, grace_seconds=1.0).fit(train)
    joined, made = found.exchanges_["joined"], steps(found)
    assert joined.keys() == {2} and 38 < joined[2] < 46
    assert found._state.items == PASSES * N and sum(made.values()) == PASSES * N // 10
    # Clients of a round are drawn.
    assert made[2] > 0 and (strategy == "fedavg" or min(made, key=made.get) == 2)
    assert found.perplexity(test) == pytest.approx(serial, rel=near(strategy, 0.05))
    again = estimator(strategy, {2: 40.5}, grace_seconds=1.0).fit(train)
    assert np.array_equal(again.components_, found.components_)


@every_strategy
def test_without_a_time_of_grace_all_wait(texts, strategy):
    found = estimator(strategy, {2: 40.5}).fit(texts[0])
    plain = estimator(strategy, {}).fit(texts[0])
    assert found.exchanges_["joined"] == {} == plain.exchanges_["joined"]
    assert found.exchanges_["seconds"] == plain.exchanges_["seconds"]
    if strategy in PEERS:  # a master answers in the order in which workers have come
        assert np.array_equal(found.components_, plain.components_)


@every_strategy
def test_a_node_that_comes_after_the_end_changes_nothing_of_it(texts, serial, strategy):
    """The steps of all are made by those that were there."""
    train, test = texts
    found = estimator(strategy, {2: 1e6}, grace_seconds=1.0).fit(train)
    assert found.exchanges_["joined"] == {} and found.exchanges_["seconds"] < 1e3
    assert 2 not in steps(found) and found._state.items == PASSES * N
    assert found.perplexity(test) == pytest.approx(serial, rel=near(strategy, 0.05))


@every_strategy
@pytest.mark.parametrize("how, node", [("killed", 1), ("frozen", 1), ("killed", 2)])
def test_a_node_fails_before_one_joins(texts, strategy, how, node):
    """Of the steps that it had, a master gives all to others; without one they are lost."""
    found = estimator(
        strategy, {2: 40.5}, grace_seconds=1.0, silent_seconds=30.0, **{how: {node: 35.0}}
    ).fit(texts[0])  # fmt: skip
    assert found.exchanges_["lost"].keys() == {node}
    assert found.exchanges_["joined"].keys() == {2} - {node}
    assert np.isfinite(found.components_).all()
    assert strategy in PEERS or found._state.items == PASSES * N


@every_strategy
@pytest.mark.parametrize("step, joined", [(80, False), (240, True)])
def test_checkpoints_before_and_after(texts, serial, tmp_path, strategy, step, joined):
    """They hold all that was done; the fit goes on, with all nodes there or with one late again."""
    train, test = texts
    half = estimator(strategy, {2: 40.5}, [EndAt(step)], tmp_path, grace_seconds=1.0)
    with pytest.raises(KeyboardInterrupt):
        half.fit(train)
    for late in ({}, {1: 10.5}):
        whole = estimator(strategy, late, None, tmp_path, grace_seconds=1.0).resume(train)
        assert whole._state.items == PASSES * N and whole._state.step == PASSES * N // 10
        assert whole.exchanges_["joined"].keys() == late.keys()
        assert whole.perplexity(test) == pytest.approx(serial, rel=near(strategy, 0.1))


def test_kept_responsibilities_of_a_fit_that_a_worker_joined(texts):
    """Every token counts once: what is remembered stays with those who visit it, all of them."""
    settings = dict(batch_size=10, max_iter=10, random_state=0, keep_responsibilities=True)
    cluster = VirtualCluster(n_workers=3, timing=SECOND, late={2: 40.5}, grace_seconds=1.0)
    joined = DPSVILDA(5, engine="simulated", cluster=cluster, **settings).fit(texts[0])
    serial = DPSVILDA(5, engine="serial", **settings).fit(texts[0])
    assert mass(joined) == pytest.approx(mass(serial), rel=1e-5)


# --- in memory -----------------------------------------------------------------------------------


@pytest.mark.parametrize("n_shards", [1, 3])
@pytest.mark.parametrize("prefetch", [False, True])
@pytest.mark.parametrize("late", [{3: 5}, {1: 9, 2: 4}, {2: 0, 3: 10**9}])
def test_no_item_is_lost_or_doubled(n_shards, prefetch, late):
    state, items = toy(203)
    work = job(state, items, n_passes=3, n_shards=n_shards, prefetch=prefetch, batch_size=5)
    master = take_turns(work, 3, late=late)
    assert np.all(state.natural() == 3)
    assert state.items == 3 * 203 and work.passes.finished
    assert master.joined.keys() == {rank for rank, turn in late.items() if turn < 10**9}


@pytest.mark.parametrize("strategy", STARS)
def test_a_fit_that_a_worker_joined_is_replayed_with_the_same_bits(strategy):
    corpus = TopicCorpus(4, n_words=60, n_documents=120, n_tokens=30, alpha=0.1, seed=1).corpus()
    found = []
    for order in (None, []):
        state, items = lda(corpus, "mean_field")
        work = job(state, items, strategy=strategy, grace_seconds=0.0)
        if order is None:
            recorded = take_turns(work, 3, late={2: 7}).order
        else:
            replay(work, 3, recorded)
        found.append(state.natural())
    assert np.array_equal(*found)


def test_workers_whose_memory_is_summed_are_waited_for():
    """Nobody else may visit their items, so a fit would end no sooner without them."""
    n = 30
    model = Model(
        name="toy", shape=(n, 3), prior=np.zeros(3, FLOAT), hyper=np.zeros(1), item_memory=1,
        init=lambda rng: np.zeros((n, 3), FLOAT), local=count_visits, scratch=lambda longest: 0,
        learner="incremental",
    )  # fmt: skip
    items = as_items(np.arange(n + 1), np.arange(n), np.ones(n), FLOAT)
    work = job(State.start(model, None, 1, n), items, n_passes=1, n_shards=2)
    assert work.state.sums_memory
    master = Master(work, 2)
    workers = {rank: Worker(work) for rank in (1, 2)}
    memory = Memory({0: master, **workers})
    for rank in workers:
        exchange(workers[rank], memory.at(rank))
        exchange(master, memory.at(0))
        master.wait_no_longer()
        exchange(master, memory.at(0))
        assert bool(memory.unread(1)) == (rank == 2)


def test_a_late_replica_starts_where_the_centre_is():
    """Of elastic averaging: at the start, which all others have left, it would draw them back."""
    corpus = TopicCorpus(4, n_words=60, n_documents=120, n_tokens=30, alpha=0.1, seed=1).corpus()
    state, items = lda(corpus, "mean_field")
    first, centres, replicas = state.natural(), [], []

    def look(master, turns):
        centres.append(state.learned())
        replica = master.strategy.state().get("rows_2")
        if replica is not None and not replicas:
            replicas.append(replica * master.strategy.state()["scale_2"])

    take_turns(job(state, items, strategy="elastic"), 3, look, late={2: 8})
    found = replicas[0]
    assert min(np.abs(found - centre).max() for centre in centres) < 1e-3 * np.abs(found).max()
    assert np.abs(found - (first - state.model.prior)).max() > 0.1 * np.abs(found).max()


@pytest.mark.parametrize("strategy", PEERS)
def test_steps_of_peers_are_shared_out_anew(strategy):
    state, items = toy(200)
    peers = peers_take_turns(
        job(state, items, n_passes=3, batch_size=5, strategy=strategy), 4, late={2: 15, 3: 40}
    )
    assert state.step == 120 and state.items == 600
    assert [peer.node for peer in peers] == [0, 1, 2, 3]
    assert all(peer.n_done > 0 for peer in peers)


@pytest.mark.parametrize("strategy", ["push_sum", "gossip", "push_rows"])
def test_weights_are_as_many_as_nodes_that_are_there(strategy):
    """Those of each row apart, with `push_rows`; messages on their way included."""
    corpus = TopicCorpus(4, n_words=60, n_documents=120, n_tokens=30, alpha=0.1, seed=1).corpus()
    state, items = lda(corpus, "mean_field")
    seen = {}

    def look(peers, messages):
        if strategy == "push_rows":
            weights = sum(peer.strategy._weights for peer in peers)
            for message in messages:
                weights[message.arrays["sent"]] += message.arrays["weights"]
        else:
            weights = sum(peer.strategy.weight for peer in peers)
            weights += sum(message.header["numbers"]["weight"] for message in messages)
        np.testing.assert_allclose(weights, len(peers), rtol=1e-6)
        seen.setdefault(len(peers), []).append(len(messages))

    work = job(state, items, n_passes=3, strategy=strategy)
    peers_take_turns(work, 4, delay=3, on_turn=look, late={1: 9, 3: 20})
    assert seen.keys() == {2, 3, 4} and all(any(found) for found in seen.values())


def test_late_workers_get_shards_that_nobody_has():
    """Whoever comes first: ranks 1 and 3 want the same of two shards."""
    for first, second in ((1, 3), (3, 1)):
        passes = Ledger(40, 10, 1, seed=1, n_shards=2)
        assert passes.grant(first, 1, {first}).shard == 1
        assert passes.grant(second, 1, {first, second}).shard == 0
        assert passes.grant(first, 1, {first, second}).shard == 1
