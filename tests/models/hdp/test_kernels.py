"""Sticks and local steps of the HDP against the slow reference."""

from itertools import permutations

import numpy as np
import pytest
from reference.hdp import (
    collapsed_document,
    document_elbo,
    first_zeta,
    global_elbo,
    log_sticks,
    mean_field_document,
    mean_log_weights,
    mean_weights,
    softmax,
    stick_gammas,
    stick_parameters,
)
from reference.lda import Kept, TopicCorpus, documents_of, expected_evidence, expected_log
from scipy.special import betaln

from dpsvi.corpus import Corpus
from dpsvi.engines import fit
from dpsvi.families.topics.kept import sum_of
from dpsvi.families.topics.matrix import FLOAT
from dpsvi.kernels.collapsed import OWN
from dpsvi.kernels.jit import as_items, compile_local
from dpsvi.kernels.responsibilities import UNIT
from dpsvi.models.hdp.mean_field import explain
from dpsvi.models.hdp.model import LOCAL_STEPS, make_model, with_responsibilities
from dpsvi.models.hdp.sticks import expected_log_weights, expected_weights
from dpsvi.training.schedules import constant
from dpsvi.training.state import State
from dpsvi.training.task import make_works

T, TRUNCATION, ALPHA_0, OMEGA, ETA = 7, 4, 1.5, 0.8, 0.05
TABLES = np.array([3.0, 40.0, 0.0, 12.5, 7.0, 0.3, 25.0])
both = pytest.mark.parametrize("kind", LOCAL_STEPS)


# --- sticks ------------------------------------------------------------------------------------


@pytest.mark.parametrize("omega", [0.3, 1.0, 8.0])
def test_sticks_against_samples(omega, rng):
    order, a, b = stick_parameters(TABLES, omega)
    rest = rng.beta(b, a, (200_000, T))  # 1 - V, which may be tiny
    left = np.cumprod(np.concatenate([np.ones((len(rest), 1)), rest[:, :-1]], axis=1), axis=1)
    sigma = np.empty(rest.shape)
    sigma[:, order] = (1 - rest) * left
    mean = sigma.mean(axis=0)
    np.testing.assert_allclose(expected_weights(TABLES, omega), mean / mean.sum(), atol=1e-3)
    np.testing.assert_allclose(
        expected_log_weights(TABLES, omega), np.log(sigma).mean(axis=0), rtol=2e-2
    )
    np.testing.assert_allclose(expected_weights(TABLES, omega), mean_weights(TABLES, omega))
    np.testing.assert_allclose(expected_log_weights(TABLES, omega), mean_log_weights(TABLES, omega))


@pytest.mark.parametrize("omega", [0.1, 1.0, 20.0])
def test_no_order_of_the_sticks_has_a_higher_bound(omega):
    def bound(tables):
        tables = np.asarray(tables)
        behind = omega + tables[::-1].cumsum()[::-1] - tables
        return betaln(1 + tables, behind).sum()

    tables = [5.0, 0.5, 11.0, 2.0, 2.5]
    best = max(permutations(tables), key=bound)
    assert list(best) == sorted(tables, reverse=True)
    order, a, b = stick_parameters(np.array(tables), omega)
    assert bound(best) == pytest.approx(betaln(a, b).sum())


def test_weights_stay_in_range():
    for tables in (np.zeros(400), np.full(3, 1e9), np.r_[1e7, np.zeros(500)]):
        weights = expected_weights(tables, 1e-3)
        assert np.all(weights > 0) and weights.sum() == pytest.approx(1)
        assert np.isfinite(expected_log_weights(tables, 1e-3)).all()


# --- local steps -------------------------------------------------------------------------------


def hdp(kind, n_words, n_topics=T, n_sweeps=7, tol=0.0, alpha=ALPHA_0, **more):
    return make_model(
        n_words, n_topics, alpha, OMEGA, ETA, local_step=kind, truncation=TRUNCATION,
        n_sweeps=n_sweeps, tol=tol, **more,
    )  # fmt: skip


