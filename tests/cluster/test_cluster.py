"""Master and workers in one process, taking turns: Alg. 1-4 against serial SVI and eq. (4)."""

import time

import numpy as np
import pytest
from reference.lda import FixedPasses, TopicCorpus, count_visits, documents_of, svi

from dpsvi import engines
from dpsvi.base import Model
from dpsvi.cluster import Cluster
from dpsvi.cluster.nodes.steering import Steering
from dpsvi.cluster.nodes.worker import Worker
from dpsvi.cluster.transports import messages
from dpsvi.cluster.transports.messages import Pool, deliver, parse
from dpsvi.errors import DivergedError, DpsviError, DroppedError, LostRankError, UnstableError
from dpsvi.estimators.items import dense_items
from dpsvi.evaluation.completion import completion_perplexity
from dpsvi.expfam.gaussian import first_statistics
from dpsvi.families.mixtures.components import Prior
from dpsvi.kernels.jit import as_items
from dpsvi.models import gaussian_mixture as gm
from dpsvi.models.lda.model import LOCAL_STEPS, make_model
from dpsvi.strategies.displacement import stable_below
from dpsvi.training.job import Job
from dpsvi.training.ledger import Cuts, Passes
from dpsvi.training.schedules import constant, robbins_monro
from dpsvi.training.state import State
from experiments.simulated import take_turns

FLOAT = np.dtype(np.float32)
K, ALPHA, ETA, BATCH = 4, 0.3, 0.05, 10
# Those that apply an update as it is; common/test_strategies.py has the others, and what all share.
STRATEGIES = ["decay", "displacement"]  # the default and the paper's


@pytest.fixture(scope="module")
def corpus():
    return TopicCorpus(K, n_words=90, n_documents=200, n_tokens=40, alpha=0.1, seed=1).corpus()


def lda(corpus, local_step):
    model = make_model(corpus.n_features, K, ALPHA, ETA, local_step=local_step, n_sweeps=5, tol=0.0)
    state = State.start(model, np.random.default_rng(0), 1)
    return state, as_items(corpus.offsets, corpus.index, corpus.value, FLOAT)


def perplexity(state, corpus):
    topics = state.natural()[:, :K].astype(np.float64)
    return completion_perplexity(topics / topics.sum(axis=0), corpus, ALPHA).perplexity


def corpus_alike(corpus):
    """The perplexity of topics that are all alike."""
    return perplexity(lda(corpus, "mean_field")[0], corpus)


def mixture():
    rng = np.random.default_rng(2)
    centres = rng.normal(size=(3, 2)) * 4
    X = centres[rng.integers(3, size=200)] + rng.normal(size=(200, 2))
    prior = Prior(1.0, X.mean(axis=0), 3.0, np.cov(X.T))
    resp = rng.dirichlet(np.ones(3), size=200)
    origins, stats = first_statistics(X, resp, prior.mean)
    return State.resume(gm.make_model(1.0, prior, origins), stats.reshape(1, -1), 1), dense_items(X)


PROBLEMS = [*LOCAL_STEPS, "mixture"]


def problem(name, corpus):
    return mixture() if name == "mixture" else lda(corpus, name)


def job(
    state, items, *, n_passes=2, schedule=None, local_steps=1, batch_size=BATCH, n_shards=1,
    **options,
):  # fmt: skip
    fields = {k: options.pop(k) for k in list(options) if k in Job._fields}
    passes = Passes(len(items.offsets) - 1, batch_size, n_passes, 5, n_shards)
    return Job(
        state, items, passes, schedule or robbins_monro(2.0, 0.7), local_steps=local_steps,
        cluster=Cluster(**options), **fields,
    )  # fmt: skip


