"""DPSVIHDP: topics and their number are found; the rules that all estimators keep to."""

import warnings

import members
import numpy as np
import pytest
from members.lda import degenerate
from reference.hdp import mean_weights
from reference.lda import TopicCorpus, normalised
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from sklearn.utils.estimator_checks import parametrize_with_checks

import dpsvi
from dpsvi import DPSVIHDP, DPSVILDA, VirtualCluster, as_corpus

pytestmark = pytest.mark.filterwarnings("ignore::dpsvi.errors.CorpusWarning")
KINDS = ["collapsed", "mean_field"]
both = pytest.mark.parametrize("kind", KINDS)


def make(kind="collapsed", **options):
    defaults = dict(
        n_components=8, doc_truncation=5, local_step=kind, batch_size=32, max_iter=3,
        random_state=0,
    )  # fmt: skip
    return DPSVIHDP(**(defaults | options))


def same(a, b):
    return np.array_equal(a.components_, b.components_) and np.array_equal(a.tables_, b.tables_)


@parametrize_with_checks([make("mean_field")])
def test_scikit_learn(estimator, check):
    check(estimator)


# --- it learns ---------------------------------------------------------------------------------


def drawn_of(n_topics, n_words, n_documents, n_tokens):
    """The truth, training and test documents."""
    drawn = TopicCorpus(n_topics, n_words, n_documents + 300, n_tokens, alpha=0.1, seed=0)
    corpus = drawn.corpus()
    return (
        drawn, corpus.select(slice(0, n_documents)), corpus.select(slice(n_documents, None))
    )  # fmt: skip


@pytest.fixture(scope="module", params=[(5, 150, 400, 80), (8, 300, 1000, 100)], ids=str)
def planted(request):
    """See :func:`drawn_of`."""
    return drawn_of(*request.param)


@pytest.mark.slow
def test_planted_topics_and_their_number_are_found(planted):
    """Mean field, from 30 topics; the best of two starts, by held-out score."""
    drawn, train, test = planted
    models = [
        DPSVIHDP(30, local_step="mean_field", max_iter=20, random_state=seed).fit(train)
        for seed in range(2)
    ]
    best = max(models, key=lambda model: model.score(test))
    n_topics = len(drawn.topics)
    assert best.n_topics_active_ == n_topics
    found = normalised(best.components_[:n_topics].astype(float))
    distances = cdist(found, drawn.topics, "cityblock") / 2
    assert distances[linear_sum_assignment(distances)].max() < 0.12
    peer = DPSVILDA(n_topics, max_iter=20, random_state=0).fit(train)
    # LDA knows the number; a concentration is learned if it gains 1.5 % or more.
    assert best.perplexity(test) < 1.015 * peer.perplexity(test)


def test_mean_field_of_titles():
    """Of six words: tables have tokens, some topics have tables, and they know more than one."""
    corpus = TopicCorpus(10, 200, 2200, n_tokens=6, alpha=0.05, seed=0).corpus()
    train, test = corpus.select(slice(0, 2000)), corpus.select(slice(2000, None))
    model, one = (
        DPSVIHDP(n_topics, local_step="mean_field", random_state=0).fit(train)
        for n_topics in (150, 1)
    )
    tokens = train.value.sum()
    assert len(train) < model.tables_.sum() < 0.7 * tokens
    assert 8 <= model.n_topics_active_ <= 40
    assert model.score(test) > one.score(test) + 0.2


@pytest.mark.parametrize("size", [(5, 150, 1000, 80), (8, 300, 1000, 100)], ids=str)
def test_collapsed_is_no_worse_than_lda_of_the_same_size(size):
    """With the same eta: what each learns of it depends on how it divides the topics.

    Where documents are fewer, topics that nobody needs stay longer than those of LDA.
    """
    _, train, test = drawn_of(*size)
    model, peer = (
        np.mean([
            estimator(30, topic_word_prior=None, max_iter=20, random_state=seed)
            .fit(train).perplexity(test) for seed in range(4)
        ])
        for estimator in (DPSVIHDP, DPSVILDA)
    )  # fmt: skip
    assert model < 1.005 * peer, "it has the same local step"


@both
def test_the_most_frequent_topic_comes_first(kind, rng):
    drawn = TopicCorpus(3, n_words=80, n_documents=1, n_tokens=1, alpha=1.0, seed=6)
    theta = rng.dirichlet([1.2, 0.6, 0.3], 600)
    counts = rng.multinomial(80, theta @ drawn.topics)
    model = make(kind, n_components=3, max_iter=15).fit(counts)
    found = normalised(model.components_.astype(float))
    _, match = linear_sum_assignment(cdist(drawn.topics, found, "cityblock"))
    assert match[0] == 0


@both
def test_attributes(X, kind):
    model = make(kind).fit(X)
    assert model.components_.shape == model.exp_dirichlet_component_.shape == (8, 60)
    assert np.all(model.components_ >= np.float32(model.topic_word_prior_))
    assert np.all(np.diff(model.tables_) <= 0) and model.tables_.shape == (8,)
    np.testing.assert_allclose(model.topic_weights_, mean_weights(model.tables_, 1.0))
    np.testing.assert_allclose(
        model.doc_topic_prior_, model.doc_concentration_ * model.topic_weights_
    )
    assert model.topic_weights_.sum() == pytest.approx(1)
    assert 1 <= model.n_topics_active_ <= 8 and isinstance(model.n_topics_active_, int)
    assert 1 < model.bound_ < 100 and model.n_iter_ == 3 and model.n_batch_iter_ == 30
    tokens = (model.components_ - model.topic_word_prior_).sum()
    assert tokens == pytest.approx(X.sum(), rel=0.1)
    if kind == "mean_field":
        assert X.shape[0] < model.tables_.sum() < 5 * X.shape[0], "at most 5 in a document"
    assert [len(words) for words in model.top_words(4)] == [4] * 8
    for name in ("components_", "tables_", "n_topics_active_", "doc_concentration_"):
        assert not hasattr(DPSVIHDP(), name)


