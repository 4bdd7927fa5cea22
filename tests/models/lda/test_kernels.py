"""Local steps of LDA and inference with topics fixed, against the slow reference."""

import numpy as np
import pytest
from reference.lda import (
    FixedPasses,
    Kept,
    document_bound,
    documents_of,
    elbo,
    expected_log,
    infer,
    local_step,
    normalised,
    statistics,
    taken_less,
    unexpected_repetition,
)
from scipy.special import logsumexp, psi

from dpsvi import engines
from dpsvi.corpus import Corpus
from dpsvi.engines import fit
from dpsvi.evaluation.completion import explain_documents, infer_documents
from dpsvi.families.topics.kept import sum_of
from dpsvi.families.topics.matrix import document_bounds
from dpsvi.kernels.collapsed import OWN
from dpsvi.kernels.jit import as_items, compile_local
from dpsvi.kernels.responsibilities import UNIT
from dpsvi.models.lda.model import make_model, with_responsibilities
from dpsvi.training.job import Job
from dpsvi.training.schedules import constant
from dpsvi.training.state import State
from dpsvi.training.task import make_works

FLOAT = np.dtype(np.float32)
WHOLE_ROWS = ["collapsed", "mean_field"]  # local steps whose statistics are of all topics
ALPHA, ETA = np.array([0.1, 0.2, 0.5, 0.7, 0.05]), 0.05
K = len(ALPHA)


def items_of(corpus):
    return as_items(corpus.offsets, corpus.index, corpus.value, FLOAT)


def padded(lam, model):
    """lam - eta in the layout of the model: words in rows, topics in columns, then zeros."""
    rows = np.zeros(model.shape, np.float32)
    rows[:, : len(lam)] = (lam - model.prior[0]).T
    return rows


class Step:
    """One call of a local step, everything of it at hand."""

    def __init__(self, corpus, model, lam, scale=1.0):
        self.items, self.model, self.scale = items_of(corpus), model, scale
        self.state = State.resume(
            model, (padded(lam, model) / np.float32(scale)), 1, corpus.n_items, corpus.nnz
        )
        (self.work,) = make_works(model, self.items, corpus.n_items, 1)
        self.local = compile_local(model.local, model.real)

    def __call__(self, batch):
        """Statistics of all words, (V, columns)."""
        shared, work = self.state.shared, self.work
        work.totals[:] = shared.totals.sum(axis=0)
        batch = np.asarray(batch, np.int32)
        n = self.local(shared, self.scale, self.model.hyper, self.items, batch, work)
        stats = np.zeros(self.model.shape, np.float32)
        stats[work.touched[:n]] = work.stats[:n]
        work.stats[:n] = 0  # as the loop leaves it
        assert len(set(work.touched[:n])) == n, "a word has one row of statistics"
        assert np.all(work.slot == -1), "left as it was found"
        return stats

    @property
    def gamma(self):
        return self.state.shared.item_memory


def lda(kind, n_words, alpha=ALPHA, eta=ETA, **options):
    options = dict(n_sweeps=7, tol=0.0) | options
    return make_model(n_words, len(alpha), alpha, eta, local_step=kind, **options)


def make_corpus(documents, n_words):
    """A corpus of lists of (word, count)."""
    index = [w for document in documents for w, _ in document]
    value = [c for document in documents for _, c in document]
    offsets = np.cumsum([0] + [len(document) for document in documents])
    return Corpus(offsets, np.array(index, np.int32), np.array(value, np.float32), n_words)


@pytest.fixture
def lam(known, rng):
    return ETA + 3 * rng.exponential(size=(K, known.n_words)).astype(np.float32)