# --- exact equivalences ------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("local_steps", [1, 3])
def test_one_worker_is_serial_svi_bit_for_bit(corpus, name, strategy, local_steps):
    """n = M = p = 1: with B = 1 serial SVI, with more Hogwild on one thread."""
    ours, theirs = problem(name, corpus), problem(name, corpus)
    master = take_turns(job(*ours, local_steps=local_steps, strategy=strategy), 1)
    engines.get("serial").fit(job(*theirs, local_steps=local_steps))
    assert ours[0].step == theirs[0].step == 40 and ours[0].items == 400
    assert np.array_equal(ours[0].natural(), theirs[0].natural())
    mine, other = (s.scale * s.shared.totals.sum(axis=0) for s in (ours[0], theirs[0]))
    np.testing.assert_allclose(mine, other, rtol=1e-12)
    assert {e.staleness for e in master.exchanges} == {0}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_one_worker_stays_serial_where_scales_are_folded_in(corpus, strategy):
    ours, theirs = lda(corpus, "collapsed"), lda(corpus, "collapsed")
    settings = dict(schedule=constant(0.5), n_passes=5)
    take_turns(job(*ours, strategy=strategy, **settings), 1)
    engines.get("serial").fit(job(*theirs, **settings))
    assert np.array_equal(ours[0].natural(), theirs[0].natural())


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("n_workers", [1, 3])
def test_one_thread_decays_what_it_has_read(corpus, name, strategy, n_workers):
    """p = 1: nothing is stale within a worker, so both forms of line 8 of Alg. 4 are one."""
    found = []
    for local_decay in ("exact", "as_read"):
        state, items = problem(name, corpus)
        work = job(
            state, items, schedule=robbins_monro(20.0, 0.7), local_steps=4, strategy=strategy,
            local_decay=local_decay,
        )  # fmt: skip
        take_turns(work, n_workers)
        found.append((state.natural(), state.scale * state.shared.totals.sum(axis=0)))
    for exact, as_read in zip(*found, strict=True):
        np.testing.assert_allclose(as_read, exact, rtol=1e-3, atol=1e-3 * np.abs(exact).mean())


@pytest.mark.parametrize("name", PROBLEMS)
def test_threads_that_decay_what_they_have_read_learn_as_well(corpus, name):
    """Real threads, whose writes race; the parameters stay in the domain of the model."""
    found = []
    for local_decay in ("exact", "as_read"):
        state, items = problem(name, corpus)
        state.shared = state.shared._replace(totals=np.vstack([state.shared.totals] * 4))
        state.recount()
        work = job(
            state, items, schedule=constant(0.02), local_steps=4, n_jobs=4, n_passes=10,
            local_decay=local_decay,
        )  # fmt: skip
        take_turns(work, 2)
        assert not state.model.nonnegative or np.all(state.natural() >= state.model.prior)
        found.append(state.natural())
    exact, as_read = found
    assert np.abs(as_read - exact).sum() < 0.25 * np.abs(exact).sum()


def test_a_single_row_is_read_and_over_written(corpus):
    """In the exact form its threads read totals that lose nothing; here it is the row itself."""
    from dpsvi.cluster.virtual import Timing, VirtualCluster

    counts = {}
    for local_decay in ("exact", "as_read"):
        for lost in (0.0, 0.2):
            state, items = mixture()
            cluster = VirtualCluster(
                timing=Timing(step=1.0, value=0.0, lost=lost), local_decay=local_decay
            )
            work = job(state, items, schedule=constant(0.05), n_jobs=3, local_steps=4)
            engines.get("simulated").fit(work._replace(cluster=cluster))
            counts[local_decay, lost] = state.natural()
    assert np.array_equal(counts["exact", 0.0], counts["exact", 0.2])
    assert not np.allclose(counts["as_read", 0.0], counts["as_read", 0.2], rtol=1e-3)
    assert not np.allclose(counts["as_read", 0.0], counts["exact", 0.0], rtol=1e-6)
    np.testing.assert_allclose(counts["as_read", 0.0], counts["exact", 0.0], rtol=0.1, atol=5)


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_engine_alone_is_serial_svi_bit_for_bit(corpus, name):
    pytest.importorskip("mpi4py.MPI", exc_type=ImportError)
    ours, theirs = problem(name, corpus), problem(name, corpus)
    engines.get("mpi").fit(job(*ours, local_steps=2))
    engines.get("serial").fit(job(*theirs, local_steps=2))
    assert np.array_equal(ours[0].natural(), theirs[0].natural())


