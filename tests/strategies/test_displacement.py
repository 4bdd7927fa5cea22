"""The paper's aggregation with its projection against Alg. 1-4 written plainly."""

import numpy as np
import pytest
from reference.cluster import batch_statistics, displacements_in_turn
from reference.lda import FixedPasses, TopicCorpus, documents_of, statistics

from dpsvi import DPSVIHDP, DPSVIHMM, DPSVILDA, DPSVIPoissonFactorization, VirtualCluster
from dpsvi.base import Model, Update
from dpsvi.cluster import Cluster
from dpsvi.cluster.nodes.parameters import MasterParameters
from dpsvi.cluster.turns import take_turns
from dpsvi.datasets import load_lee
from dpsvi.evaluation.completion import completion_perplexity
from dpsvi.kernels.jit import as_items
from dpsvi.models.lda.model import make_model
from dpsvi.training.job import Job
from dpsvi.training.ledger import Ledger
from dpsvi.training.schedules import constant
from dpsvi.training.state import State

K, ALPHA, ETA, SWEEPS = 10, 0.1, 0.05, 5
B, BATCH, N_PASSES = 16, 4, 16


@pytest.fixture(scope="module")
def lee():
    """256 documents to learn from, whole turns of B steps, and those that are left."""
    pytest.importorskip("gensim")
    corpus = load_lee()
    return corpus.select(np.arange(256)), corpus.select(np.arange(256, corpus.n_items))


def lda(corpus):
    model = make_model(
        corpus.n_features, K, ALPHA, ETA, local_step="mean_field", n_sweeps=SWEEPS, tol=0.0
    )
    items = as_items(corpus.offsets, corpus.index, corpus.value, np.float32)
    return State.start(model, np.random.default_rng(0), 1), items


def natural(state):
    return state.natural()[:, :K].T.astype(np.float64)


def perplexity(lam, test):
    topics = (lam / lam.sum(axis=1, keepdims=True)).T
    return completion_perplexity(topics, test, ALPHA).perplexity


def both(train, n_workers, rate, on_turn=None):
    """The master, and lam after the same steps: at first, ours, by the equations."""
    state, items = lda(train)
    first = natural(state)
    passes = Ledger(train.n_items, BATCH, N_PASSES, 5, 1)
    steps = range(passes.steps_a_pass)
    batches = [FixedPasses.batch(passes, epoch, i) for epoch in range(N_PASSES) for i in steps]
    work = Job(
        state, items, passes, constant(rate), local_steps=B,
        cluster=Cluster(strategy="displacement"),
    )  # fmt: skip
    master = take_turns(work, n_workers, on_turn)
    expected = displacements_in_turn(
        documents_of(train), first, ALPHA, ETA, batches, [rate] * len(batches),
        n_workers=n_workers, local_steps=B, n_sweeps=SWEEPS,
    )  # fmt: skip
    return master, first, natural(state), expected


def test_the_dense_statistics_are_those_of_every_document(lee):
    documents = documents_of(lee[0])[:3]
    lam = np.random.default_rng(0).gamma(1.0, 1.0, (K, lee[0].n_features))
    expected, _ = statistics("mean_field", documents, lam, ALPHA, n_sweeps=SWEEPS)
    found = batch_statistics(documents, lam, ALPHA, SWEEPS)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("rate", [0.005, 0.01])
@pytest.mark.parametrize("n_workers", [4, 6, 10])
def test_what_the_dense_algorithm_reaches_is_reached(lee, n_workers, rate):
    """All rates are inside the bound; most of them use up the words that are met rarely."""
    train, test = lee
    master, first, found, expected = both(train, n_workers, rate)
    assert n_workers * rate < 0.03 or np.mean(expected < 1.001 * ETA) > 0.5
    assert np.all(found >= np.float32(ETA))
    assert np.abs(found - expected).sum() < 0.01 * expected.sum()
    reached = perplexity(expected, test)
    assert perplexity(found, test) == pytest.approx(reached, rel=0.01)
    assert reached < 0.7 * perplexity(first, test)
    assert master.strategy.reduced == 0


def test_parameters_that_are_used_up_across_a_fold_of_the_scale(lee):
    def fold(master, turns):
        if turns % 3 == 0:
            master.parameters.renormalise()

    _, _, found, expected = both(lee[0], 10, 0.01, fold)
    assert np.abs(found - expected).sum() < 0.01 * expected.sum()


def toy_parameters(rows):
    model = Model(
        name="toy", shape=rows.shape, prior=np.zeros((1, 1), np.float32), hyper=np.zeros(1),
        local=None, scratch=None, nonnegative=True,
    )  # fmt: skip
    return MasterParameters(State.resume(model, rows.astype(np.float32), 1), log=True, project=True)