def state_of(model, lam, tables, scale=1.0):
    rows = np.zeros(model.shape, FLOAT)
    rows[:-1, : len(lam)] = (lam - ETA).T
    rows[-1, : len(lam)] = tables
    state = State.resume(model, rows / FLOAT.type(scale), 1)
    state.scale = scale
    return state


def items_of(corpus):
    return as_items(corpus.offsets, corpus.index, corpus.value, FLOAT)


class Step:
    """One call of a local step; `work` is at hand afterwards."""

    def __init__(self, corpus, state):
        self.state, self.items = state, items_of(corpus)
        (self.work,) = make_works(state.model, self.items, corpus.n_items, 1)
        self.local = compile_local(state.model.local, state.model.real)

    def __call__(self, batch, seen=1.0):
        """Statistics of all words and, last, the tables: (V + 1, columns).

        The step was told of a share of the totals only: `seen`, for each column or all.
        """
        state, work = self.state, self.work
        work.totals[:] = state.shared.totals.sum(axis=0) * seen
        before = state.shared.rows.copy()
        n = self.local(
            state.shared, state.scale, state.model.hyper, self.items, np.array(batch, np.int32),
            work,
        )  # fmt: skip
        assert np.array_equal(state.shared.rows, before) and np.all(work.slot == -1)
        touched = work.touched[:n].copy()
        assert len(np.unique(touched)) == n and touched[-1] == len(before) - 1
        stats = np.zeros(state.model.shape)
        stats[touched] = work.stats[:n]
        work.stats[:n] = 0
        return stats


@pytest.fixture(scope="module")
def lam(known):
    """Topics that differ, some seen seldom."""
    rng = np.random.default_rng(1)
    sizes = rng.exponential(20, (T, 1))
    return ETA + (sizes * rng.exponential(size=(T, known.n_words))).astype(np.float32)


def slow(kind, documents, lam, tables, **options):
    """Statistics, (V, T), and tables, by the reference."""
    stats, found = np.zeros((lam.shape[1], len(lam))), np.zeros(len(lam))
    for ids, counts in documents:
        if kind == "collapsed":
            alphas = ALPHA_0 * mean_weights(tables, OMEGA)
            assigned, m = collapsed_document(ids, counts, lam, alphas, **options)
        else:
            zeta, phi, _ = mean_field_document(
                ids, counts, lam, mean_log_weights(tables, OMEGA), ALPHA_0,
                first_zeta(ids, counts, lam, TRUNCATION), **options,
            )  # fmt: skip
            assigned, m = (counts[:, None] * phi) @ zeta, zeta.sum(axis=0)
        np.add.at(stats, ids, assigned)
        found += m
    return stats, found


@both
@pytest.mark.parametrize(("n_sweeps", "tol"), [(1, 0.0), (7, 0.0), (100, 2e-3)])
@pytest.mark.parametrize("scale", [1.0, 1e-4])
def test_local_step(corpus, lam, kind, n_sweeps, tol, scale):
    lam = lam.astype(np.float64)
    model = hdp(kind, corpus.n_features, n_sweeps=n_sweeps, tol=tol)
    found = Step(corpus, state_of(model, lam, TABLES, scale))(range(40))
    stats, tables = slow(kind, documents_of(corpus)[:40], lam, TABLES, n_sweeps=n_sweeps, tol=tol)
    np.testing.assert_allclose(found[:-1, :T], stats, rtol=5e-3, atol=5e-3)
    np.testing.assert_allclose(found[-1, :T], tables, rtol=2e-3, atol=2e-3)
    assert np.all(found[:, T:] == 0), "padding"


@both
def test_single_documents_are_unbiased(corpus, lam, kind):
    """What one document says, summed over all, is what a batch of all says."""
    chosen = corpus.select(slice(0, 30))
    step = Step(chosen, state_of(hdp(kind, corpus.n_features), lam, TABLES))
    parts = sum(step([d]) for d in range(30))
    np.testing.assert_allclose(parts, step(range(30)), rtol=1e-4, atol=1e-4)