def asysg(corpus, local_step, first, n_workers, batches, rates, strategy):
    """AsySG (p = B = 1) by eq. (4), dense and in float64: worker t mod n made step t."""
    v, seen = first.astype(np.float64), [first.astype(np.float64)] * n_workers
    for t, (batch, rate) in enumerate(zip(batches, rates, strict=True)):
        w = seen[t % n_workers]
        u = svi(local_step, documents_of(corpus), w, ALPHA, ETA, [batch], [rate], n_sweeps=5)
        if strategy == "displacement":
            v = v + (u - w)
        else:
            v = ETA + (1 - rate) * (v - ETA) + (u - ETA - (1 - rate) * (w - ETA))
        seen[t % n_workers] = v
    return v


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("local_step", LOCAL_STEPS)
@pytest.mark.parametrize("n_workers", [2, 4])
def test_one_step_a_turn_is_asysg(corpus, local_step, n_workers, strategy):
    state, items = lda(corpus, local_step)
    first = state.natural()[:, :K].T
    work = job(state, items, schedule=robbins_monro(50.0, 0.7), strategy=strategy)
    steps = range(work.passes.steps_a_pass)
    batches = [FixedPasses.batch(work.passes, epoch, step) for epoch in range(2) for step in steps]
    rates = work.schedule(np.arange(len(batches)))
    expected = asysg(corpus, local_step, first, n_workers, batches, rates, strategy)
    master = take_turns(work, n_workers)
    found = state.natural()[:, :K].T
    np.testing.assert_allclose(found, expected, rtol=5e-3, atol=5e-3)
    assert np.abs(found - expected).sum() < 2e-4 * expected.sum()
    later = [e.staleness for e in master.exchanges[n_workers:-n_workers]]
    assert set(later) == {n_workers - 1}


@pytest.mark.parametrize("rate", [1.0, 0.5])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_m_updates_are_one_global_step(corpus, strategy, rate):
    """M = n = 2: both start from the same v; sum (gamma 1) and mean (gamma 1/2)."""
    state, items = lda(corpus, "mean_field")
    first = state.natural()[:, :K].T.astype(np.float64)
    work = job(
        state, items, schedule=constant(0.1), n_passes=1, strategy=strategy, master_batch=2,
        global_rate=rate, batch_size=100,
    )  # fmt: skip
    ends = [
        svi("mean_field", documents_of(corpus), first, ALPHA, ETA,
            [FixedPasses.batch(work.passes, 0, i)], [0.1], n_sweeps=5)
        for i in range(2)
    ]  # fmt: skip
    master = take_turns(work, 2)
    assert master.parameters.version == 1 and len(master.exchanges) == 2
    if strategy == "displacement":
        expected = first + rate * sum(end - first for end in ends)
    else:
        a, expected = 1 - rate * 0.1, first
        for end in ends:
            expected = ETA + a * (expected - ETA) + rate * (end - ETA - 0.9 * (first - ETA))
    np.testing.assert_allclose(state.natural()[:, :K].T, expected, rtol=2e-3, atol=1e-3)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_stale_updates_across_a_fold_of_the_scale(corpus, strategy):
    """The same fit, with the master's scale folded in before every update or hardly ever."""
    results = []
    for often in (False, True):
        state, items = lda(corpus, "mean_field")
        work = job(state, items, schedule=constant(0.05), strategy=strategy)

        def fold(master, turns, often=often):
            if often:
                master.parameters.renormalise()

        take_turns(work, 3, fold)
        results.append(state.natural())
    np.testing.assert_allclose(*results, rtol=1e-3, atol=1e-4)


# --- no item is lost or doubled -------------------------------------------------------------------


def toy(n_items, local=count_visits, hyper=0.0):
    model = Model(
        name="toy", shape=(n_items, 3), prior=np.zeros(3, FLOAT), hyper=np.array([hyper]),
        init=lambda rng: np.zeros((n_items, 3), FLOAT), local=local, scratch=lambda longest: 0,
        learner="incremental",
    )  # fmt: skip
    items = as_items(np.arange(n_items + 1), np.arange(n_items), np.ones(n_items), FLOAT)
    return State.start(model, None, 1), items


