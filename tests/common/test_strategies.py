"""Strategies against their own equations, dense and slow; what is true of every one of them."""

import json
import sys
from copy import deepcopy

import numpy as np
import pytest
from members import SECOND
from reference.lda import TopicCorpus
from reference.strategies import ETA, K, assert_close, first_of, lda, steps_of, toy
from scipy.sparse import csr_array
from tools.end_at import EndAt

from dpsvi import (
    DPSGD,
    DPSVILDA,
    Cluster,
    DPSVIGaussianMixture,
    VirtualCluster,
    strategies,
)
from dpsvi.cluster.nodes.consensus import Consensus
from dpsvi.cluster.nodes.peer import Peer
from dpsvi.cluster.transports.messages import deliver
from dpsvi.cluster.turns import take_turns
from dpsvi.cluster.virtual import Network
from dpsvi.errors import LostRankError
from dpsvi.files import io
from dpsvi.training.checkpoint import CheckpointFolder, read_newest, restore
from dpsvi.training.ledger import Ledger
from dpsvi.training.schedules import constant, robbins_monro

FLOAT = np.dtype(np.float32)
STARS = [name for name in strategies.names() if strategies.get(name).topology == "star"]
PEERS = [name for name in strategies.names() if name not in STARS]
INSTANT = Network(0.0, np.inf)


@pytest.fixture(scope="module")
def corpus():
    return TopicCorpus(K, n_words=90, n_documents=200, n_tokens=40, alpha=0.1, seed=1).corpus()


# --- momentum ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_workers", [1, 3])
@pytest.mark.parametrize("mu, gamma, schedule", [
    (0.5, 1.0, robbins_monro(50.0, 0.7)), (0.9, 0.3, robbins_monro(50.0, 0.7)),
    (0.9, 1.0, constant(0.3)),  # gamma c reaches 3: gamma is reduced
])  # fmt: skip
def test_momentum_is_its_equations(corpus, n_workers, mu, gamma, schedule):
    job = lda(
        corpus, strategy="momentum", strategy_options={"momentum": mu}, global_rate=gamma,
        schedule=schedule,
    )  # fmt: skip
    v = first_of(job)
    steps, step = steps_of(job, corpus)
    seen, c, velocity = [v] * n_workers, 0.0, 0.0
    for t, (batch, rate) in enumerate(steps):
        w = seen[t % n_workers]
        statistics = step(w, batch, rate) - ETA - (1 - rate) * (w - ETA)
        c, velocity = mu * c + rate, mu * velocity + statistics
        v = v + min(gamma, 1 / c) * (velocity - c * (v - ETA))
        seen[t % n_workers] = v
    take_turns(job, n_workers)
    assert np.all(v >= ETA * 0.999)
    assert_close(job, v)


@pytest.mark.parametrize("n_workers", [1, 3])
@pytest.mark.parametrize("master_batch", [1, 2])
def test_no_momentum_is_the_decay_strategy_bit_for_bit(corpus, n_workers, master_batch):
    found = []
    for cluster in ({"strategy": "decay"},
                    {"strategy": "momentum", "strategy_options": {"momentum": 0}}):  # fmt: skip
        job = lda(corpus, **cluster, master_batch=master_batch)
        take_turns(job, n_workers)
        found.append(job.state.natural())
    assert np.array_equal(*found)


def test_without_decay_momentum_is_the_heavy_ball():
    """Every displacement is 1: V is 1, 1.5, 1.75, ..."""
    job = toy(4, True, 6, 0.1, strategy="momentum", strategy_options={"momentum": 0.5},
              global_rate=0.25)  # fmt: skip
    take_turns(job, 1)
    velocity, v = 0.0, 0.0
    for _ in range(6):
        velocity = 0.5 * velocity + 1
        v += 0.25 * velocity
    np.testing.assert_allclose(job.state.natural(), v, rtol=1e-6)