@pytest.mark.parametrize("weight", [1.0, 0.7])
def test_rows_that_are_used_up_cost_nothing_any_more(weight):
    """Four readings ago only the first of these rows was added to, and none later was."""
    rows, delay, decay = np.array([[2.0, 1.0], [3.0, 0.5], [0.0, 4.0]]), 3, 0.6
    parameters, mine = toy_parameters(rows), np.array([0], np.int32)
    v, readings = [rows] * (delay + 1), [parameters.read(mine)] * (delay + 1)
    for _ in range(60):
        reading, w = readings[-1 - delay], v[-1 - delay]
        change = np.array([[0.5 / (decay * reading.scale), 0.0]], np.float32)
        update = Update(
            1, reading, decay, decay * reading.scale, None, change, reading.totals + change[0]
        )
        parameters.retract(update, weight)
        parameters.add(update, weight)
        parameters.end_step()
        b = np.zeros_like(rows)
        b[0, 0] = 0.5
        v.append(np.maximum(v[-1] - weight * (1 - decay) * w + weight * b, 0))
        np.testing.assert_allclose(parameters.state.natural(), v[-1], rtol=1e-4, atol=1e-5)
        readings.append(parameters.read(mine))
        parameters.forget(readings[-1 - delay :])
    assert np.all(v[-1][1:] == 0) and v[-1][0, 0] > 1
    assert len(parameters._log) == delay
    assert all(np.array_equal(entry.touched, mine) for entry in parameters._log)
    sums = parameters.scale * parameters.totals
    np.testing.assert_allclose(sums, v[-1].sum(axis=0), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("fold", [False, True])
@pytest.mark.parametrize("delay", [10, 150])
def test_an_update_of_a_worker_that_slept_through_the_fit(delay, fold, rng):
    """The decays since have left nothing of what it read that could be told from the rest."""
    rows, decay, weight = rng.gamma(2.0, 1.0, (6, 3)), 0.6, 0.05
    parameters, everywhere = toy_parameters(rows), np.arange(6, dtype=np.int32)
    slept, w, v = parameters.read(everywhere), rows, rows

    def merge(reading, read, weight, n):
        nonlocal v
        b = rng.gamma(2.0, 0.4, rows.shape) * (np.arange(6) % n == 0)[:, None]
        scale = decay * reading.scale
        change = (b / scale).astype(np.float32)
        totals = reading.totals + change.sum(axis=0, dtype=np.float64)
        update = Update(1, reading, decay, scale, None, change, totals)
        parameters.retract(update, weight)
        parameters.add(update, weight)
        parameters.end_step()
        v = np.maximum(v - weight * (1 - decay) * read + weight * b, 0)
        np.testing.assert_allclose(parameters.state.natural(), v, rtol=1e-4, atol=1e-5)

    for turn in range(delay):
        merge(parameters.read(everywhere), v, 1.0, 1 + turn % 2)
        parameters.forget([slept])
        parameters.fold_if_small(at_once=fold and turn % 20 == 0)
    merge(slept, w, weight, 1)
    sums = parameters.scale * parameters.totals
    np.testing.assert_allclose(sums, v.sum(axis=0), rtol=1e-4)
    parameters.forget([])
    assert not len(parameters._log) and not parameters._kept


def test_totals_stay_those_of_the_rows(lee):
    master, *_ = both(lee[0], 6, 0.01)
    state = master.job.state
    rows = state.shared.rows.sum(axis=0, dtype=np.float64)
    np.testing.assert_allclose(state.shared.totals.sum(axis=0), rows, rtol=1e-3, atol=1e-2)


def test_the_report_says_how_often_the_rate_was_reduced():
    corpus = TopicCorpus(4, n_words=90, n_documents=200, n_tokens=40, alpha=0.1, seed=1).corpus()

    def reduced(rate):
        cluster = VirtualCluster(n_workers=6, strategy="displacement")
        options = dict(learning_rate=rate, batch_size=10, local_steps=1, max_iter=2)
        fit = DPSVILDA(4, engine="simulated", cluster=cluster, random_state=0, **options)
        report = fit.fit(corpus).exchanges_
        assert report["global_steps"] == len(report["exchanges"]) == 40
        return report["reduced"]

    assert reduced(0.01) == 0 < reduced(0.7) <= 40


def counts(rng, n_items=60):
    return rng.poisson(0.3 * rng.gamma(0.5, 2.0, (n_items, 30)))


@pytest.mark.parametrize(
    "estimator",
    [DPSVILDA(3), DPSVILDA(3, local_step="mean_field"), DPSVIHDP(5), DPSVIPoissonFactorization(3)],
    ids=lambda estimator: type(estimator).__name__,
)
def test_models_of_counts_never_go_below_their_prior(estimator, rng):
    state = estimator.set_params(max_iter=3, random_state=0).fit(counts(rng))._state
    assert state.model.nonnegative
    assert np.all(state.natural() >= state.model.prior)


def test_only_symbols_make_a_hidden_markov_model_one_of_counts(rng):
    symbols, numbers = rng.integers(4, size=(200, 1)), rng.normal(size=(200, 1))
    lengths = [20] * 10
    for emission, X, expected in (("categorical", symbols, True), ("gaussian", numbers, False)):
        fit = DPSVIHMM(2, emission=emission, max_iter=3, random_state=0).fit(X, lengths=lengths)
        assert fit._state.model.nonnegative == expected
        if expected:
            assert np.all(fit._state.natural() >= fit._state.model.prior)
