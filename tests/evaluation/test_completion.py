"""Document completion and the bound: independent of how many documents are tested."""

import time

import numpy as np
import pytest
from reference.lda import (
    TopicCorpus,
    completion,
    document_bound,
    documents_of,
    expected_log,
    log_evidence,
    normalised,
)
from reference.lda import infer as slow_infer
from reference.lda import local_step as slow_local_step

from dpsvi import DPSVILDA
from dpsvi.corpus import Corpus
from dpsvi.evaluation import completion as document_completion
from dpsvi.evaluation.completion import completion_perplexity, split_tokens

ALPHA = 0.1


def halves(corpus, seed):
    first, second = split_tokens(corpus.value, seed)
    parts = [
        Corpus(corpus.offsets, corpus.index, half, corpus.n_features) for half in (first, second)
    ]
    return [documents_of(part) for part in parts]


def few_words(*documents, n_words=4):
    """A corpus of documents given as dense rows."""
    return Corpus.from_csr(_csr(np.array(documents, np.float32).reshape(-1, n_words)))


def _csr(dense):
    from scipy.sparse import csr_array

    return csr_array(dense)


# --- the split ---------------------------------------------------------------------------------


def test_split(rng):
    value = rng.poisson(3.0, 20_000).astype(np.float32)
    first, second = split_tokens(value, seed=1)
    assert np.array_equal(first + second, value)
    assert np.array_equal(second, np.round(second)) and np.all(second >= 0) and np.all(first >= 0)
    deviation = np.sqrt(value.sum()) / 2
    assert abs(second.sum() - value.sum() / 2) < 4 * deviation
    ones = second[value == 1]
    assert 0.4 < ones.mean() < 0.6, "a single token may go to either half"
    assert np.array_equal(split_tokens(value, seed=1)[1], second)
    assert not np.array_equal(split_tokens(value, seed=2)[1], second)


def test_split_of_fractions():
    value = np.full(1000, 2.75, np.float32)
    first, second = split_tokens(value, seed=0)
    np.testing.assert_allclose(first + second, value)
    assert np.all(first >= 0) and np.all(second >= 0) and 0 < second.sum() < value.sum()


# --- document completion -----------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.1, 2.0])
@pytest.mark.parametrize("seed", [0, 5])
def test_completion_against_the_reference(known, alpha, seed):
    corpus = known.corpus().select(slice(0, 100))
    log_likelihood, n_tokens = completion(*halves(corpus, seed), known.topics, alpha)
    result = completion_perplexity(known.topics.T, corpus, alpha, seed=seed)
    expected = log_likelihood.sum() / n_tokens.sum()
    assert result.log_likelihood == pytest.approx(expected, abs=2e-4)
    assert result.perplexity == pytest.approx(np.exp(-result.log_likelihood), rel=1e-12)
    assert result.n_tokens == n_tokens.sum()


def test_completion_takes_a_prior_for_each_topic(known):
    corpus = known.corpus().select(slice(0, 50))
    alpha = np.array([5.0, 0.01, 0.3, 0.3, 1.0])
    log_likelihood, n_tokens = completion(*halves(corpus, 0), known.topics, alpha)
    result = completion_perplexity(known.topics.T, corpus, alpha)
    assert result.log_likelihood == pytest.approx(log_likelihood.sum() / n_tokens.sum(), abs=2e-4)


def test_threads_do_not_change_the_result(known, corpus):
    one, three = (
        completion_perplexity(known.topics.T, corpus, ALPHA, n_jobs=n_jobs) for n_jobs in (1, 3)
    )
    assert one == three


@pytest.fixture(scope="module")
def large():
    return TopicCorpus(5, n_words=150, n_documents=6000, n_tokens=80, alpha=ALPHA, seed=4)


@pytest.mark.parametrize("n", [5, 20, 100, 400])
def test_the_number_of_test_documents_changes_the_noise_only(large, n):
    """No term of the corpus is divided by the test size: the mean of many such sets is the same."""
    corpus = large.corpus()
    everything = completion_perplexity(large.topics.T, corpus, ALPHA, seed=0).log_likelihood
    sets = [
        completion_perplexity(
            large.topics.T, corpus.select(slice(i * n, (i + 1) * n)), ALPHA, seed=i
        ).log_likelihood
        for i in range(15)
    ]
    standard_error = np.std(sets, ddof=1) / np.sqrt(len(sets))
    assert abs(np.mean(sets) - everything) < 4 * standard_error
    # and one set is as far off as its own documents say
    log_likelihood, tokens = completion(*halves(corpus.select(slice(0, n)), 0), large.topics, ALPHA)
    residual = log_likelihood - tokens * log_likelihood.sum() / tokens.sum()
    of_one_set = np.sqrt((residual**2).sum() * n / (n - 1)) / tokens.sum()
    assert abs(sets[0] - everything) < 4 * of_one_set


