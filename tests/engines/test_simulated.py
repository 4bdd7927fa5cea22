"""``engine="simulated"``: the same algorithm, and a clock that can be checked by hand."""

import dataclasses
import gc

import numpy as np
import pytest
from members import SECOND

from dpsvi import DPSVILDA, Cluster, DPSVIGaussianMixture, VirtualCluster
from dpsvi.__main__ import main
from dpsvi.cluster.nodes.peer import Peer
from dpsvi.cluster.nodes.worker import Worker
from dpsvi.cluster.virtual import GIGABIT, Network, Timing

INSTANT = Network(0.0, np.inf)
N_DOCUMENTS, BATCH = 640, 10


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(120, 0.05), 4)
    return rng.poisson(40 * rng.dirichlet(np.full(4, 0.2), N_DOCUMENTS) @ topics)


def fit(X, n_jobs=1, local_steps=4, max_iter=2, settings=None, **cluster):
    cluster = VirtualCluster(**{"timing": SECOND, "network": INSTANT, **cluster})
    options = {"learning_rate": 0.05, "lr_rule": "constant", **(settings or {})}
    return DPSVILDA(
        4, engine="simulated", cluster=cluster, n_jobs=n_jobs, local_steps=local_steps,
        batch_size=BATCH, max_iter=max_iter, random_state=0, **options,
    ).fit(X)  # fmt: skip


N_STEPS = 2 * N_DOCUMENTS // BATCH


@pytest.mark.parametrize("n, p", [(1, 1), (4, 1), (1, 4), (2, 2), (8, 4)])
def test_steps_are_shared_out(X, n, p):
    """Without costs of messages n p threads are n p times as fast, but for the last ones."""
    lda = fit(X, n_jobs=p, local_steps=2, n_workers=n)
    seconds = lda.exchanges_["seconds"]
    assert lda._state.items == 2 * N_DOCUMENTS and lda._state.step == N_STEPS
    assert N_STEPS / (n * p) <= seconds <= N_STEPS / (n * p) + 2 * 2
    assert lda.history_[-1]["seconds"] == seconds


def test_one_worker_is_serial(X):
    options = {"max_iter": 2, "learning_rate": 0.05, "lr_rule": "constant", "batch_size": BATCH}
    serial = DPSVILDA(4, engine="serial", n_jobs=1, random_state=0, **options).fit(X)
    found = fit(X)
    np.testing.assert_allclose(found.components_, serial.components_, rtol=1e-3)


def test_the_same_seed_gives_the_same_result(X):
    """Times are drawn; another seed draws others, and then updates come in another order."""
    spread = dataclasses.replace(SECOND, spread=(0.5, 1.0, 1.5), lost=0.01)
    a, b = (fit(X, 2, n_workers=3, timing=spread, network=GIGABIT, seed=1) for _ in range(2))
    other = fit(X, 2, n_workers=3, timing=spread, network=GIGABIT, seed=2)
    assert np.array_equal(a.components_, b.components_)
    assert a.exchanges_["exchanges"] == b.exchanges_["exchanges"]
    assert a.exchanges_["seconds"] != other.exchanges_["seconds"]
    assert not np.array_equal(a.components_, other.components_)


@pytest.mark.parametrize("strategy", ["decay", "gossip"])
def test_the_nodes_are_freed_when_the_fit_has_ended(X, strategy):
    gc.collect()
    gc.disable()  # 64 replicas are few objects, and much memory
    try:
        model = fit(X, n_workers=4, strategy=strategy)
        left = [t for t in map(type, gc.get_objects()) if issubclass(t, Worker | Peer)]
    finally:
        gc.enable()
    assert model.components_.shape and left == []


@pytest.mark.parametrize("n", [2, 5])
def test_equal_workers_are_n_minus_1_updates_behind(X, n):
    staleness = fit(X, n_workers=n, local_steps=2).exchanges_["staleness"]
    assert max(staleness, key=staleness.get) == n - 1


def test_the_link_of_the_master_is_a_bottleneck_when_it_is_shared(X):
    slow = {"n_workers": 8, "local_steps": 2, "timing": dataclasses.replace(SECOND, step=1e-6)}
    shared = fit(X, network=Network(0.0, 1e6), **slow).exchanges_
    wide = fit(X, network=Network(0.0, 1e6, shared=False), **slow).exchanges_
    # Both directions are used at once.
    assert shared["bytes"] / 2e6 <= shared["seconds"] <= shared["bytes"] / 1e6
    assert wide["seconds"] < shared["seconds"] / 3


def test_the_master_is_a_bottleneck(X):
    costly = Timing(step=0.01, value=0.0, message=1.0)
    found = fit(X, n_workers=8, local_steps=1, timing=costly).exchanges_
    assert found["seconds"] == pytest.approx(len(found["exchanges"]), rel=0.2)
    assert found["busy"] / found["seconds"] > 0.9