def test_concentrations(X):
    """Fixed ones stay; documents of many topics learn a larger alpha_0 than those of few."""
    model = make(doc_concentration=3, topic_concentration=5.0, topic_word_prior=0.07).fit(X)
    assert model.doc_concentration_ == 3.0
    assert model.topic_word_prior_ == pytest.approx(0.07, rel=1e-6)
    learned = [
        DPSVIHDP(30, max_iter=15, random_state=0)
        .fit(TopicCorpus(20, 300, 1500, 40, alpha=alpha, seed=5).counts)
        .doc_concentration_
        for alpha in (0.002, 5.0)
    ]
    assert learned[1] > 2 * learned[0]


# --- engines -----------------------------------------------------------------------------------


def test_engines_with_one_thread_give_the_same_bits(X):
    serial = make("mean_field", engine="serial").fit(X)
    for more in (
        dict(engine="threads"),
        dict(engine="mpi"),
        dict(engine="simulated", cluster=VirtualCluster(n_workers=1, timing=members.SECOND)),
    ):
        assert same(make("mean_field", **more).fit(X), serial), more


@both
@members.several_at_once
def test_several_threads_and_workers_fit_as_well(corpus, kind, more):
    """The row that all steps change reaches all of them."""
    settings = dict(max_iter=8, batch_size=16)
    serial, first = make(kind, **settings).fit(corpus), make(kind, max_iter=0).fit(corpus)
    other = make(kind, **settings, **more).fit(corpus)
    gained = serial.score(corpus) - first.score(corpus)
    assert gained > 0.1 and other.score(corpus) > serial.score(corpus) - 0.2 * gained
    assert other.tables_.sum() == pytest.approx(serial.tables_.sum(), rel=0.5)


# --- going on ----------------------------------------------------------------------------------


@both
def test_save_and_load(X, kind, tmp_path):
    model = make(kind).fit(as_corpus(X, [f"w{i}" for i in range(60)]))
    model.save(tmp_path)
    loaded = dpsvi.load(tmp_path)
    assert same(loaded, model) and loaded.evaluate(X) == model.evaluate(X)
    assert np.array_equal(loaded.transform(X), model.transform(X))
    for name in (
        "doc_concentration_", "topic_word_prior_", "n_topics_active_", "bound_", "n_iter_",
        "vocabulary_",
    ):  # fmt: skip
        assert getattr(loaded, name) == getattr(model, name)
    a, b = model.partial_fit(X), loaded.partial_fit(X)
    np.testing.assert_allclose(b.components_, a.components_, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(b.tables_, a.tables_, rtol=1e-3, atol=1e-3)


def test_a_fit_is_resumed_bit_for_bit(X, tmp_path):
    whole, looks = make("mean_field", max_iter=8).fit(X), []

    def interrupt(event):
        looks.append(event)
        if len(looks) == 5:
            raise KeyboardInterrupt

    settings = dict(max_iter=8, checkpoint_dir=tmp_path, checkpoint_seconds=0.0)
    part = make("mean_field", callbacks=[interrupt], **settings)
    with pytest.raises(KeyboardInterrupt):
        part.fit(X)
    assert part.n_batch_iter_ < whole.n_batch_iter_
    again = make("mean_field", **settings).resume(X)
    assert same(again, whole) and again.doc_concentration_ == whole.doc_concentration_


@both
def test_a_stream_with_new_words(X, kind):
    """Tables stay behind the words when these become more."""
    model = make(kind, grow_vocabulary=True).fit(X[:, :40])
    concentration, tables = model.doc_concentration_, model.tables_.sum()
    model.partial_fit(X)
    assert model.components_.shape == (8, 60) and model.n_iter_ == 4
    assert 0.3 < model.doc_concentration_ / concentration < 3
    assert 0.5 * tables < model.tables_.sum() < 4 * tables
    assert np.all(model.components_[:, 40:].sum(axis=0) > 1), "the new words have topics"
    with pytest.raises(ValueError, match="n_components was 8"):
        model.set_params(n_components=9).partial_fit(X)


def test_one_pass_by_either_door_and_warm_start(X):
    # Else the step sizes of a fit follow from its passes, and only `fit` learns.
    settings = {"learning_decay": 0.7, "topic_word_prior": None}
    assert same(make(max_iter=1, **settings).fit(X), make(**settings).partial_fit(X))
    model = make(warm_start=True).fit(X)
    first = model.score(X)
    assert model.fit(X).n_batch_iter_ == 60 and model.score(X) > first - 0.01


# --- hard data ---------------------------------------------------------------------------------

CORPORA = degenerate(None)


@pytest.mark.parametrize(
    ("kind", "n_components"), [("collapsed", 1), ("mean_field", 1), ("mean_field", 8)]
)
@pytest.mark.parametrize("case", CORPORA)
def test_hard_corpora(case, kind, n_components):
    """Besides those of the common tests."""
    X = CORPORA[case]["X"]
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = make(kind, n_components=n_components, batch_size=2, max_iter=40).fit(X)
    assert np.all(np.isfinite(model.components_)) and np.all(model.components_ > 0)
    assert np.isfinite(model.tables_).all() and np.isfinite(model.bound_)
    np.testing.assert_allclose(model.transform(X).sum(axis=1), 1, rtol=1e-5)