@pytest.mark.parametrize("mu", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("factor", [0.97, 1.03])
def test_the_heavy_ball_is_stable_below_its_bound_and_only_there(mu, factor):
    """On a quadratic of curvature 1: at rates below 2 (1 + mu), as Polyak (1964) has it."""
    cluster = VirtualCluster(
        n_workers=1, timing=SECOND, network=INSTANT, strategy="momentum",
        strategy_options={"momentum": mu},
    )  # fmt: skip
    optimizer = DPSGD(
        learning_rate=factor * 2 * (1 + mu), batch_size=1, max_iter=300, engine="simulated",
        local_steps=1, cluster=cluster,
    )  # fmt: skip
    found = optimizer.minimize(lambda x, items: x, np.ones(1), 1)
    assert (abs(found.x[0]) < 1e-3) if factor < 1 else (abs(found.x[0]) > 1e3)


# --- elastic averaging ---------------------------------------------------------------------------


@pytest.mark.parametrize("n_workers", [1, 3])
@pytest.mark.parametrize("alpha", [None, 0.1, 0.7])
def test_elastic_averaging_is_its_equations(corpus, n_workers, alpha):
    job = lda(corpus, strategy="elastic", strategy_options={"alpha": alpha})
    centre = first_of(job)
    steps, step = steps_of(job, corpus)
    replicas = [centre] * n_workers
    share = 0.9 / n_workers if alpha is None else alpha
    for t, (batch, rate) in enumerate(steps):
        x = step(replicas[t % n_workers], batch, rate)
        d = share * (x - centre)
        replicas[t % n_workers], centre = x - d, centre + d
    master = take_turns(job, n_workers)
    assert_close(job, centre)
    for worker, expected in enumerate(replicas, 1):
        rows = master.strategy.state()[f"rows_{worker}"][:, :K].T + ETA
        assert np.abs(rows - expected).sum() < 2e-4 * expected.sum()


def test_one_elastic_worker_follows_a_line():
    """Between a target at 1 and a centre: two linear recursions, of which both ends are known."""
    job = toy(3, False, 200, 0.2, strategy="elastic", strategy_options={"alpha": 0.25})
    x = centre = 0.0
    step = np.array([[0.75, 0.25], [0.25, 0.75]])  # d = (x - centre) / 4 goes from one to the other
    values, found = [], []
    job = job._replace(observer=lambda event: found.append(float(event.state.natural()[0, 0])))
    take_turns(job, 1)
    for _ in range(200):
        x, centre = step @ [0.8 * x + 0.2, centre]
        values.append(centre)
    np.testing.assert_allclose(found, values, rtol=1e-5)
    assert found[-1] == pytest.approx(1, abs=1e-6) and np.all(np.diff(values) > -1e-12)


# --- all -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", strategies.names())
def test_every_strategy_says_which_steps_are_convex(strategy):
    assert "convex" in sys.modules[strategies.get(strategy).__module__].__doc__


# --- all with a master ---------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", STARS)
def test_stale_updates_across_a_fold_of_the_scale(corpus, strategy):
    """The same fit, with the master's scale folded in before every update or hardly ever."""
    results = []
    for often in (False, True):
        job = lda(corpus, schedule=constant(0.05), strategy=strategy)

        def fold(master, turns, often=often):
            if often:
                master.parameters.renormalise()

        take_turns(job, 3, fold)
        results.append(job.state.natural())
    np.testing.assert_allclose(*results, rtol=1e-3, atol=1e-4)


# --- user's side: engines, checkpoints, refusals -------------------------------------------------


@pytest.fixture(scope="module")
def texts():
    drawn = TopicCorpus(5, n_words=150, n_documents=900, n_tokens=60, alpha=0.1, seed=3)
    X = csr_array(drawn.counts.astype(np.float64))
    return X[:800], X[800:]


def estimator(strategy, n_workers=3, max_iter=6, own=None, **options):
    # With some seeds the topics of replicas differ, most often those of `gap`, and means are poor.
    cluster = VirtualCluster(
        n_workers=n_workers, timing=SECOND, network=INSTANT, strategy=strategy,
        strategy_options=own or {},
    )  # fmt: skip
    return DPSVILDA(
        5, engine="simulated", cluster=cluster, batch_size=10, max_iter=max_iter, random_state=5,
        doc_topic_prior=None, **options,
    )  # fmt: skip


@pytest.fixture(scope="module")
def serial(texts):
    train, test = texts
    settings = dict(batch_size=10, max_iter=6, doc_topic_prior=None, random_state=5)
    return DPSVILDA(5, engine="serial", **settings).fit(train).perplexity(test)


@pytest.mark.parametrize("strategy", strategies.names())
@pytest.mark.parametrize("n_workers", [1, 4])
def test_every_strategy_learns_as_much_from_equal_data(texts, serial, strategy, n_workers):
    train, test = texts
    lda = estimator(strategy, n_workers).fit(train)
    start = estimator(strategy, n_workers, max_iter=1).fit(train)
    assert lda._state.items == 6 * 800
    assert lda.perplexity(test) < start.perplexity(test), "more passes are better"
    # SDA-Bayes never forgets what it found with topics that were hardly known.
    assert lda.perplexity(test) == pytest.approx(serial, rel=0.25 if strategy == "sda" else 0.05)


@pytest.mark.parametrize("strategy", strategies.names())
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_every_strategy_fits_a_model_of_one_dense_row(strategy, n_jobs):
    """A mixture: every point touches everything, and natural parameters hold covariances."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2, 3))[rng.integers(2, size=1500)] * 8 + rng.normal(size=(1500, 3))
    settings = {"batch_size": 30, "max_iter": 5, "random_state": 0}
    serial = DPSVIGaussianMixture(2, engine="serial", **settings).fit(X)
    cluster = VirtualCluster(n_workers=4, timing=SECOND, strategy=strategy)
    found = DPSVIGaussianMixture(
        2, engine="simulated", cluster=cluster, n_jobs=n_jobs, **settings
    ).fit(X)
    assert found.score(X) == pytest.approx(serial.score(X), abs=0.1)


@pytest.mark.parametrize("strategy", strategies.names())
def test_every_strategy_is_deterministic_in_virtual_time(texts, strategy):
    a, b = (estimator(strategy, 4, max_iter=2).fit(texts[0]) for _ in range(2))
    assert np.array_equal(a.components_, b.components_)
    assert a.exchanges_["seconds"] == b.exchanges_["seconds"]


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("strategy", strategies.names())
def test_a_resumed_fit_is_that_of_one_go(texts, tmp_path, strategy, old):
    """Velocity and replicas are in the checkpoint; one that has none, of an old version, loads.

    A lone peer has nobody to remember; its checkpoint has the scale in its rows.
    """
    settings = {"learning_rate": 0.05, "local_steps": 2, "checkpoint_dir": tmp_path}
    whole = estimator(strategy, 1, 4, learning_rate=0.05, local_steps=2).fit(texts[0])
    half = estimator(strategy, 1, 4, callbacks=[EndAt(160)], **settings)
    with pytest.raises(KeyboardInterrupt):
        half.fit(texts[0])
    path = tmp_path / "checkpoints" / (tmp_path / "checkpoints/latest").read_text().strip()
    meta = json.loads((path / "model.json").read_text())
    assert meta["step"] == 160 and meta["strategy"]["name"] == strategy
    if old:
        del meta["strategy"]
        (path / "model.json").write_text(io.meta_text(meta))
    resumed = estimator(strategy, 1, 4, **settings).resume(texts[0])
    assert resumed._state.step == whole._state.step == 320
    if strategy not in STARS:
        np.testing.assert_allclose(resumed.components_, whole.components_, rtol=1e-4)
        return
    # After a pass SDA-Bayes has nothing to keep.
    stateless = strategies.get(strategy).as_sent or strategy == "sda"
    same = np.array_equal(resumed.components_, whole.components_)
    assert same == (stateless or not old), "only what is kept goes on as it was"


@pytest.mark.parametrize("strategy", PEERS)
def test_a_consensus_changes_nothing_of_its_first_node(corpus, strategy):
    """Of steps after which nobody could be sent to the decay is in a scale still."""
    job = lda(corpus, 6, strategy=strategy)
    peer = Peer(job._replace(passes=Ledger(200, 10, 6, 5, 4)), 0, 3)
    for ready in (True, False):
        peer.turn(lambda node, ready=ready: ready)
    assert peer.state.scale != 1
    kinds = np.ndarray, list, tuple
    before = {k: deepcopy(v) for k, v in vars(peer.strategy).items() if isinstance(v, kinds)}
    Consensus(peer, 0.0)
    for name, value in before.items():
        np.testing.assert_equal(vars(peer.strategy)[name], value, name)


@pytest.mark.parametrize("strategy", PEERS)
def test_resumed_peers_go_on_as_those_that_did_not_end(corpus, tmp_path, strategy):
    """Bit for bit: whom they send to, and momentum, are in the checkpoint of all."""

    def turns(peers, n):
        for _ in range(n):
            for peer in peers:
                for to, message in [] if peer.finished else peer.turn():
                    peers[to].take(peer.node, deliver(message, peer.pool, peers[to].pool))

    def together(peers):
        consensus = Consensus(peers[0], 0.0)
        for peer in peers[1:]:
            consensus.add(peer.whole())
        return consensus.snapshot()

    def nodes(job):
        return [Peer(job, node, 4) for node in range(4)]

    job = lda(corpus, 6, strategy=strategy)
    job = job._replace(passes=Ledger(200, 10, 6, 5, 4))
    others = lda(corpus, 6, strategy=strategy)
    peers = nodes(job)
    turns(peers, 11)
    first = job.state.natural()
    folder = CheckpointFolder(tmp_path, 0.0)
    folder.write(together(peers))
    for peer in peers:
        peer.restart(job.state)
    turns(peers, 30)
    together(peers)
    found = []
    for forgets in (False, True):
        restored = restore(read_newest(tmp_path), others.state, 6, 10, 200)
        name, content = restored.strategy_state
        assert name == strategy and content["n_nodes"] == 4
        before = (name, {} if forgets else content)
        resumed = nodes(others._replace(passes=restored.passes, strategy_state=before))
        turns(resumed, 30)
        together(resumed)
        found.append(others.state.natural())
    assert all(peer.finished for peer in [*peers, *resumed])
    assert np.abs(job.state.natural() - first).sum() > 0.1 * first.sum()
    assert np.array_equal(found[0], job.state.natural())
    # The node after the last one on a ring is the first one again.
    stateless = strategy == "gala" or not peers[0].strategy.state()
    assert np.array_equal(*found) == stateless


@pytest.mark.parametrize("strategy, options", [
    ("fedavg", {"fraction": 1.0, "epochs": 4}), ("pvi", {"damping": 0.5}),
    ("elastic", {"momentum": 0.5}),
])  # fmt: skip
def test_a_resumed_fit_with_options_is_that_of_one_go(texts, tmp_path, strategy, options):
    """Also in the midst of a round of several local passes."""
    settings = {"learning_rate": 0.05, "local_steps": 32, "own": options}
    whole = estimator(strategy, 1, 4, **settings).fit(texts[0])
    settings["checkpoint_dir"] = tmp_path
    half = estimator(strategy, 1, 4, callbacks=[EndAt(160)], **settings)
    with pytest.raises(KeyboardInterrupt):
        half.fit(texts[0])
    resumed = estimator(strategy, 1, 4, **settings).resume(texts[0])
    assert resumed._state.step == whole._state.step == 320
    assert np.array_equal(resumed.components_, whole.components_)


def test_the_state_of_another_strategy_is_said_to_be_lost(texts, tmp_path, caplog):
    half = estimator("momentum", 1, 4, callbacks=[EndAt(160)], checkpoint_dir=tmp_path)
    with pytest.raises(KeyboardInterrupt):
        half.fit(texts[0])
    estimator("decay", 2, 4, checkpoint_dir=tmp_path).resume(texts[0])
    assert "state of strategy 'momentum' is of no use for 'decay'" in caplog.text


@pytest.mark.parametrize("then", ["push_sum", "decay"])
def test_a_fit_of_peers_that_is_interrupted_goes_on(texts, serial, tmp_path, then):
    """From what all nodes had together, with as many others or with a master; no step is lost."""
    train, test = texts
    half = estimator("push_sum", 4, callbacks=[EndAt(240)], checkpoint_dir=tmp_path)
    with pytest.raises(KeyboardInterrupt):
        half.fit(train)
    path = tmp_path / "checkpoints" / (tmp_path / "checkpoints/latest").read_text().strip()
    meta = json.loads((path / "model.json").read_text())
    assert 200 < meta["step"] == meta["passes"]["n_done"] < 320
    resumed = estimator(then, 3, checkpoint_dir=tmp_path).resume(train)
    assert resumed._state.step == 480 and resumed._state.items == 6 * 800
    assert resumed.history_[-1]["epoch"] == 6
    assert resumed.perplexity(test) == pytest.approx(serial, rel=0.05)


def test_checkpoints_while_peers_are_at_work_change_nothing(texts, tmp_path):
    plain = estimator("push_sum", 3, 2).fit(texts[0])
    kept = estimator("push_sum", 3, 2, checkpoint_dir=tmp_path, checkpoint_seconds=0).fit(texts[0])
    assert len(list((tmp_path / "checkpoints").glob("step-*"))) == 3
    np.testing.assert_allclose(kept.components_, plain.components_, rtol=1e-3)


def test_a_slow_peer_holds_nobody_up(texts, serial):
    """It makes its own part, ten times later; the others have ended and keep what they learned."""
    train, test = texts
    cluster = VirtualCluster(
        n_workers=4, timing=SECOND, network=INSTANT, strategy="push_sum", stragglers=(0.25, 10.0)
    )  # fmt: skip
    lda = DPSVILDA(
        5, engine="simulated", cluster=cluster, batch_size=10, max_iter=6, random_state=0
    ).fit(train)
    assert lda._state.items == 6 * 800
    assert lda.exchanges_["seconds"] == pytest.approx(10 * 6 * 80 / 4, rel=0.02)
    assert lda.perplexity(test) == pytest.approx(serial, rel=0.1)


@pytest.mark.parametrize("strategy", strategies.names())
@pytest.mark.parametrize("how", ["killed", "frozen"])
def test_every_strategy_goes_on_without_a_node_that_fails(texts, serial, strategy, how):
    """At once, or when it has been silent for long; others make its steps where there is a master.

    Without one a node's part is lost with it.
    """
    train, test = texts
    cluster = VirtualCluster(
        n_workers=4, timing=SECOND, network=INSTANT, strategy=strategy, silent_seconds=30.0,
        **{how: {2: 40.5}},
    )  # fmt: skip
    settings = {"batch_size": 10, "max_iter": 6, "random_state": 0}
    lda = DPSVILDA(5, engine="simulated", cluster=cluster, **settings).fit(train)
    found = lda.exchanges_
    assert found["lost"] == {2: "killed" if how == "killed" else "silent"}
    assert all(e.worker != 2 for e in found["exchanges"][-4:])
    items, star = 6 * 800, strategy in STARS
    assert lda._state.items == (items if star else items * 3 // 4)
    # Of 480 steps four nodes have made 160 by then.
    assert found["seconds"] >= (40 + 320 / 3 if star else 120)
    assert lda.perplexity(test) == pytest.approx(serial, rel=0.25)
    again = DPSVILDA(5, engine="simulated", cluster=cluster, **settings).fit(train)
    assert np.array_equal(again.components_, lda.components_)


@pytest.mark.parametrize("strategy", ["decay", "local_sgd", "push_sum"])
def test_a_failure_after_the_end_changes_nothing(texts, strategy):
    plain = estimator(strategy, 3, 1).fit(texts[0])
    cluster = VirtualCluster(
        n_workers=3, timing=SECOND, network=INSTANT, strategy=strategy, killed={1: 1e6}
    )
    late = estimator(strategy, 3, 1).set_params(cluster=cluster).fit(texts[0])
    assert np.array_equal(late.components_, plain.components_)
    assert late.exchanges_["seconds"] == plain.exchanges_["seconds"]
    assert late.exchanges_["lost"] == {}


@pytest.mark.parametrize("strategy, lost", [
    ("decay", {1: 1.0, 2: 1.0, 3: 2.0}), ("push_sum", {1: 1.0}), ("local_sgd", {3: 1.0}),
])  # fmt: skip
def test_a_fit_that_cannot_go_on_says_so(texts, strategy, lost):
    on_lost = "drop" if len(lost) == 3 else "abort"
    cluster = VirtualCluster(
        n_workers=3, timing=SECOND, network=INSTANT, strategy=strategy, killed=lost,
        on_lost=on_lost,
    )  # fmt: skip
    what = "no worker is left" if on_lost == "drop" else f"rank {max(lost)} is lost: killed"
    with pytest.raises(LostRankError, match=what):
        estimator(strategy, 3).set_params(cluster=cluster).fit(texts[0])


@pytest.mark.parametrize("cluster, what", [
    ({"strategy": "momentum", "strategy_options": {"mu": 0.9}},
     r"may name \['momentum'\], got 'mu'"),
    ({"strategy": "momentum", "strategy_options": {"rate": 0.9}}, r"got 'rate'"),
    ({"strategy": "momentum", "strategy_options": {"momentum": 1.0}}, "momentum must be .* < 1"),
    ({"strategy": "momentum", "global_rate": 2.0}, "global_rate of the momentum strategy"),
    ({"strategy": "elastic", "strategy_options": {"alpha": 0}}, "alpha must be"),
    ({"strategy": "elastic", "strategy_options": {"alpha": 1.0}}, "alpha must be .* < 1"),
    ({"strategy": "elastic", "prefetch": True}, "'elastic' has no prefetch=True: a replica"),
    ({"strategy": "elastic", "master_batch": 2}, "'elastic' has no master_batch=2"),
    ({"strategy": "elastic", "strategy_options": {"synchronous": True}, "waiting": 0.1},
     "'elastic' has no waiting=0.1: all wait"),
    ({"strategy": "elastic", "global_rate": 0.5}, "alpha says how far"),
    ({"strategy": "downpour", "master_batch": 2}, "is added as it comes"),
    ({"strategy": "downpour", "global_rate": 0.5}, "displacements are added whole"),
    ({"strategy": "pvi", "strategy_options": {"damping": 0}}, "damping must be"),
    ({"strategy": "pvi", "strategy_options": {"synchronous": True}, "prefetch": True},
     "'pvi' has no prefetch=True: a round is read"),
    ({"strategy": "fedavg", "strategy_options": {"epochs": 0}}, "epochs must be"),
    ({"strategy": "push_sum", "master_batch": 2}, "'push_sum' has no master_batch=2: there is no"),
    ({"strategy": "push_sum", "waiting": 0.1}, "nobody waits"),
    ({"strategy": "push_sum", "statistics": "bfloat16"}, "rounding errors would be lost"),
    ({"strategy": "push_sum", "strategy_options": {"alpha": 0.1}},
     r"may name \['graph', 'tau'\], got 'alpha'"),
    ({"strategy": "push_sum", "strategy_options": {"graph": "star"}}, "graph must be one of"),
    ({"strategy": "gala", "strategy_options": {"graph": [[1], [2]]}}, "node 1 must send to others"),
    ({"strategy": "gala", "strategy_options": {"graph": [[1], [0], [0]]}}, "not every node can"),
    ({"strategy": "gala", "global_rate": 0.5}, "there is no master"),
    ({"strategy": "gossip", "strategy_options": {"probability": 0}}, "probability must be"),
    ({"strategy": "a2cid2", "strategy_options": {"graph": "complete"}}, "has no complete graph"),
    ({"strategy": "local_sgd", "master_batch": 2}, "all workers of a round"),
    ({"strategy": "local_sgd", "prefetch": True}, "when the last one has been merged"),
    ({"strategy": "diloco", "strategy_options": {"momentum": 1.0}}, "momentum must be .* < 1"),
    ({"strategy": "elastic", "strategy_options": {"momentum": 1}}, "momentum must be .* < 1"),
    ({"strategy": "fedavg", "strategy_options": {"fraction": 0}}, "fraction must be"),
    ({"strategy": "hierarchical", "strategy_options": {"groups": 0}}, "groups must be"),
    ({"strategy": "hierarchical", "statistics": "bfloat16"}, "kept for a group"),
    ({"strategy": "local_sgd", "strategy_options": {"post_local": 2}}, "post_local must be"),
    ({"strategy": "push_sum", "strategy_options": {"tau": -1}}, "tau must be an integer >= 0"),
    ({"strategy": "gala", "strategy_options": {"tau": -1}}, "tau must be"),
    ({"strategy": "sda", "global_rate": 0.5}, "all items count alike"),
    ({"strategy": "diloco", "strategy_options": {"outer_rate": 2}}, "outer_rate must be"),
    ({"strategy": "ownership", "strategy_options": {"graph": "ring"}}, r"may name \[\]"),
    ({"strategy": "ownership", "master_batch": 2}, "there is no master"),
    ({"strategy": "decay", "strategy_options": {"alpha": 0.1}}, r"may name \[\], got 'alpha'"),
])  # fmt: skip
def test_options_that_are_refused(cluster, what):
    with pytest.raises(ValueError, match=what):
        Cluster(**cluster)


def test_options_that_are_no_dict():
    with pytest.raises(TypeError, match="strategy_options must be a dict, got 0.9"):
        Cluster(strategy="momentum", strategy_options=0.9)
