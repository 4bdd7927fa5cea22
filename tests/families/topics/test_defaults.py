"""What follows from the size of a corpus: batches, step sizes, first topics."""

import numpy as np
import pytest
from reference.lda import TopicCorpus

from dpsvi import DPSVIHDP, DPSVILDA, as_corpus
from dpsvi.families.topics.defaults import default_alpha
from dpsvi.families.topics.matrix import first_rows, split_documents
from dpsvi.kernels.fold import options_of
from dpsvi.models.hdp import estimator as hdp
from dpsvi.models.hdp.options import options_of as hdp_options
from dpsvi.models.lda import estimator as lda
from dpsvi.training.schedules import averaged_from, constant, robbins_monro

ALL = [*lda.DEFAULTS.values(), *hdp.DEFAULTS.values()]


@pytest.mark.parametrize("defaults", ALL)
def test_priors_weigh_the_same_whatever_the_number_of_topics(defaults):
    """But where the model itself empties the topics that it does not need."""
    for n_topics in (10, 20, 1000):
        if defaults.word_prior:
            assert defaults.eta(n_topics) == defaults.word_prior
        else:
            assert defaults.eta(n_topics) * n_topics == pytest.approx(defaults.word_tokens)
        assert default_alpha(n_topics) * n_topics == pytest.approx(5.0)
    assert default_alpha(2) == 0.5


@pytest.mark.parametrize("defaults", ALL)
def test_a_pass_has_many_steps_of_few_documents(defaults):
    sizes = [defaults.batch_size(n) for n in (1, 10, 300, 3000, 30_000, 10**7)]
    assert sizes[0] == 4 and sizes[-1] == defaults.most and np.all(np.diff(sizes) >= 0)
    middle = 20 * defaults.steps
    assert middle // defaults.batch_size(middle) >= defaults.steps


@pytest.mark.parametrize("rate", [1.0, 0.3])
@pytest.mark.parametrize("first", [0, 500])
@pytest.mark.parametrize("n_passes", [1, 2, 10, 100])
@pytest.mark.parametrize("steps", [1, 40, 3000])
@pytest.mark.parametrize(("document_tokens", "longer"), [(200, 1), (15, 2), (5, 3)])
@pytest.mark.parametrize("defaults", ALL)
def test_schedule(defaults, document_tokens, longer, steps, n_passes, first, rate):
    """It falls to the rate that remembers `memory` passes, then averages over the last third."""
    schedule = defaults.schedule(4.0, rate, first, steps, n_passes, document_tokens)
    t = first + np.arange(steps * n_passes)
    rho = schedule(t)
    assert np.all((rho > 0) & (rho <= 1)) and np.all(np.diff(rho) <= 1e-15)
    turn = (2 * n_passes * steps) // 3
    memory = max(defaults.memory, longer * defaults.memory_share * n_passes)
    assert np.all(rho[:turn] >= min(0.3, rate / (memory * steps)) - 1e-15)
    np.testing.assert_allclose(np.diff(1 / rho[turn:]), 1, rtol=1e-6)
    assert float(schedule(t[-1:])[0]) == rho[-1]


def test_rates_of_an_average_give_all_estimates_the_same_weight():
    turn, n = 7, 60
    schedule = averaged_from(robbins_monro(1.0, 0.6), turn)
    weights = np.zeros(n)  # of the estimate of each step in the parameters
    for t, rho in enumerate(schedule(np.arange(n))):
        weights *= 1 - rho
        weights[t] += rho
    np.testing.assert_allclose(weights[turn:], weights[-1], rtol=1e-12)
    assert weights.sum() == pytest.approx(1) and weights[turn:].sum() > 0.9
    flat = averaged_from(constant(0.25), 0)(np.arange(3))
    np.testing.assert_allclose(flat, [1 / 4, 1 / 5, 1 / 6])