@pytest.mark.parametrize("n_shards", [1, 3])
@pytest.mark.parametrize("prefetch", [False, True])
@pytest.mark.parametrize("lost", [{}, {7: 2}, {0: 1, 9: 3}])
@pytest.mark.parametrize("local_steps", [1, 4, None])
def test_no_item_is_lost_or_doubled(n_shards, prefetch, lost, local_steps):
    """In every pass, on any number of workers, with workers lost on the way."""
    state, items = toy(203)
    work = job(
        state, items, n_passes=3, n_shards=n_shards, prefetch=prefetch, local_steps=local_steps,
        batch_size=5,
    )  # fmt: skip

    def lose(master, turns):
        if turns in lost:
            master.drop(lost[turns], "it was told to")

    master = take_turns(work, 3, lose)
    assert np.all(state.natural() == 3)
    assert state.items == 3 * 203 and work.passes.finished
    assert set(master.lost) == set(lost.values())


def test_shards_are_disjoint_and_the_order_differs():
    passes = Passes(100, 10, 2, seed=1, n_shards=3)
    seen = {}
    for worker in range(3):
        while work := passes.grant(worker, 3, owners=range(3)):
            seen.setdefault((work.epoch, work.shard), []).extend(passes.items(work))
            passes.done(worker, work)
            assert work.shard == worker
    assert passes.finished
    for shard in range(3):
        assert sorted(seen[0, shard]) == list(range(shard, 100, 3))
        assert seen[0, shard] != seen[1, shard]


def test_a_position_is_the_rest_of_the_work():
    """JSON of a ledger with steps in three states: done, given out, given back."""
    passes = Passes(95, 10, 2, seed=1, n_shards=2)
    first, second = passes.grant(0, 2), passes.grant(1, 3)
    passes.done(0, first, 1)
    again = Passes.resume(95, 10, 2, passes.position())
    rest = []
    while work := again.grant(0, 4):
        rest.append(again.items(work))
        again.done(0, work)
    done = passes.items(first._replace(last=first.first + 1))
    counts = np.bincount(np.concatenate(rest), minlength=95)
    assert np.all(counts[done] == 1) and np.all(np.delete(counts, done) == 2)
    assert second.n_steps == 3 and again.finished


def test_cuts():
    cuts = Cuts(7, 0.5)
    assert [cuts.after(step) for step in (0, 3, 4, 6, 7, 11)] == [4, 4, 7, 7, 11, 14]


# --- strategies --------------------------------------------------------------------------------


def test_stable_rates():
    """x_{t+1} = x_t - a x_{t-D} shrinks just below the bound and grows just above it."""
    for delay in range(5):
        for factor, stable in ((0.95, True), (1.05, False)):
            a, x = factor * stable_below(delay), [1.0] * (delay + 1)
            for _ in range(2000):
                x.append(x[-1] - a * x[-1 - delay])
            assert (max(map(abs, x[-20:])) < 1e-3) == stable


def test_the_displacement_refuses_or_reduces_an_unstable_rate(corpus, caplog):
    """Six workers with rate 0.7: a = 0.7 is above the 0.285 that staleness 5 allows."""
    settings = dict(schedule=constant(0.7), strategy="displacement")
    with pytest.raises(UnstableError, match=r"staleness \d.*less than \d.\d+ is stable"):
        take_turns(job(*lda(corpus, "mean_field"), strict=True, **settings), 6)
    serial, items = lda(corpus, "mean_field")
    engines.get("serial").fit(job(serial, items, n_passes=4, **settings))
    state, items = lda(corpus, "mean_field")
    report = {}
    take_turns(job(state, items, n_passes=4, report=report, **settings), 6).report()
    assert "it is reduced" in caplog.text
    assert report["reduced"] > 0.9 * report["global_steps"], "in all but the first steps"
    assert np.all(state.natural() >= np.float32(ETA)), "still a Dirichlet parameter"
    assert perplexity(state, corpus) < perplexity(serial, corpus) < 0.7 * corpus_alike(corpus)


def test_the_decay_strategy_stays_valid_at_any_staleness(corpus):
    state, items = lda(corpus, "mean_field")
    take_turns(job(state, items, schedule=constant(0.9), n_passes=4), 16)
    assert np.all(state.natural() >= np.float32(ETA))
    tokens = state.natural().sum(dtype=np.float64) - ETA * np.prod(state.model.shape)
    assert tokens == pytest.approx(corpus.n_tokens, rel=0.3)


