"""Priors of words of their own, and guided topics."""

import numpy as np
import pytest
from tools.lda_cases import OPTIONS, found_statistics, make, same

from dpsvi import DPSVILDA, as_corpus
from dpsvi.families.topics.seeds import by_topic, seeded_prior
from dpsvi.kernels.jit import as_items, compile_local
from dpsvi.models.lda.model import LOCAL_STEPS, make_model, with_responsibilities
from dpsvi.training.state import State
from dpsvi.training.task import make_works

WITHOUT = [name for name in OPTIONS if name != "learned priors"]
TOPICS, WORDS = 5, 60


def statistics(model, rows, items):
    """What one local step over all documents finds, (n_words, n_topics)."""
    n_items = len(items.offsets) - 1
    state = State.resume(model, rows.copy(), 1, n_items, len(items.index))
    (work,) = make_works(model, items, n_items, 1)
    work.totals[:] = state.shared.totals.sum(axis=0)
    batch = np.arange(n_items, dtype=np.int32)
    local = compile_local(model.local, model.real)
    n = local(state.shared, 1.0, model.hyper, items, batch, work)
    return found_statistics(work, n, model.shape)[:, :TOPICS]


@pytest.mark.parametrize("kind", [*LOCAL_STEPS, "kept"])
def test_a_prior_counts_as_tokens_do(X, rng, kind):
    """Steps see eta + counts: what one of them gains, the other may lose."""
    corpus = as_corpus(X)
    items = as_items(corpus.offsets, corpus.index, corpus.value, np.dtype(np.float32))
    found = []
    for more in (np.zeros((TOPICS, WORDS)), rng.uniform(0, 3, (TOPICS, WORDS))):
        eta = 0.5 + more if more.any() else 0.5
        model = make_model(
            WORDS, TOPICS, 0.3, eta, local_step=kind if kind in LOCAL_STEPS else "collapsed",
            n_sweeps=5, tol=1e-4,
        )  # fmt: skip
        rows = np.zeros(model.shape, np.float32)
        rows[:, :TOPICS] = 4.0 + np.arange(TOPICS) - more.T
        rows[::3, 0] += 9
        model = with_responsibilities(model) if kind == "kept" else model
        found.append(statistics(model, rows, items))
    np.testing.assert_allclose(found[1], found[0], rtol=2e-3, atol=2e-2 * found[0].mean())
    assert found[0].sum() == pytest.approx(X.sum(), rel=1e-3)


@pytest.mark.parametrize("options", WITHOUT)
@pytest.mark.parametrize("shape", [(WORDS,), (TOPICS, WORDS)])
def test_equal_priors_are_one_number(X, options, shape):
    one, many = (
        make(**OPTIONS[options] | {"topic_word_prior": eta}).fit(X)
        for eta in (0.4, np.full(shape, 0.4))
    )
    np.testing.assert_allclose(many.components_, one.components_, rtol=0.02, atol=0.02)
    np.testing.assert_allclose(many.transform(X), one.transform(X), atol=0.01)
    np.testing.assert_allclose(many.topic_word_prior_, np.full((TOPICS, WORDS), 0.4, np.float32))


@pytest.mark.parametrize(
    "more",
    [{}, {"n_jobs": 2}, {"engine": "serial"}, {"engine": "simulated"}, {"doc_topic_prior": "auto"}],
)
@pytest.mark.parametrize("kind", ["collapsed", "mean_field"])
def test_topics_hold_their_prior_and_the_tokens(X, rng, kind, more, tmp_path):
    eta = rng.uniform(0.01, 2, (TOPICS, WORDS))
    settings = {"topic_word_prior": eta, "local_step": kind, "max_iter": 2} | more
    model = make(**settings).fit(X)
    assert np.all(model.components_ >= 0.999 * eta)
    assert model.components_.sum() - eta.sum() == pytest.approx(X.sum(), rel=0.05)
    model.save(tmp_path / "model")
    loaded = DPSVILDA.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.topic_word_prior_, model.topic_word_prior_)
    np.testing.assert_allclose(loaded.transform(X), model.transform(X), rtol=1e-4)
    np.testing.assert_allclose(loaded.score(X), model.score(X), rtol=1e-5)
    loaded.partial_fit(X)
    assert np.all(loaded.components_ >= 0.999 * eta)