@both
def test_tables_and_tokens_add_up(corpus, lam, kind):
    step = Step(corpus, state_of(hdp(kind, corpus.n_features), lam, TABLES))
    stats = step(range(corpus.n_items))
    tokens = np.bincount(corpus.index, corpus.value, corpus.n_features)
    np.testing.assert_allclose(stats[:-1].sum(axis=1), tokens, rtol=1e-4)
    if kind == "mean_field":
        assert corpus.n_items <= stats[-1].sum() <= 1.001 * TRUNCATION * corpus.n_items
    else:
        assert np.all(stats[-1, :T] <= 1.001 * stats[:-1, :T].sum(axis=0)), "a token for each"


@both
@pytest.mark.parametrize("n_topics", [1, 2, 16, 17])
def test_any_number_of_topics(corpus, kind, n_topics, rng):
    lam = ETA + rng.exponential(size=(n_topics, corpus.n_features))
    tables = rng.exponential(10, n_topics)
    model = hdp(kind, corpus.n_features, n_topics)
    found = Step(corpus, state_of(model, lam, tables))(range(9))
    tokens = np.bincount(corpus.index[: corpus.offsets[9]], corpus.value[: corpus.offsets[9]],
                         corpus.n_features)  # fmt: skip
    np.testing.assert_allclose(found[:-1].sum(axis=1), tokens, rtol=1e-4)
    assert np.all(found[:, n_topics:] == 0) and np.isfinite(found).all()
    first = model.init(rng)
    assert np.all(first[:, n_topics:] == 0) and np.all(first[:, :n_topics] > 0)


@both
@pytest.mark.parametrize("alpha", [1e-3, 100.0])
@pytest.mark.parametrize("pattern", ["never seen", "one topic has all", "huge", "no tables"])
def test_extremes_give_no_nan(corpus, kind, alpha, pattern):
    n_topics = 40
    lam, tables = np.full((n_topics, corpus.n_features), ETA), np.full(n_topics, 5.0)
    if pattern == "one topic has all":
        lam[3] += 1e6
        tables[3] = 1e6
    elif pattern == "huge":
        lam += 1e9
    elif pattern == "no tables":
        tables[:] = 0
    model = hdp(kind, corpus.n_features, n_topics, alpha=alpha, n_sweeps=20)
    stats = Step(corpus, state_of(model, lam, tables))(range(corpus.n_items))
    tokens = np.bincount(corpus.index, corpus.value, corpus.n_features)
    np.testing.assert_allclose(stats[:-1].sum(axis=1), tokens, rtol=1e-3)
    assert np.isfinite(stats).all() and np.all(stats >= 0)


@both
@pytest.mark.parametrize("seen", [0.0, 0.01, np.r_[0.01, np.ones(15)]])
def test_a_thread_that_was_stopped_after_it_had_read_the_totals(corpus, lam, kind, seen):
    """Meanwhile others added to the rows: more tables than it knows of tokens, for all or some."""
    model = hdp(kind, corpus.n_features)
    seen = np.resize(seen, model.shape[1])
    stats = Step(corpus, state_of(model, lam, 50 * TABLES))(range(corpus.n_items), seen)
    tokens = np.bincount(corpus.index, corpus.value, corpus.n_features)
    np.testing.assert_allclose(stats[:-1].sum(axis=1), tokens, rtol=1e-3)
    assert np.isfinite(stats).all() and np.all(stats >= 0)


@both
def test_empty_documents(lam, known, kind):
    def of(*documents):
        offsets = np.cumsum([0, *map(len, documents)])
        ids, counts = zip(*[pair for document in documents for pair in document], strict=True)
        return Corpus(
            offsets, np.array(ids, np.int32), np.array(counts, np.float32), known.n_words, None
        )

    filled = [(3, 2.0), (8, 1.0)]
    state = state_of(hdp(kind, known.n_words), lam, TABLES)
    some, alone = Step(of([], filled, []), state), Step(of(filled), state)
    assert np.array_equal(some([0, 1, 2]), alone([0]))


# --- kept responsibilities -----------------------------------------------------------------------