@pytest.mark.parametrize("name", STRATEGIES)
def test_rates_out_of_range(name):
    for rate in (0, -1, np.nan):
        with pytest.raises(ValueError, match="global_rate"):
            Cluster(strategy=name, global_rate=rate)


def test_unknown_options():
    with pytest.raises(ValueError, match=r"strategy.*decay.*displacement.*'rumour'"):
        Cluster(strategy="rumour")
    with pytest.raises(ValueError, match="sharding"):
        Cluster(sharding="half")
    with pytest.raises(ValueError, match="local_decay"):
        Cluster(local_decay="late")
    with pytest.raises(ValueError, match="waiting"):
        Cluster(waiting=1.5)


# --- a steered B ---------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.1, 0.3])
@pytest.mark.parametrize("message", [0.01, 0.3])
def test_a_steered_b_waits_as_long_as_it_was_told(share, message):
    """Twenty steps a second, exchanges with a part that grows as the root of B."""
    steering = Steering(share)
    for _ in range(40):
        b = steering.steps(1)
        waited, seconds = message + 0.1 * b**0.5, 0.05 * b
        steering.learn(1, waited, seconds)
    assert waited / (waited + seconds) == pytest.approx(share, rel=0.2)
    assert steering.steps(2) == Steering(share).steps(2), "every worker has its own"


def test_a_steered_b_stays_in_its_range():
    steering = Steering(0.1)
    for _ in range(30):
        steering.learn(1, 1e9, 1.0)
        steering.learn(2, 0.0, 1.0)
    assert steering.steps(1) == 1024 and steering.steps(2) == 1


# --- messages ----------------------------------------------------------------------------------


def test_messages_survive_the_way():
    sender, receiver = Pool(), Pool()
    rows = np.arange(12, dtype=np.float32).reshape(3, 4)
    message = sender.message({"x": 0.1, "y": None}, rows=rows, room=((2, 2), np.int32))
    message.arrays["room"][...] = 7
    found = deliver(message, sender, receiver)
    message.buffer.bytes[:] = 0
    assert found.header == {"x": 0.1, "y": None}
    assert np.array_equal(found.arrays["rows"], rows)
    assert np.all(found.arrays["room"] == 7)
    assert parse(found.buffer).n_bytes == found.n_bytes
    with pytest.raises(ValueError, match="header of"):
        _ = sender.message({"x": "y" * 5000}).payload


def test_buffers_are_used_again():
    pool = Pool()
    first = pool.take(100_000)
    pool.give(first)
    assert pool.take(90_000) is first
    assert pool.take(90_000) is not first


def test_an_exchange_costs_by_its_rows(corpus):
    """V = 20,000 rows, 30 of them used: no message may grow with V."""
    wide = TopicCorpus(K, 30, 60, 20, 0.1, seed=0).corpus()
    model = make_model(20_000, K, ALPHA, ETA, local_step="collapsed", n_sweeps=3, tol=0.0)
    state = State.start(model, np.random.default_rng(0), 1)
    items = as_items(wide.offsets, wide.index, wide.value, FLOAT)
    master = take_turns(job(state, items, n_passes=1), 2)
    most = 30 * (2 * 4 * model.shape[1] + 4) + 3 * 4096
    assert all(0 < e.n_bytes < most for e in master.exchanges)


@pytest.mark.parametrize("n_workers", [1, 2])
@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
def test_padding_is_not_sent(corpus, kind, n_workers):
    """17 topics have 32 columns: of the 90 rows, each way, 17 numbers travel."""
    model = make_model(90, 17, ALPHA, ETA, local_step="mean_field", n_sweeps=3, tol=0.0)
    state = State.start(model, np.random.default_rng(0), 1)
    assert model.shape == (90, 32)
    items = as_items(corpus.offsets, corpus.index, corpus.value, FLOAT)
    work = job(state, items, n_passes=2, batch_size=100, statistics=kind)
    master = take_turns(work, n_workers)
    sizes = 4 + (4 if kind == "float32" else 2)
    # Three headers, the numbers of the rows in each message, totals each way, hyper.
    others = 3 * (messages._HEADER + 90 * 4) + (2 * 32 + 40) * 8 + 8 * messages._ALIGN
    found = max(e.n_bytes for e in master.exchanges)
    assert 90 * 17 * sizes < found < 90 * 17 * sizes + others < 90 * 32 * sizes
    assert not state.shared.rows[:, 17:].any() and np.all(state.shared.rows[:, :17] > 0)