@pytest.mark.parametrize(
    "options",
    [
        {"prefetch": True}, {"statistics": "bfloat16"}, {"master_batch": 2, "global_rate": 0.5},
        {"sharding": "shard"}, {"strategy": "displacement"},
    ],
    ids=str,
)  # fmt: skip
def test_options(X, options):
    """Every document is visited, nobody works faster than its clock, the fit is as good."""
    plain = fit(X, n_workers=3, max_iter=4)
    lda = fit(X, n_workers=3, max_iter=4, **options)
    assert lda._state.items == 4 * N_DOCUMENTS
    assert lda.exchanges_["seconds"] >= 2 * N_STEPS / 3
    assert all(e.waited >= 0 for e in lda.exchanges_["exchanges"])
    assert lda.perplexity(X) == pytest.approx(plain.perplexity(X), rel=0.1)


def test_prefetch_hides_the_network(X):
    """Rows are there when they are needed, so nobody waits; but parameters are older."""
    network = Network(latency=1.0, bandwidth=np.inf)
    plain, ahead = (
        fit(X, n_workers=2, network=network, prefetch=prefetch).exchanges_
        for prefetch in (False, True)
    )
    # Without it 2 seconds of 6 are spent on the way.
    assert plain["seconds"] == pytest.approx(N_STEPS / 2 * 6 / 4, rel=0.1)
    assert ahead["seconds"] == pytest.approx(N_STEPS / 2, rel=0.1)
    assert max(ahead["staleness"]) > max(plain["staleness"])


def test_work_on_messages_is_no_waiting(X):
    costly = dataclasses.replace(SECOND, touch=5e-4)
    found = fit(X, n_workers=1, timing=costly).exchanges_
    assert all(e.waited == pytest.approx(0, abs=1e-9) for e in found["exchanges"])
    assert found["seconds"] > 1.2 * N_STEPS


def test_what_messages_cost_is_small_beside_the_steps(X):
    """Sixteen steps of 10 documents touch 120 rows of 16 numbers: microseconds.

    The quietest of three fits, since other work may take the core while one measures.
    """
    measured = [fit(X, timing=None).exchanges_["timing"] for _ in range(3)]
    timing = min(measured, key=lambda timing: timing.touch)
    n_bytes = 2 * 120 * 16 * 4
    assert timing.message < 2e-3 and timing.turn < 2e-3
    assert n_bytes * (timing.touch + timing.read) < 16 * (timing.step + timing.value * 300)


def test_a_slow_worker_does_not_set_the_pace(X):
    uneven = fit(X, n_workers=4, local_steps=1, stragglers=(0.25, 10.0)).exchanges_
    assert N_STEPS / 3.1 <= uneven["seconds"] <= N_STEPS / 3.1 + 10 + 1  # it may be the last
    share = sum(e.n_items for e in uneven["exchanges"] if e.seconds > 5) / (2 * N_DOCUMENTS)
    assert share == pytest.approx(0.1 / 3.1, rel=0.5)


def test_b_follows_the_network(X):
    """The faster the network, the smaller B; workers wait as long as was wanted."""
    found = {}
    for bandwidth in (1e4, 1e6):
        lda = fit(
            X, n_workers=2, local_steps=None, max_iter=40, waiting=0.2,
            network=Network(0.1, bandwidth, shared=False),
        )  # fmt: skip
        later = lda.exchanges_["exchanges"][len(lda.exchanges_["exchanges"]) // 2 :]
        waited, computed = sum(e.waited for e in later), sum(e.seconds for e in later)
        assert waited / (waited + computed) == pytest.approx(0.2, rel=0.4)
        found[bandwidth] = len(lda.exchanges_["exchanges"])
    assert found[1e6] > 2 * found[1e4]


def test_threads_share_a_socket():
    timing = Timing(step=1.0, value=0.0, contention=0.1, apart=0.05)
    cluster = VirtualCluster(n_workers=2)
    assert cluster.slowdown(1, timing) == 1
    assert cluster.slowdown(3, timing) == pytest.approx(1.2)
    six = dataclasses.replace(cluster, cores=6, smt_gain=0.25)
    # Twelve threads on six cores: 1.25 times the throughput of six.
    assert six.slowdown(12, timing) == pytest.approx(1.5 * 2 / 1.25)
    both = dataclasses.replace(cluster, workers_a_node=2)
    assert both.slowdown(3, timing) == pytest.approx(1.2 + 3 * 0.05), "two more, three apart"


def test_overwritten_additions_are_lost_from_the_rows_alone(X):
    half = dataclasses.replace(SECOND, lost=0.5)
    kept, lost = (
        fit(X, 2, n_workers=1, timing=timing, settings={"topic_word_prior": 0.1}).components_.sum()
        for timing in (SECOND, half)
    )
    # Half of what is added later is lost; what was there at first decays.
    assert 0.4 * kept < lost < 0.75 * kept


def test_a_mixture_on_a_virtual_cluster():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2, 3))[rng.integers(2, size=1500)] * 8 + rng.normal(size=(1500, 3))
    settings = {"batch_size": 30, "max_iter": 5, "random_state": 0}
    serial = DPSVIGaussianMixture(2, engine="serial", n_jobs=1, **settings).fit(X)
    cluster = VirtualCluster(n_workers=4, timing=SECOND)
    found = DPSVIGaussianMixture(2, engine="simulated", cluster=cluster, n_jobs=2, **settings)
    assert found.fit(X).score(X) == pytest.approx(serial.score(X), abs=0.1)