def test_kept_responsibilities_and_the_tables_that_they_make(corpus, lam):
    """Two visits of all documents, given the same topics and sticks, and what is recalled then."""
    chosen, lam = corpus.select(slice(0, 60)), lam.astype(np.float64)
    documents, alphas = documents_of(chosen), ALPHA_0 * mean_weights(TABLES, OMEGA)
    model = with_responsibilities(hdp("collapsed", corpus.n_features, n_sweeps=3))
    state = State.resume(model, state_of(model, lam, TABLES).shared.rows, 1, 60, chosen.nnz)
    step, slow = Step(chosen, state), Kept(documents, lam, alphas, ETA, 3, times=OWN)
    total = np.zeros(model.shape)
    for _ in range(2):
        total += step(range(60))
        slow.visit(range(60))
        slow.lam = lam  # as the topics of the step, which are not changed either
        assigned = [counts[:, None] * slow.phi[d] for d, (_, counts) in enumerate(documents)]
        stats = np.zeros(lam.T.shape)
        for (ids, _), one in zip(documents, assigned, strict=True):
            np.add.at(stats, ids, one)
        np.testing.assert_allclose(total[:-1, :T], stats, rtol=5e-3, atol=5e-3)
        tokens = np.array([one.sum(axis=0) for one in assigned])
        tables = (alphas * expected_evidence(np.maximum(tokens, 1e-6), alphas)).sum(axis=0)
        np.testing.assert_allclose(total[-1, :T], tables, rtol=2e-3, atol=2e-3)
        assert np.all(total[:, T:] == 0), "padding"
    recalled = sum_of(state, np.pad(alphas, (0, model.shape[1] - T)))
    fit(
        recalled, as_items(*items_of(chosen), recalled.model.real), schedule=constant(1.0),
        batch_size=7, n_passes=1, seed=0,
    )  # fmt: skip
    np.testing.assert_allclose(recalled.shared.rows / UNIT, total, rtol=1e-3, atol=1e-3)


# --- mean field: coordinate ascent -------------------------------------------------------------


def explain_document(ids, counts, lam, tables, zeta, log_stick, n_sweeps):
    """The kernel's zeta, phi and usage of one document."""
    block = expected_log(lam)[:, ids].T.astype(np.float32)
    zeta = zeta.astype(np.float32)
    phi, usage = np.empty((len(ids), len(zeta)), np.float32), np.empty(len(zeta), np.float32)
    logs = np.array(np.broadcast_to(log_stick, len(zeta)), np.float32)
    weights = expected_log_weights(tables, OMEGA).astype(np.float32)
    n = explain(
        block, counts.astype(np.float32), weights, ALPHA_0, np.float32(0), n_sweeps, zeta, phi,
        usage, logs,
    )  # fmt: skip
    zeta, phi, usage, logs = zeta[:n], phi[:, :n], usage[:n], logs[:n]
    a, b = stick_gammas(usage.astype(float), ALPHA_0)
    np.testing.assert_allclose(logs, log_sticks(a, b), rtol=1e-4, atol=1e-4)
    return zeta.astype(float), phi / counts[:, None], usage.astype(float)


def test_sweeps_never_lower_the_bound_of_a_document(corpus, lam):
    """But where a stick that has hardly a token is taken away."""
    lam, logs = lam.astype(float), mean_log_weights(TABLES, OMEGA)
    for ids, counts in documents_of(corpus)[:10]:
        first = first_zeta(ids, counts, lam, TRUNCATION)
        bounds, n_sticks = [], []
        for n_sweeps in range(1, 25):
            local = explain_document(ids, counts, lam, TABLES, first, 0.0, n_sweeps)
            bounds.append(document_elbo(ids, counts, lam, logs, ALPHA_0, *local))
            n_sticks.append(len(local[0]))
        rises = np.diff(bounds) > -1e-5 * abs(bounds[0])
        assert np.all(rises | (np.diff(n_sticks) < 0)) and bounds[-1] > bounds[0]