def test_bfloat16_statistics(corpus):
    """Half the bytes; rounding errors are not lost but sent later."""
    results, sizes = [], []
    for kind in ("float32", "bfloat16"):
        state, items = lda(corpus, "mean_field")
        work = job(state, items, n_passes=4, statistics=kind, schedule=robbins_monro(20, 0.6))
        master = take_turns(work, 2)
        results.append(state.natural()[:, :K].astype(np.float64))
        sizes.append(sum(e.n_bytes for e in master.exchanges))
    exact, rounded = results
    documents = documents_of(corpus)
    batches = [
        FixedPasses.batch(work.passes, epoch, i)
        for epoch in range(4) for i in range(work.passes.steps_a_pass)
    ]  # fmt: skip
    n_rows = [len(np.unique(np.concatenate([documents[d][0] for d in b]))) for b in batches]
    saved = sum(n_rows) * K * (4 - 2)
    assert sizes[0] - sizes[1] == pytest.approx(saved, abs=messages._ALIGN * len(batches))
    assert saved > 2 * messages._ALIGN * len(batches)
    assert 0 < np.abs(exact - rounded).sum() < 2e-3 * exact.sum()


def test_bfloat16_rests_decay_like_the_rows(corpus):
    """Errors of the first, large steps must not be added undiminished many steps later."""
    found = []
    for kind in ("float32", "bfloat16"):
        state, items = lda(corpus, "mean_field")
        take_turns(job(state, items, batch_size=1, n_passes=6, statistics=kind), 2)
        found.append(state.natural()[:, :K].astype(np.float64))
    exact, rounded = found
    assert 0 < np.abs(exact - rounded).sum() < 2e-2 * exact.sum()


def test_bfloat16_rounds_to_nearest_and_keeps_the_error():
    from dpsvi.cluster.nodes.kernels import merge_bfloat16, pack_bfloat16

    rng = np.random.default_rng(0)
    end, base = rng.exponential(size=(2, 50, 16)).astype(np.float32)
    touched, residual = np.arange(50, dtype=np.int32), np.zeros((50, 16), np.float32)
    change = np.empty((50, 16), np.uint16)
    total, rows = np.zeros((50, 16)), np.zeros((50, 16), np.float32)
    for _ in range(64):
        pack_bfloat16(end, base, touched, residual, change)
        merge_bfloat16(rows, touched, change, 1.0)
        total += end.astype(np.float64) - base
    one = np.abs(end - base)
    assert np.all(np.abs(residual) <= one * 2**-7 + 1e-6), "at most one rounding is open"
    np.testing.assert_allclose(rows + residual, total, rtol=1e-4, atol=1e-3)


# --- what is counted -----------------------------------------------------------------------------


def test_nobody_waits_for_an_evaluation(corpus):
    """It is no part of the training time, so it is not of the waiting either."""
    looks, started = [], time.perf_counter()

    def observer(event):
        looks.append(event.step)
        time.sleep(0.5)

    master = take_turns(job(*lda(corpus, "collapsed"), observer=observer), 1)
    assert len(looks) == 2
    rest = time.perf_counter() - started - 2 * 0.5
    assert sum(e.waited for e in master.exchanges) <= rest and master.seconds <= rest


def test_updates_that_wait_for_others_are_in_flight(corpus):
    """With M = 8 many steps would not see each other, however large the rate is."""
    work, most = job(*lda(corpus, "collapsed"), n_passes=4, master_batch=8, most_blind=0.3), []

    def look(master, turns):
        flying = [g.work for g in master._grants.values() if g.reading is not None]
        flying += [grant.work for grant, *_ in master._collected]
        most.append(sum(each.n_steps for each in flying) / master._allotment.room(2))

    take_turns(work, 2, look)
    assert max(most) <= 1