# --- statistics and gamma ----------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1.0, 1e-5])
@pytest.mark.parametrize(("n_sweeps", "tol"), [(1, 0.0), (7, 0.0), (100, 1e-3)])
@pytest.mark.parametrize("kind", WHOLE_ROWS)
def test_statistics(corpus, lam, kind, n_sweeps, tol, scale):
    """float32 near the float64 reference; the documents of the batch only, in any order."""
    batch = [5, 300, 17, 3, 299, 42]
    model = lda(kind, corpus.n_features, n_sweeps=n_sweeps, tol=tol, warm_documents=True)
    step = Step(corpus, model, lam, scale)
    stats = step(batch)

    documents = documents_of(corpus)
    expected, gamma = statistics(
        kind, [documents[d] for d in batch], lam, ALPHA, n_sweeps=n_sweeps, tol=tol
    )
    np.testing.assert_allclose(stats[:, :K], expected.T, rtol=1e-3, atol=2e-4)
    np.testing.assert_allclose(step.gamma[batch][:, :K], gamma, rtol=1e-4, atol=1e-4)
    assert np.all(stats[:, K:] == 0) and np.all(step.gamma[:, K:] == 0), "padding"
    others = np.setdiff1d(np.arange(corpus.n_items), batch)
    assert np.all(step.gamma[others] == 0), "other documents are not visited"


@pytest.mark.parametrize("kind", WHOLE_ROWS)
def test_every_token_is_counted_once(corpus, lam, kind):
    batch = np.arange(0, corpus.n_items, 3)
    stats = Step(corpus, lda(kind, corpus.n_features), lam)(batch)
    tokens = np.asarray(corpus.to_csr()[batch].sum(axis=0)).ravel()
    np.testing.assert_allclose(stats.sum(axis=1), tokens, rtol=1e-5)
    assert np.all(stats >= 0)