def test_sticks_without_tokens_are_left_out(lam, known):
    """Titles: each would lower the bound, and tell the corpus of a table that is not there."""
    lam, logs = lam.astype(float), mean_log_weights(TABLES, OMEGA)
    drawn = TopicCorpus(5, known.n_words, 60, n_tokens=4, alpha=0.1, seed=4)
    for ids, counts in documents_of(drawn.corpus()):
        first = first_zeta(ids, counts, lam, TRUNCATION)
        zeta, phi, usage = explain_document(ids, counts, lam, TABLES, first, 0.0, 30)
        assert len(first) <= counts.sum() and (usage.min() > 0.4 or len(zeta) == 1)
        idle = softmax(logs)[None]  # the best for a stick without tokens
        more = np.vstack([zeta, idle]), np.pad(phi, [(0, 0), (0, 1)]), np.pad(usage, (0, 1))
        bounds = [
            document_elbo(ids, counts, lam, logs, ALPHA_0, *q) for q in ((zeta, phi, usage), more)
        ]
        assert bounds[1] - bounds[0] == pytest.approx(np.log(np.exp(logs).sum()), abs=1e-6)
        assert bounds[1] < bounds[0]


def test_coordinate_ascent_never_lowers_the_bound(corpus, lam):
    """Documents go on where they were; topics and sticks are then replaced, all at once."""
    documents = documents_of(corpus)[:60]
    lam, tables, bounds = lam.astype(float), TABLES, []
    local = [(first_zeta(*document, lam, TRUNCATION), 0.0) for document in documents]
    for _ in range(12):
        stats, found = np.zeros(lam.shape), np.zeros(T)
        total, logs = 0.0, mean_log_weights(tables, OMEGA)
        for d, (ids, counts) in enumerate(documents):
            zeta, phi, usage = explain_document(ids, counts, lam, tables, *local[d], 2)
            total += document_elbo(ids, counts, lam, logs, ALPHA_0, zeta, phi, usage)
            local[d] = zeta, log_sticks(*stick_gammas(usage, ALPHA_0))
            np.add.at(stats.T, ids, (counts[:, None] * phi) @ zeta)
            found += zeta.sum(axis=0)
        bounds.append(total + global_elbo(lam, tables, ETA, OMEGA))
        lam, tables = ETA + stats, found
    assert np.all(np.diff(bounds) > -1e-6 * abs(bounds[0]))
    assert bounds[-1] > bounds[0] + 0.01 * abs(bounds[0])


def test_a_step_at_rate_one_maximises_the_bound_given_the_documents(corpus, lam):
    """Full batches through the engine: no other lam and tables are better for these documents."""
    chosen = corpus.select(slice(0, 60))
    documents = documents_of(chosen)
    model = hdp("mean_field", corpus.n_features, n_sweeps=3)
    state = state_of(model, lam, TABLES)
    for _ in range(3):
        lam, tables = parts(state)
        local = [
            mean_field_document(
                ids, counts, lam, mean_log_weights(tables, OMEGA), ALPHA_0,
                first_zeta(ids, counts, lam, TRUNCATION), 3,
            )
            for ids, counts in documents
        ]  # fmt: skip

        def bound(lam, tables, local=local):
            logs = mean_log_weights(tables, OMEGA)
            total = global_elbo(lam, tables, ETA, OMEGA)
            for (ids, counts), q in zip(documents, local, strict=True):
                total += document_elbo(ids, counts, lam, logs, ALPHA_0, *q)
            return total

        fit(state, items_of(chosen), schedule=constant(1.0), batch_size=60, n_passes=1, seed=0)
        lam_after, tables_after = parts(state)
        best = bound(lam_after, tables_after)
        assert best > bound(lam, tables)
        for share in (0.9, 1.1):
            assert best > bound(ETA + share * (lam_after - ETA), tables_after)
            assert best > bound(lam_after, share * tables_after)
        assert best > bound(lam_after, tables_after[::-1])


def parts(state):
    """lam, (T, V), and the tables."""
    rows = state.scale * state.shared.rows[:, :T].astype(float)
    return ETA + rows[:-1].T, rows[-1]