@pytest.mark.parametrize("prefetch", [False, True])
def test_prefetched_rows_are_in_the_message(corpus, prefetch, monkeypatch):
    """Read later, from the master's own, they would keep it from merging meanwhile."""
    from dpsvi.cluster.nodes.master import Master
    from dpsvi.cluster.transports.window import Window

    monkeypatch.setattr(messages, "SHARED_FROM", 0)
    work = job(*lda(corpus, "collapsed"), prefetch=prefetch)
    window = Window.like(work.state.shared.rows, 2, {1})
    master, worker = Master(work, 1, window=window), Worker(work)
    master.take(1, deliver(worker.hello(), worker.pool, master.pool))
    grant = deliver(master.outbox.pop()[1], master.pool, worker.pool)
    ask = next(worker.turn(grant))
    master.take(1, deliver(ask, worker.pool, master.pool))
    answer = master.outbox.pop()[1]
    assert ("base" in answer.arrays) == prefetch == (not window.busy)


# --- what goes wrong -----------------------------------------------------------------------------


def break_at_seven(shared, scale, hyper, items, batch, work):
    n = 0
    for d in batch:
        work.touched[n] = items.index[items.offsets[d]]
        for k in range(work.stats.shape[1]):
            work.stats[n, k] = hyper[0] if d == 7 else 1
        n += 1
    return n


def test_statistics_that_are_no_numbers_never_reach_the_master():
    state, items = toy(50, break_at_seven, hyper=np.nan)
    with pytest.raises(DivergedError, match="NaN or infinite"):
        take_turns(job(state, items, batch_size=2), 2)
    assert np.all(np.isfinite(state.natural()))


def test_a_worker_with_another_problem_is_named(corpus):
    work = job(*lda(corpus, "collapsed"))
    from dpsvi.cluster.nodes.master import Master

    master = Master(work, 1)
    other = Worker(work._replace(passes=Passes(150, BATCH, 2, 5)))
    with pytest.raises(DpsviError, match=r"rank 3 .*items is 150 there, 200 on rank 0"):
        master.take(3, deliver(other.hello(), other.pool, master.pool))


def test_the_last_worker_cannot_be_lost(corpus):
    def lose(master, turns):
        if turns == 3:
            master.drop(1, "gone")
            master.drop(2, "gone")

    with pytest.raises(LostRankError, match="no worker is left"):
        take_turns(job(*lda(corpus, "collapsed")), 2, lose)


def test_a_rank_that_was_left_behind_asks_nobody(monkeypatch):
    """It would wait for ever; and its end must not be that of the others."""
    from dpsvi.cluster.ranks import world

    here = world.World(2, 3, left=True)
    monkeypatch.setattr(world, "world", lambda: here)
    with pytest.raises(DroppedError) as caught:
        world.agree(3)
    assert isinstance(caught.value, SystemExit) and caught.value.code == 0


def test_signals_wait_for_the_end_of_a_merge():
    import signal

    from dpsvi.training.signals import Deferred

    seen = []
    before = signal.signal(signal.SIGUSR1, lambda *_: seen.append("handled"))
    try:
        with Deferred() as signals:
            signal.raise_signal(signal.SIGUSR1)
            assert not seen
            signals.deliver()
            assert seen == ["handled"]
            signal.raise_signal(signal.SIGUSR1)
            assert len(seen) == 2, "the second is not kept"
        assert len(seen) == 2, "and handled once"
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_no_signal_breaks_into_a_merge_and_the_second_is_heard_at_once():
    """One that ends the process does; what another one raises waits like the first."""
    import signal

    from dpsvi.training.signals import Deferred

    seen = []

    def handler(number, frame):
        seen.append(number)
        raise KeyboardInterrupt(len(seen))

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with Deferred() as signals:
            signal.raise_signal(signal.SIGUSR1)
            assert not seen
            signal.raise_signal(signal.SIGUSR1)
            assert len(seen) == 2, "both handlers were called, and nothing was raised"
            with pytest.raises(KeyboardInterrupt, match="2"):
                signals.deliver()
            signal.raise_signal(signal.SIGUSR1)
            assert len(seen) == 3, "after the first one they do not wait"
            with pytest.raises(KeyboardInterrupt, match="3"):
                signals.deliver()
        assert len(seen) == 3
    finally:
        signal.signal(signal.SIGUSR1, before)