@pytest.mark.parametrize("kind", WHOLE_ROWS)
def test_statistics_add_up_over_a_split(corpus, lam, kind):
    """Documents do not see each other within a batch."""
    step = Step(corpus, lda(kind, corpus.n_features), lam)
    together = step(range(60))
    apart = step(range(0, 60, 2)) + step(range(1, 60, 2))
    np.testing.assert_allclose(together, apart, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", WHOLE_ROWS)
def test_warm_documents_go_on_from_their_last_gamma(corpus, lam, kind):
    documents, batch = documents_of(corpus), [4, 9]
    warm = Step(corpus, lda(kind, corpus.n_features, n_sweeps=2, warm_documents=True), lam)
    gammas = {d: None for d in batch}
    for _ in range(3):
        warm(batch)
        for d in batch:
            gammas[d], _ = local_step(
                kind, *documents[d], lam, ALPHA, n_sweeps=2, gamma=gammas[d]
            )
            np.testing.assert_allclose(warm.gamma[d, :K], gammas[d], rtol=1e-4, atol=1e-4)
    assert warm.gamma[[0, 1]].sum() == 0

    cold = Step(corpus, lda(kind, corpus.n_features, n_sweeps=2), lam)
    assert np.array_equal(cold(batch), cold(batch)), "without memory each visit is the first"
    assert cold.gamma.size == 0


def test_own_counts_are_left_out_of_the_document(corpus, lam):
    """Where the sweeps end, phi is explained by the other words of its document, twice over.

    Of the tokens of a word the square root of their number is left out: beyond the first as far as
    they only repeat it.
    """
    d = 3
    ids, counts = documents_of(corpus)[d]
    repeats = unexpected_repetition(ids, counts, lam)
    assert 0 < repeats < 1 and counts.max() > 1
    model = lda("collapsed", corpus.n_features, n_sweeps=600, warm_documents=True)
    step = Step(corpus, model, lam)
    assigned = step([d])[ids, :K].astype(np.float64)
    gamma, phi = step.gamma[d, :K].astype(np.float64), assigned / counts[:, None]
    less = taken_less(counts, lam, np.full(K, ALPHA), repeats)
    weight = gamma**2 / (gamma + less)
    others = weight - 2 * (1 + (np.sqrt(counts) - 1) * repeats)[:, None] * phi
    assert np.all(others > 0)
    expected = normalised(others * normalised(lam.astype(np.float64))[:, ids].T)
    np.testing.assert_allclose(phi, expected, rtol=2e-3, atol=2e-4)
    with_own = normalised(weight * normalised(lam.astype(np.float64))[:, ids].T)
    assert np.abs(phi - with_own).max() > 0.05, "which makes a difference"


@pytest.mark.parametrize("n_topics", [300, 2000])
@pytest.mark.parametrize("kind", WHOLE_ROWS)
def test_small_priors_and_short_documents(corpus, kind, n_topics, rng):
    """alpha = eta = 1 / K, one to five tokens: exp(psi(x)) of such numbers is 0 in float32."""
    n_words = corpus.n_features
    documents = [[(w, 1.0)] for w in range(20)] + [[(w, 1.0), (w + 1, 4.0)] for w in range(20)]
    short = make_corpus(documents, n_words)
    alpha = np.full(n_topics, 1 / n_topics)
    for lam in (
        np.full((n_topics, n_words), 1 / n_topics),
        1 / n_topics + rng.gamma(0.05, 5.0, (n_topics, n_words)),  # no topic of less than a token
    ):
        # More sweeps break near-ties one way or the other; one tells wrong factors.
        model = lda(kind, n_words, alpha, 1 / n_topics, n_sweeps=1)
        step = Step(short, model, lam)
        stats = step(range(40))
        expected, _ = statistics(kind, documents_of(short), lam, alpha, n_sweeps=1)
        np.testing.assert_allclose(
            stats[:, :n_topics].sum(axis=1), expected.sum(axis=0), rtol=1e-4, atol=1e-5
        )
        np.testing.assert_allclose(stats[:, :n_topics], expected.T, rtol=2e-2, atol=2e-3)


@pytest.mark.parametrize("kind", WHOLE_ROWS)
@pytest.mark.parametrize("warm", [False, True])
def test_empty_documents(lam, known, kind, warm):
    filled = [(3, 2.0), (8, 1.0)]
    corpus = make_corpus([[], filled, [], []], known.n_words)
    model = lda(kind, known.n_words, warm_documents=warm)
    step = Step(corpus, model, lam)
    stats = step([0, 1, 2, 3])
    alone = Step(make_corpus([filled], known.n_words), model, lam)
    assert np.array_equal(stats, alone([0]))
    assert np.all(step([0, 2, 3]) == 0)


@pytest.mark.parametrize("kind", WHOLE_ROWS)
def test_counts_may_be_fractions_or_large(lam, known, kind):
    documents = [[(1, 0.25), (2, 1e-3)], [(3, 2e6), (4, 1.0)], [(5, 1e-20)]]
    corpus = make_corpus(documents, known.n_words)
    stats = Step(corpus, lda(kind, known.n_words), lam)([0, 1, 2])
    tokens = np.asarray(corpus.to_csr().sum(axis=0)).ravel()
    np.testing.assert_allclose(stats.sum(axis=1), tokens, rtol=1e-5, atol=1e-30)


@pytest.mark.parametrize("alpha", [1e-3, 0.02, 50.0])
@pytest.mark.parametrize("eta", [1e-4, 0.01, 5.0])
@pytest.mark.parametrize("pattern", ["never seen", "one topic each", "one topic has all", "huge"])
@pytest.mark.parametrize("kind", WHOLE_ROWS)
def test_extremes_give_no_nan(corpus, kind, alpha, eta, pattern):
    """Factors that underflow float32 on their own; every token must still be given to a topic."""
    n_topics, n_words = 40, corpus.n_features
    lam = np.full((n_topics, n_words), eta)
    if pattern == "one topic each":
        lam[np.arange(n_words) % n_topics, np.arange(n_words)] += 1e4
    elif pattern == "one topic has all":
        lam[3] += 1e6
    elif pattern == "huge":
        lam += 1e9
    model = lda(kind, n_words, np.full(n_topics, alpha), eta, warm_documents=True, n_sweeps=20)
    step = Step(corpus, model, lam)
    for _ in range(2):
        stats = step(range(corpus.n_items))
    assert np.all(np.isfinite(stats)) and np.all(np.isfinite(step.gamma))
    tokens = np.bincount(corpus.index, weights=corpus.value, minlength=n_words)
    np.testing.assert_allclose(stats.sum(axis=1), tokens, rtol=1e-4)
    lengths = np.asarray(corpus.to_csr().sum(axis=1)).ravel()
    np.testing.assert_allclose(step.gamma.sum(axis=1), n_topics * alpha + lengths, rtol=1e-4)


@pytest.mark.parametrize("n_topics", [1, 2, 15, 16, 17, 100])
@pytest.mark.parametrize("kind", WHOLE_ROWS)
def test_any_number_of_topics(corpus, kind, n_topics, rng):
    """Padding to the vector width shows nowhere."""
    alpha, batch = np.full(n_topics, 0.1), range(9)
    lam = ETA + rng.exponential(size=(n_topics, corpus.n_features)).astype(np.float32)
    model = lda(kind, corpus.n_features, alpha)
    documents = documents_of(corpus)
    expected, _ = statistics(kind, [documents[d] for d in batch], lam, alpha, n_sweeps=7)
    stats = Step(corpus, model, lam)(batch)
    np.testing.assert_allclose(stats[:, :n_topics], expected.T, rtol=1e-3, atol=2e-4)
    assert model.shape[1] % 16 == 0 and np.all(stats[:, n_topics:] == 0)
    first = model.init(rng)
    assert np.all(first[:, n_topics:] == 0) and np.all(first[:, :n_topics] > 0)


# --- the bound ---------------------------------------------------------------------------------


@pytest.mark.parametrize("n_sweeps", [1, 4])
def test_full_batches_at_rate_one_never_lower_the_bound(corpus, n_sweeps):
    """Coordinate ascent: gamma goes on from the pass before, lam is replaced."""
    model = lda("mean_field", corpus.n_features, n_sweeps=n_sweeps, warm_documents=True)
    rng = np.random.default_rng(0)
    state = State.start(model, rng, 1, corpus.n_items)
    documents, bounds = documents_of(corpus), []

    def observer(event):
        lam, gammas = state.natural()[:, :K].T, state.shared.item_memory[:, :K]
        bounds.append(elbo(documents, gammas.astype(float), lam.astype(float), ALPHA, ETA))

    fit(
        state, items_of(corpus), schedule=constant(1.0), batch_size=corpus.n_items, n_passes=30,
        seed=0, observer=observer,
    )  # fmt: skip
    assert np.all(np.diff(bounds) > -1e-7 * abs(bounds[0]))
    assert bounds[-1] > bounds[0] + 0.02 * abs(bounds[0])


def test_one_batch_iteration_is_that_of_scikit_learn(corpus, lam):
    """Rate 1 and all documents: lam = eta + statistics, from the same topics."""
    from sklearn.decomposition import LatentDirichletAllocation

    X = corpus.to_csr().astype(np.float64)
    peer = LatentDirichletAllocation(
        K, doc_topic_prior=0.3, topic_word_prior=ETA, learning_offset=1.0, batch_size=X.shape[0],
        total_samples=X.shape[0], max_doc_update_iter=2000, mean_change_tol=1e-7,
    )  # fmt: skip
    peer.partial_fit(X)  # makes the attributes; now the topics are ours, and the rate is 1 again
    peer.components_ = lam.astype(np.float64)
    peer.exp_dirichlet_component_ = np.exp(expected_log(lam))
    peer.n_batch_iter_ = 0
    peer.partial_fit(X)

    model = lda("mean_field", corpus.n_features, np.full(K, 0.3), n_sweeps=2000, tol=1e-6)
    state = State.resume(model, padded(lam, model), 1)
    fit(
        state, items_of(corpus), schedule=constant(1.0), batch_size=corpus.n_items, n_passes=1,
        seed=0,
    )  # fmt: skip
    ours = state.natural()[:, :K].T
    np.testing.assert_allclose(ours, peer.components_, rtol=2e-3, atol=2e-2)
    assert np.abs(ours - peer.components_).sum() < 1e-4 * ours.sum()


def test_document_bounds(corpus, lam):
    documents = documents_of(corpus)[:20]
    gammas = np.array([local_step("mean_field", *d, lam, ALPHA)[0] for d in documents])
    weights = np.exp(expected_log(lam))
    log_norm = [
        counts @ np.log(np.exp(psi(gamma)) @ weights[:, ids])
        for (ids, counts), gamma in zip(documents, gammas, strict=True)
    ]
    lengths = np.array([counts.sum() for _, counts in documents])
    expected = [
        document_bound(*document, gamma, lam, ALPHA)
        for document, gamma in zip(documents, gammas, strict=True)
    ]
    found = document_bounds(ALPHA, gammas, np.array(log_norm), lengths)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


# --- kept responsibilities ---------------------------------------------------------------------


def kept_sums(state, corpus):
    """sum_d c_dw phi_dwk of what is kept, (V, columns)."""
    phi = state.shared.value_memory.astype(np.float64) / 65535
    sums = np.zeros(state.model.shape)
    np.add.at(sums, corpus.index, corpus.value[:, None] * phi)
    return sums


def kept_fit(corpus, lam, batch_size, n_passes, order, n_jobs=1, n_sweeps=3):
    model = with_responsibilities(lda("collapsed", corpus.n_features, n_sweeps=n_sweeps))
    state = State.resume(model, padded(lam, model), n_jobs, corpus.n_items, corpus.nnz)
    passes = FixedPasses(order, batch_size, n_passes)
    engines.get("threads").fit(Job(state, items_of(corpus), passes, constant(0.5), n_jobs))
    return state


@pytest.mark.parametrize("batch_size", [1, 7, 60])
def test_responsibilities(corpus, lam, rng, batch_size):
    """Three passes against CVB0 in float64; what is kept is rounded to 16 bits."""
    corpus = corpus.select(slice(0, 60))
    order, passes = rng.permutation(60), 3
    slow = Kept(documents_of(corpus), lam.astype(np.float64), ALPHA, ETA, 3, times=OWN)
    for _ in range(passes):
        for i in range(0, 60, batch_size):
            slow.visit(order[i : i + batch_size])
    state = kept_fit(corpus, lam, batch_size, passes, order)
    phi = state.shared.value_memory[:, :K] / 65535
    expected = np.concatenate([slow.phi[d] for d in range(60)])
    np.testing.assert_allclose(phi, expected, atol=2e-3)
    assert np.mean(np.abs(phi - expected)) < 5e-5
    np.testing.assert_allclose(state.natural()[:, :K].T, slow.lam, rtol=2e-3, atol=1e-2)
    assert np.all(state.shared.value_memory[:, K:] == 0)


@pytest.mark.parametrize(("n_jobs", "share", "tolerance"), [(1, 1e-5, 1e-3), (2, 5e-2, 1.0)])
def test_lam_stays_the_sum_of_what_is_kept(corpus, lam, n_jobs, share, tolerance):
    """Nothing decays and nothing is counted twice, however often a document is visited.

    RACE: of two threads a write may be lost, and with it what a batch has changed of a row.
    """
    state = kept_fit(corpus, lam, 10, 8, np.arange(corpus.n_items), n_jobs)
    model = state.model
    found = state.natural() - model.prior - padded(lam, model)
    kept = kept_sums(state, corpus)
    np.testing.assert_allclose(found.sum(axis=0), kept.sum(axis=0), rtol=share, atol=tolerance)
    if n_jobs == 1:
        np.testing.assert_allclose(found, kept, rtol=share, atol=tolerance)
    # Each of K numbers of 16 bits is rounded once.
    tokens = np.bincount(corpus.index, weights=corpus.value, minlength=corpus.n_features)
    np.testing.assert_allclose(kept.sum(axis=1), tokens, rtol=K / 65535)


@pytest.mark.parametrize("n_topics", [1, 3, 40])
@pytest.mark.parametrize(("alpha", "eta"), [(1e-3, 1e-4), (0.1, 0.01), (1e-8, 0.01)])
@pytest.mark.parametrize("counts", [[1.0], [0.1, 0.05], [1.0, 3.0, 2000.0], [1e5, 1.0], []])
def test_responsibilities_of_odd_documents(alpha, eta, counts, n_topics):
    """One token, fractions of a token, very many; words that the topics have never seen."""
    n_words = 6
    documents = [[(i, c) for i, c in enumerate(counts)]] * 3 + [[(5, 1.0)]]
    corpus = make_corpus(documents, n_words)
    model = lda("collapsed", n_words, np.full(n_topics, alpha), eta)
    model = with_responsibilities(model)
    state = State.resume(model, np.zeros(model.shape, np.float32), 1, 4, corpus.nnz)
    fit(
        state, items_of(corpus), schedule=constant(0.5), batch_size=1, n_passes=20,
        seed=0,
    )  # fmt: skip
    assert np.all(np.isfinite(state.natural()))
    phi = state.shared.value_memory / 65535
    np.testing.assert_allclose(phi.sum(axis=1), 1, atol=n_topics / 65535)
    np.testing.assert_allclose(state.shared.rows, kept_sums(state, corpus), rtol=1e-4, atol=1e-3)


def test_sums_of_very_many_tokens_are_exact():
    """20 million tokens of one word: float32 stops counting at 2**24."""
    n = 20_000_000
    model = with_responsibilities(lda("collapsed", 1, np.full(1, 0.1)))
    state = State.resume(model, np.zeros(model.shape, np.float32), 1, 1, n)
    state.shared.value_memory[:, 0] = 65535
    total = sum_of(state)
    items = as_items([0, n], np.zeros(n, np.int32), np.ones(n), total.model.real)
    fit(total, items, schedule=constant(0.5), batch_size=1, n_passes=1, seed=0)
    assert total.shared.rows[0, 0] / UNIT == n


# --- inference with the topics held fixed ------------------------------------------------------


@pytest.mark.parametrize("digamma", [False, True])
@pytest.mark.parametrize("n_sweeps", [1, 5, 100])
def test_infer(corpus, lam, digamma, n_sweeps):
    kind = "mean_field" if digamma else "collapsed"
    basis = np.exp(expected_log(lam)) if digamma else normalised(lam.astype(np.float64))
    chosen = corpus.select(slice(0, 50))
    gamma = infer_documents(
        np.ascontiguousarray(basis.T, np.float32), ALPHA.astype(np.float32), items_of(chosen),
        digamma=digamma, tol=1e-3, n_sweeps=n_sweeps,
    )  # fmt: skip
    for d, (ids, counts) in enumerate(documents_of(chosen)):
        expected = infer(kind, ids, counts, lam, ALPHA, n_sweeps, tol=1e-3)
        np.testing.assert_allclose(gamma[d], expected, rtol=1e-3, atol=5e-3)


@pytest.mark.parametrize("n_padding", [0, 3])
def test_explain_documents(corpus, lam, rng, n_padding):
    """At any gamma, that of no document, too small for float32 in some topics."""
    basis, chosen = np.exp(expected_log(lam)).T.astype(np.float32), corpus.select(slice(0, 50))
    gamma = rng.gamma(0.05, 50, (50, K)).astype(np.float32) + np.float32(1e-12)
    found = explain_documents(
        *(np.pad(x, ((0, 0), (0, n_padding))) for x in (basis, gamma)), items_of(chosen)
    )
    for (ids, counts), own, norm in zip(documents_of(chosen), gamma, found, strict=True):
        expected = counts @ logsumexp(psi(own.astype(float)) + np.log(basis[ids].astype(float)), 1)
        assert norm == pytest.approx(expected, rel=1e-12)


def test_infer_ignores_the_other_documents_and_the_number_of_threads(corpus, lam):
    basis = np.ascontiguousarray(normalised(lam).T, np.float32)
    alpha = ALPHA.astype(np.float32)
    settings = dict(digamma=False, tol=1e-3, n_sweeps=50)
    all_at_once = infer_documents(basis, alpha, items_of(corpus), **settings)
    threads = infer_documents(basis, alpha, items_of(corpus), n_jobs=3, **settings)
    assert np.array_equal(all_at_once, threads)
    for d in (0, 199, 399):
        alone = infer_documents(basis, alpha, items_of(corpus.select([d])), **settings)
        assert np.array_equal(alone[0], all_at_once[d])


def test_infer_of_documents_without_tokens(lam):
    corpus = make_corpus([[], [(2, 0.0), (3, 0.0)], [(2, 1.0)], []], lam.shape[1])
    basis = np.ascontiguousarray(normalised(lam).T, np.float32)
    gamma = infer_documents(
        basis, ALPHA.astype(np.float32), items_of(corpus), digamma=True, tol=1e-3, n_sweeps=50
    )
    log_norm = explain_documents(basis, gamma, items_of(corpus))
    for d in (0, 1, 3):
        np.testing.assert_allclose(gamma[d], ALPHA, rtol=1e-6)
        assert log_norm[d] == 0
    assert np.all(np.isfinite(gamma)) and gamma[2].sum() == pytest.approx(ALPHA.sum() + 1)