@pytest.mark.parametrize("total", [1, 3])
def test_first_topics_are_made_of_whole_documents(corpus, total):
    n_topics, n_items = 30, total * corpus.n_items
    rows = first_rows(corpus.n_features, n_topics, np.random.default_rng(0))
    padding = rows.shape[1] - n_topics
    split_documents(rows, corpus, n_topics, np.random.default_rng(1), n_items)
    tokens = np.bincount(corpus.index, corpus.value, corpus.n_features)
    assert rows.sum(dtype=float) == pytest.approx(total * tokens.sum(), rel=0.02)
    assert padding and np.all(rows[:, n_topics:] == 0)
    np.testing.assert_allclose(
        rows.sum(axis=1), total * (0.8 * tokens + 0.2 * tokens.mean()), rtol=0.05
    )
    alone = as_corpus(np.eye(3, 40, dtype=int) * 8)
    rows = first_rows(40, n_topics, np.random.default_rng(0))
    split_documents(rows, alone, n_topics, np.random.default_rng(1), 3)
    for word in range(3):
        found = np.sort(rows[word])[::-1]
        assert found[:4].sum() > 0.75 * 8 and found[4] < 0.1, "a document has a few topics"


@pytest.mark.parametrize("kind", ["collapsed", "mean_field"])
def test_nothing_breaks_with_more_topics_than_tokens_in_documents(kind, rng):
    """All defaults, K = 300, five tokens a document: exp(psi(x)) of the priors underflows."""
    X = rng.multinomial(5, np.full(400, 1 / 400), 500)
    model = DPSVILDA(300, local_step=kind, max_iter=3, random_state=0).fit(X)
    assert np.all(np.isfinite(model.components_))
    np.testing.assert_allclose(model.transform(X[:20]).sum(axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize(
    ("kind", "n_tokens", "share"),
    [
        ("collapsed", 6, 0.9),
        ("collapsed", 60, 0.6),
        ("mean_field", 6, 1.02),
        ("mean_field", 60, 0.6),
    ],
)
def test_more_passes_do_not_hurt(kind, n_tokens, share):
    """Perplexity after 3, 10 and 30 passes: never 2 % above the best before, and it falls.

    It falls below that of counting words; with mean field and so short documents only to it.
    """
    drawn = TopicCorpus(20, 500, n_documents=2200, n_tokens=n_tokens, alpha=0.05, seed=3)
    corpus = drawn.corpus()
    train, test = corpus.select(slice(0, 2000)), corpus.select(slice(2000, None))
    found = []
    for passes in (3, 10, 30):
        model = DPSVILDA(20, local_step=kind, max_iter=passes, random_state=0).fit(train)
        found.append(model.evaluate(test))
    perplexity = np.array([result.perplexity for result in found])
    assert np.all(perplexity[1:] < 1.02 * np.minimum.accumulate(perplexity)[:-1])
    assert perplexity[-1] < share * found[0].unigram_perplexity


@pytest.mark.parametrize("tokens", [1, 6, 60, 3000])
@pytest.mark.parametrize("n_items", [1, 7, 100, 129, 5000])
@pytest.mark.parametrize("defaults", ALL)
def test_steps_of_a_stream_are_of_about_the_same_size(defaults, n_items, tokens):
    for n_seen in (n_items, 10 * n_items, 10**6):
        size = defaults.stream_batch_size(n_items, n_seen, tokens)
        assert 1 <= size <= defaults.most
        n_steps = -(-n_items // size)
        last = n_items - (n_steps - 1) * size
        assert last > size - n_steps, "the documents of a short step would have more say"


def test_steps_of_a_stream_grow():
    collapsed = lda.DEFAULTS["collapsed"]
    assert collapsed.stream_batch_size(100_000, 100_000, 100) == 64
    assert 7 <= collapsed.stream_batch_size(1000, 1000, 100) <= 8
    assert collapsed.stream_batch_size(1000, 1000, 5) == 30, "of 150 tokens"
    assert collapsed.stream_batch_size(1000, 1000, 0.1) <= 64


def test_a_stream_stands_for_what_was_seen():
    collapsed = lda.DEFAULTS["collapsed"]
    assert collapsed.stream_total(10_000, 100.0, 5000) == 10_000
    assert collapsed.stream_total(10, 100.0, 5000) * 100 == 2 * collapsed.word_tokens * 5000


@pytest.mark.parametrize("rate", [1.0, 0.3])
@pytest.mark.parametrize("before", [0, 5000])
def test_rates_of_a_stream(rate, before):
    """They fall as usual, and never forget more than two thirds of the stream."""
    first, t = 300, 300 + np.arange(2000)
    rho = lda.DEFAULTS["collapsed"].stream_schedule(4.0, rate, first, 10, before)(t)
    usual = robbins_monro(4.0, 0.7, rate)(t)
    seen = before + 10 * (t - first + 1)
    np.testing.assert_allclose(rho, np.minimum(usual, 3 * rate * 10 / seen))
    mean_field = lda.DEFAULTS["mean_field"].stream_schedule(4.0, rate, first, 10, before)(t)
    np.testing.assert_array_equal(mean_field, usual)


@pytest.mark.parametrize(("kind", "in_a_fit", "in_a_stream"), [("collapsed", 7, 14),
                                                               ("mean_field", 50, 50)])  # fmt: skip
def test_documents_of_a_stream_are_explained_longer(kind, in_a_fit, in_a_stream, rng):
    """They are met once; what the user says counts in both."""
    X = rng.poisson(1.0, size=(30, 20))

    def most_sweeps(model):
        return options_of(model._state.model.hyper, model._state.model.shape[1]).n_sweeps

    model = DPSVILDA(80, local_step=kind, max_iter=1, random_state=0)
    assert most_sweeps(model.partial_fit(X)) == in_a_stream
    assert most_sweeps(model.partial_fit(X)) == in_a_stream
    assert most_sweeps(model.fit(X)) == in_a_fit
    model.set_params(max_doc_update_iter=3)
    assert most_sweeps(model.fit(X)) == 3 and most_sweeps(model.partial_fit(X)) == 3


@pytest.mark.parametrize(("topics", "sweeps"), [(2, 14), (5, 14), (8, 9), (10, 7), (40, 7)])
def test_documents_are_explained_longer_by_topics_with_many_tokens(topics, sweeps):
    """10 tokens in each of 50 documents, of 100 words, and of one that none of them has."""
    X = np.c_[np.eye(100)[np.arange(500) % 100].reshape(50, 10, 100).sum(axis=1), np.zeros(50)]
    lda = DPSVILDA(topics, max_iter=1, random_state=0).fit(X)
    assert options_of(lda._state.model.hyper, lda._state.model.shape[1]).n_sweeps == sweeps


@pytest.mark.parametrize(("tokens", "collapsed"), [(100, 7), (150, 7), (240, 11), (300, 14),
                                                   (5000, 14)])  # fmt: skip
def test_long_documents_are_explained_longer(tokens, collapsed, tmp_path):
    """Where words say much of a document; a model that is loaded has as many as when it was fit."""
    X = np.full((2, 1000), tokens / 1000)  # of so many words that topics know little

    def most_sweeps(model):
        options = hdp_options if isinstance(model, DPSVIHDP) else options_of
        return options(model._state.model.hyper, model._state.model.shape[1]).n_sweeps

    for model, expected in (
        (DPSVILDA(3), collapsed), (DPSVIHDP(3), collapsed), (DPSVILDA(3, local_step="sparse"), 20),
        (DPSVILDA(3, local_step="mean_field"), 50), (DPSVILDA(3, max_doc_update_iter=3), 3),
    ):  # fmt: skip
        model.set_params(max_iter=1, random_state=0).fit(X).save(tmp_path)
        assert most_sweeps(model) == most_sweeps(type(model).load(tmp_path)) == expected