def test_unigram_baseline(known, corpus):
    """Add-one frequencies of the training corpus, on the tokens that are predicted."""
    counts = np.arange(known.n_words) % 7
    result = completion_perplexity(known.topics.T, corpus, ALPHA, word_counts=counts)
    frequency = (counts + 1) / (counts + 1).sum()
    _, second = split_tokens(corpus.value, 0)
    expected = np.exp(-(second @ np.log(frequency[corpus.index])) / second.sum())
    assert result.unigram_perplexity == pytest.approx(expected, rel=1e-6)
    marginal = completion_perplexity(known.topics.T, corpus, ALPHA)
    frequency = known.topics.mean(axis=0)
    expected = np.exp(-(second @ np.log(frequency[corpus.index])) / second.sum())
    assert marginal.unigram_perplexity == pytest.approx(expected, rel=1e-5)


def test_one_topic_is_the_unigram_model(known, corpus):
    counts = np.bincount(corpus.index, weights=corpus.value, minlength=known.n_words)
    topic = ((counts + 1) / (counts + 1).sum())[:, None]
    result = completion_perplexity(topic, corpus, ALPHA, word_counts=counts)
    assert result.perplexity == pytest.approx(result.unigram_perplexity, rel=1e-5)


def test_uniform_topics_are_as_good_as_guessing(corpus):
    topics = np.full((corpus.n_features, 3), 1 / corpus.n_features)
    result = completion_perplexity(topics, corpus, ALPHA)
    assert result.perplexity == pytest.approx(corpus.n_features, rel=1e-5)


def test_documents_without_tokens_to_see_or_to_predict(known):
    corpus = known.corpus().select(slice(0, 30))
    empty = Corpus(
        np.concatenate([corpus.offsets, np.full(3, corpus.nnz)]), corpus.index, corpus.value,
        corpus.n_features,
    )  # fmt: skip
    assert completion_perplexity(known.topics.T, empty, ALPHA) == pytest.approx(
        completion_perplexity(known.topics.T, corpus, ALPHA), rel=1e-12
    )


def test_a_document_seen_not_at_all_is_predicted_by_the_prior_mean():
    """Single tokens: whatever goes to the second half leaves nothing in the first."""
    corpus = few_words(*np.eye(4)[[0, 1, 2, 3] * 10])
    topics = np.array([[0.4, 0.3, 0.2, 0.1], [0.1, 0.1, 0.1, 0.7]]).T
    alpha = np.array([3.0, 1.0])
    result = completion_perplexity(topics, corpus, alpha)
    _, second = split_tokens(corpus.value, 0)
    mean = topics @ (alpha / alpha.sum())
    expected = second @ np.log(mean[corpus.index]) / second.sum()
    assert result.log_likelihood == pytest.approx(expected, rel=1e-6)


def test_a_word_that_no_topic_emits_is_no_nan():
    """The model gives it probability 0, and says so, or the topics are refused."""
    topics = np.array([[0.5, 0.5, 0.0, 0.0], [0.2, 0.8, 0.0, 0.0]]).T
    corpus = few_words([4, 4, 20, 0], [5, 5, 0, 0])
    try:
        result = completion_perplexity(topics, corpus, ALPHA)
    except ValueError as error:
        assert "word" in str(error)
    else:
        assert result.perplexity == np.inf and result.log_likelihood == -np.inf