@pytest.mark.parametrize(
    ("eta", "message"),
    [
        (np.ones(59), "60 words"),
        (np.ones((4, 60)), r"\(5, n_features\)"),
        (np.ones((1, 5, 60)), r"\(5, n_features\)"),
        (np.r_[np.ones(59), 0], "> 0"),
        (np.r_[np.ones(59), np.nan], "> 0"),
        (["auto"] * 60, "> 0"),
    ],
)
def test_refused_priors(X, eta, message):
    with pytest.raises(ValueError, match=message):
        make(topic_word_prior=eta).fit(X)


# --- guided topics -------------------------------------------------------------------------------


def test_prior_of_seeds():
    prior = seeded_prior(np.array([1.0, 2, 3]), {0: [2, 2], 1: [0, 2]}, 2, None, [7, 8, 9])
    np.testing.assert_array_equal(prior, [[1, 2, 12], [8, 2, 12]])


def test_forms_of_seeds():
    assert by_topic({"1": ["a"], 0: []}, 2) == by_topic([[], ("a",)], 2) == {1: ["a"]}


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("options", WITHOUT)
def test_seeds_lead_topics(known, options, method, tmp_path):
    """Each topic is found where two of its words are seeds; without them any place will do."""
    corpus = known.corpus()
    likeliest = np.argsort(-known.topics, axis=1)[:, :6]
    seeds = {4 - k: [int(w) for w in likeliest[k, :2]] for k in range(5)}
    settings = OPTIONS[options] | {"seed_words": seeds, "max_iter": 12, "batch_size": 8}
    model = make(**settings)
    for _ in range(1 if method == "fit" else 6):
        getattr(model, method)(corpus)
    beta = model.components_ / model.components_.sum(axis=1, keepdims=True)
    others = [likeliest[k, 2:] for k in range(5)]
    found = [int(np.argmax(beta[:, words].sum(axis=1))) for words in others]
    assert np.sum(np.array(found) == [4, 3, 2, 1, 0]) >= 4
    model.save(tmp_path / "model")
    loaded = DPSVILDA.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.components_, model.components_)
    loaded.partial_fit(corpus)


def test_seeds_are_words():
    texts = ["sun sea sand"] * 20 + ["snow ice ski"] * 20
    models = [
        DPSVILDA(2, seed_words=seeds, random_state=0, max_iter=30).fit(texts)
        for seeds in ({1: ["snow"], 0: ["sea"]}, [["sea"], ["snow"]])
    ]
    assert set(models[0].top_words(3)[1]) == {"snow", "ice", "ski"}
    assert same(*models)


@pytest.mark.parametrize(
    ("seeds", "error", "message"),
    [
        ({5: [1]}, ValueError, "topics are 0 to 4"),
        ({0: "sun"}, TypeError, "list of words"),
        ({0: [60]}, ValueError, r"not in the documents: \[60\]"),
        (7, TypeError, "list of lists"),
        ({"one": [1]}, TypeError, "a topic must be a number from 0, got 'one'"),
        ({1.5: [1]}, TypeError, "a topic must be a number from 0, got 1.5"),
    ],
)
def test_refused_seeds(X, seeds, error, message):
    with pytest.raises(error, match=message):
        make(seed_words=seeds).fit(X)


def test_an_eta_of_many_numbers_is_not_learned(X):
    guided, learning = (
        make(seed_words={0: [1]}, topic_word_prior=prior).fit(X) for prior in (None, "auto")
    )
    assert same(guided, learning)
    np.testing.assert_array_equal(guided.topic_word_prior_, learning.topic_word_prior_)