def test_times_are_measured_where_none_are_given(X):
    timing = fit(X, timing=None).exchanges_["timing"]
    assert timing.step + timing.value * 300 > 0 and timing.message + timing.read > 0
    spread = np.array(timing.spread)
    assert np.all(np.diff(spread) >= 0)
    assert np.mean(spread[1:] + spread[:-1]) / 2 == pytest.approx(1.0), "1 on average"


def test_times_are_measured_at_the_step_sizes_of_the_fit(X, monkeypatch):
    """The steps of a stream go on from those before: their sizes are defined from there on."""
    asked = []

    def step_sizes(self, passes, model):
        first = passes.clock

        def schedule(t):
            asked.extend(np.atleast_1d(t) - first)
            return np.full(np.shape(t), 0.1)

        return schedule

    lda = DPSVILDA(3, max_iter=1, batch_size=30, random_state=0).fit(X)
    lda.set_params(engine="simulated", cluster=VirtualCluster(n_workers=2))
    monkeypatch.setattr(DPSVILDA, "_stream_schedule", step_sizes)
    lda.partial_fit(X)
    assert len(asked) > 400 and min(asked) >= 0


def test_times_are_drawn_from_the_whole_spread():
    timing = Timing(1.0, 2.0, (0.5, 1.5), contention=0.1)
    draws = [timing.draw(np.random.default_rng(seed), 1) for seed in range(200)]
    assert 1.5 <= min(draws) < 2 and 4 < max(draws) <= 4.5


@pytest.mark.parametrize(
    "wrong, what",
    [
        ({"n_workers": 0}, "n_workers"), ({"cores": 0}, "cores"), ({"smt_gain": -1}, "smt_gain"),
        ({"stragglers": (2.0, 1.0)}, "stragglers"), ({"stragglers": (0.5, 0.5)}, "stragglers"),
        ({"seed": -1}, "seed must be"),
        ({"master_works": True}, "master_works"), ({"workers_a_node": 0}, "workers_a_node"),
        ({"killed": {0: 1.0}}, "rank in killed must be an integer >= 1"),
        ({"n_workers": 2, "frozen": {3: 1.0}}, "rank in frozen must be .* <= 2"),
        ({"n_workers": 2, "strategy": "gala", "killed": {2: 1.0}}, "rank in killed .* <= 1"),
        ({"n_workers": 2, "killed": {2: -1.0}}, r"killed\[2\] must be"),
    ],
)  # fmt: skip
def test_clusters_that_cannot_be(wrong, what):
    with pytest.raises(ValueError, match=what):
        VirtualCluster(**wrong)


@pytest.mark.parametrize(
    "wrong", [{"prefetch": "no"}, {"strict": 2}, {"master_works": "yes"}, {"network": "1 GbE"},
              {"timing": 1.0}, {"killed": [1]}, {"stragglers": (0.5,)}, {"stragglers": 0.5}],
)  # fmt: skip
def test_options_of_another_type(wrong):
    with pytest.raises(TypeError, match=next(iter(wrong))):
        VirtualCluster(**wrong)


def test_ranks_that_hold_a_part_of_the_sum_cannot_fail(rng):
    cluster = VirtualCluster(n_workers=3, timing=SECOND, network=INSTANT, killed={1: 0.5})
    mixture = DPSVIGaussianMixture(
        2, engine="simulated", cluster=cluster, incremental=True, max_iter=2, batch_size=10
    )
    with pytest.raises(ValueError, match="cannot be killed or frozen in virtual time"):
        mixture.fit(rng.normal(size=(100, 2)))


@pytest.mark.parametrize("wrong", [{"latency": -1.0}, {"bandwidth": 0.0}])
def test_networks_that_cannot_be(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Network(**wrong)


def test_timings_that_cannot_be():
    with pytest.raises(ValueError, match="lost"):
        Timing(1.0, 1.0, lost=-0.1)
    with pytest.raises(ValueError, match="spread"):
        Timing(1.0, 1.0, ())


def test_what_cannot_be_simulated_is_refused(X):
    with pytest.raises(ValueError, match="VirtualCluster"):
        DPSVILDA(2, engine="simulated", cluster=Cluster()).fit(X)


def test_the_command_line_says_that_times_are_simulated(X, tmp_path, capsys):
    d, w = np.nonzero(X)
    lines = [str(len(X)), str(X.shape[1]), str(len(d))]
    lines += [f"{i + 1} {j + 1} {X[i, j]}" for i, j in zip(d, w, strict=True)]
    path, out = tmp_path / "docword.x.txt", tmp_path / "run"
    path.write_text("\n".join(lines) + "\n")
    argv = "fit lda --engine simulated --workers 3 --threads 2 --passes 1 --topics 4"
    assert main([*argv.split(), "--corpus", str(path), "--out", str(out)]) == 0
    assert "SIMULATED" in capsys.readouterr().out
    assert "simulated" in (out / "report.html").read_text()
    assert DPSVILDA.load(out).n_components == 4