TOPICS = np.full((4, 2), 0.25)
REFUSED = {
    "too few words": (TOPICS[:3], [[1, 2, 3, 4]], "4 words.*shape.*3, 2"),
    "transposed": (TOPICS.T, [[1, 2, 3, 4]], "4 words.*shape.*2, 4"),
    "one dimension": (TOPICS[:, 0], [[1, 2, 3, 4]], "shape.*4,"),
    "not normalised": (2 * TOPICS, [[1, 2, 3, 4]], "sum to 1.*2"),
    "nan": (np.full((4, 2), np.nan), [[1, 2, 3, 4]], "sum to 1.*nan"),
    "negative": (TOPICS + [[-1, 0], [1, 0], [0, 0], [0, 0]], [[1, 2, 3, 4]], "-0.75"),
    "nothing to predict": (TOPICS, [[0, 0, 0, 0]], "no token"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    topics, documents, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        completion_perplexity(topics, few_words(*documents), ALPHA)


@pytest.mark.parametrize("alpha", [0.0, -1.0, np.nan, np.inf, [0.1, 0.0], [0.1, 0.1, 0.1]])
def test_refused_priors(alpha):
    with pytest.raises(ValueError, match="doc_topic_prior|shape"):
        completion_perplexity(TOPICS, few_words([1, 2, 3, 4]), alpha)


# --- the bound ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted():
    """A model of few topics over few words, and documents it has not seen."""
    drawn = TopicCorpus(3, n_words=12, n_documents=330, n_tokens=15, alpha=0.4, seed=2)
    corpus = drawn.corpus()
    model = DPSVILDA(
        3, doc_topic_prior=0.4, topic_word_prior=0.3, local_step="mean_field", random_state=0
    )
    return model.fit(corpus.select(slice(0, 300))), corpus.select(slice(300, 330))


def slow_gammas(model, corpus):
    lam = model.components_.astype(np.float64)
    alpha = model.doc_topic_prior_
    return (
        lam,
        alpha,
        [
            slow_infer("mean_field", *d, lam, alpha, n_sweeps=100, tol=1e-3)
            for d in documents_of(corpus)
        ],
    )


def test_bound_against_the_reference(fitted):
    model, corpus = fitted
    lam, alpha, gammas = slow_gammas(model, corpus)
    bounds = [
        document_bound(*document, gamma, lam, alpha)
        for document, gamma in zip(documents_of(corpus), gammas, strict=True)
    ]
    expected = np.exp(-np.sum(bounds) / corpus.n_tokens)
    assert model.perplexity(corpus, kind="bound") == pytest.approx(expected, rel=1e-6)


def test_bound_of_each_document_is_below_its_evidence(fitted):
    """log p(document) under exp(E log beta), and under E beta, by importance sampling."""
    model, corpus = fitted
    rng = np.random.default_rng(0)
    lam, alpha, gammas = slow_gammas(model, corpus)
    gaps = []
    for d, (document, gamma) in enumerate(zip(documents_of(corpus), gammas, strict=True)):
        bound = -np.log(model.perplexity(corpus.select([d]), kind="bound")) * document[1].sum()
        geometric, error = log_evidence(
            *document, np.exp(expected_log(lam)), alpha, gamma, 20_000, rng
        )
        mean, other = log_evidence(*document, normalised(lam), alpha, gamma, 20_000, rng)
        assert bound < geometric + 4 * error + 1e-3
        assert bound < mean + 4 * other
        gaps.append(geometric - bound)
    assert np.mean(gaps) < 2.0, "and not far below"


def test_bound_does_not_depend_on_the_other_documents(fitted):
    model, corpus = fitted
    tokens = np.add.reduceat(corpus.value, corpus.offsets[:-1])
    each = [
        tokens[d] * np.log(model.perplexity(corpus.select([d]), kind="bound"))
        for d in range(corpus.n_items)
    ]
    together = np.log(model.perplexity(corpus, kind="bound")) * tokens.sum()
    assert together == pytest.approx(np.sum(each), rel=1e-5)


@pytest.mark.filterwarnings("ignore::dpsvi.errors.CorpusWarning")
@pytest.mark.parametrize("empty_at", [0, 7, -1])
def test_empty_documents_add_nothing_to_the_bound(fitted, empty_at):
    model, corpus = fitted
    X = corpus.to_csr().toarray()
    with_empty = np.insert(X, empty_at if empty_at >= 0 else len(X), 0, axis=0)
    assert model.perplexity(with_empty, kind="bound") == pytest.approx(
        model.perplexity(X, kind="bound"), rel=1e-6
    )


@pytest.mark.parametrize("eta", [0.3, 0.01, 1e-3])
def test_bound_of_words_never_seen_in_training(eta):
    """Perplexity A is an upper bound for them too: psi(eta) is far below psi of a count."""
    X = TopicCorpus(3, n_words=12, n_documents=200, n_tokens=15, alpha=0.4, seed=2).counts
    X[:, 11] = 0
    model = DPSVILDA(
        3, doc_topic_prior=0.4, topic_word_prior=eta, local_step="mean_field", random_state=0,
        learning_rate=1.0, batch_size=200,
    ).fit(X)  # fmt: skip
    assert model.components_[:, 11] == pytest.approx(eta, rel=1e-3), "nothing but the prior"
    lam, alpha = model.components_.astype(np.float64), 0.4
    document = np.array([0, 11]), np.array([3.0, 1.0])
    gamma, _ = slow_local_step("mean_field", *document, lam, alpha, n_sweeps=100, tol=1e-3)
    row = np.zeros((1, 12))
    row[0, [0, 11]] = 3, 1
    expected = -document_bound(*document, gamma, lam, alpha) / 4
    assert np.log(model.perplexity(row, kind="bound")) == pytest.approx(expected, rel=1e-6)


def test_bound_attribute_is_that_of_the_training_documents(fitted):
    model, _ = fitted
    drawn = TopicCorpus(3, n_words=12, n_documents=330, n_tokens=15, alpha=0.4, seed=2)
    train = drawn.corpus().select(slice(0, 300))
    assert model.bound_ == pytest.approx(model.perplexity(train, kind="bound"), rel=1e-6)


# --- proportions of documents --------------------------------------------------------------------


@pytest.fixture(scope="module")
def asked(known):
    corpus = known.corpus()
    model = DPSVILDA(5, doc_topic_prior=0.1, max_iter=3, random_state=0).fit(corpus)
    return model, corpus


def fixed_point(topics, alpha, ids, counts, n_sweeps=3000):
    """EM for the proportions of a document, one sweep after the other."""
    gamma = np.full(len(topics), alpha + counts.sum() / len(topics))
    for _ in range(n_sweeps):
        phi = gamma[:, None] * topics[:, ids]
        gamma = alpha + phi / phi.sum(axis=0) @ counts
    return gamma / gamma.sum()


def test_transform_finds_the_fixed_point(asked):
    """It leaps ahead, and ends where small steps end."""
    model, corpus = asked
    topics = model.components_.astype(np.float64)
    topics /= topics.sum(axis=1, keepdims=True)
    found = model.transform(corpus)
    for d, (ids, counts) in enumerate(documents_of(corpus)[:60]):
        expected = fixed_point(topics, 0.1, ids, counts)
        np.testing.assert_allclose(found[d], expected, atol=3e-3)


@pytest.mark.parametrize("rows", [[3], [7, 2], list(range(50, 90))])
def test_transform_reads_the_words_that_are_asked_for(asked, rows):
    """Whatever other words the corpus has: rows are the same in any company."""
    model, corpus = asked
    np.testing.assert_allclose(
        model.transform(corpus.select(np.array(rows))), model.transform(corpus)[rows], rtol=1e-5
    )


def test_transform_of_nothing(asked):
    model, corpus = asked
    empty = few_words(*np.zeros((2, corpus.n_features)), n_words=corpus.n_features)
    np.testing.assert_allclose(model.transform(empty), 1 / 5)


def test_a_part_that_fails_ends_all():
    begun = []

    def fail(first, last):
        begun.append(first)
        time.sleep(0.001)
        raise RuntimeError("this part")

    with pytest.raises(RuntimeError, match="this part"):
        document_completion._over_items(8000, 2, fail, most=1)
    assert len(begun) < 4000


def test_the_true_uneven_prior_of_short_documents_helps(rng):
    """Its smallest entries are .001: exp(psi) of them must not choose topics before words do."""
    drawn = TopicCorpus(60, 300, 4000, 6, 0.1, 0)
    alpha = rng.permutation(np.geomspace(0.001, 0.05, 60))
    theta = rng.dirichlet(alpha, 2000)
    counts = rng.multinomial(6, theta @ drawn.topics)
    corpus = few_words(*counts, n_words=300)
    topics = drawn.topics.T.astype(np.float32)
    even = completion_perplexity(topics, corpus, alpha.mean()).perplexity
    assert completion_perplexity(topics, corpus, alpha).perplexity < 0.98 * even
