"""DPSVILDA as its users meet it: scikit-learn's rules, all kinds of input, save and load."""

import json
import logging

import numpy as np
import pandas as pd
import polars as pl
import pytest
from reference import TopicCorpus, documents_of, expected_log, local_step, normalised
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array, csc_array, csr_array, csr_matrix
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from dpsvi import DPSVILDA, as_corpus
from dpsvi.errors import CorpusFormatError, DpsviError, ModelFormatError

pytestmark = pytest.mark.filterwarnings("ignore::dpsvi.errors.CorpusWarning")

OPTIONS = {
    "fixed priors": {"doc_topic_prior": None, "topic_word_prior": None},
    "learned priors": {"doc_topic_prior": "auto", "topic_word_prior": "auto", "max_iter": 4},
    "mean_field": {"local_step": "mean_field"},
    "kept": {"keep_responsibilities": True, "max_iter": 6},
    "warm": {"warm_documents": True, "engine": "serial"},
    "validated": {"early_stopping": True, "validation_size": 0.25, "max_iter": 4},
}


@parametrize_with_checks(
    [DPSVILDA()] + [DPSVILDA(**OPTIONS[name]) for name in OPTIONS if name != "validated"]
)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def drawn():
    return TopicCorpus(5, n_words=60, n_documents=300, n_tokens=50, alpha=0.1, seed=3)


@pytest.fixture(scope="module")
def X(drawn):
    return csr_array(drawn.counts.astype(np.float64))


def make(**options):
    defaults = dict(
        n_components=5, doc_topic_prior=None, topic_word_prior=None, batch_size=32, max_iter=3,
        random_state=0,
    )  # fmt: skip
    return DPSVILDA(**(defaults | options))


@pytest.fixture(scope="module")
def fitted(X):
    return make().fit(X)


def same(a, b):
    return np.array_equal(a.components_, b.components_)


def mass(model):
    """Tokens that the topics hold, the prior taken out."""
    prior = model.topic_word_prior_ * model.components_.size
    return model.components_.sum(dtype=np.float64) - prior


# --- what may be passed in ---------------------------------------------------------------------


def wide(matrix):
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    return matrix


def pairs(X):
    return [[(int(w), int(c)) for w, c in zip(*document)] for document in documents_of(as_corpus(X))]


def write_uci(X, path):
    rows, columns = X.nonzero()
    lines = [*map(str, (*X.shape, X.nnz))]
    lines += [f"{r + 1} {c + 1} {int(X[r, c])}" for r, c in zip(rows, columns, strict=True)]
    path.write_text("\n".join(lines) + "\n")
    return path


def mm_corpus(X, folder):
    from gensim.corpora import MmCorpus

    path = folder / "corpus.mm"
    MmCorpus.serialize(str(path), pairs(X))
    return MmCorpus(str(path))


FORMS = {
    "csr_matrix": lambda X, folder: csr_matrix(X),
    "csc": lambda X, folder: csc_array(X),
    "coo": lambda X, folder: coo_array(X),
    "float32": lambda X, folder: X.astype(np.float32),
    "int64": lambda X, folder: X.astype(np.int64),
    "int32": lambda X, folder: X.astype(np.int32),
    "uint8": lambda X, folder: X.astype(np.uint8),
    "64-bit indices": lambda X, folder: wide(csr_matrix(X)),
    "explicit zeros": lambda X, folder: with_zeros(X),
    "dense": lambda X, folder: X.toarray(),
    "dense Fortran float32": lambda X, folder: np.asfortranarray(X.toarray(), np.float32),
    "dense int": lambda X, folder: X.toarray().astype(int),
    "lists": lambda X, folder: X.toarray().tolist(),
    "DataFrame": lambda X, folder: pd.DataFrame(X.toarray()),
    "named DataFrame": lambda X, folder: frame(X),
    "polars": lambda X, folder: pl.DataFrame(X.toarray(), [f"w{i}" for i in range(X.shape[1])]),
    "Corpus": lambda X, folder: as_corpus(X),
    "gensim list": lambda X, folder: pairs(X),
    "gensim generator": lambda X, folder: (document for document in pairs(X)),
    "gensim file": mm_corpus,
    "path": lambda X, folder: write_uci(X, folder / "docword.x.txt"),
    "str": lambda X, folder: str(write_uci(X, folder / "docword.x.txt")),
}


def frame(X):
    return pd.DataFrame(X.toarray(), columns=[f"w{i}" for i in range(X.shape[1])])


def with_zeros(X):
    row, column = [0, 0], np.flatnonzero(X.toarray()[0] == 0)[:2]
    return csr_array(X + coo_array(([0.0, 0.0], (row, column)), X.shape))


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DPSVI_CACHE_DIR", str(tmp_path / "cache"))


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_the_documents_gives_the_same_fit(X, fitted, form, tmp_path, cache):
    before = X.copy()
    model = make().fit(FORMS[form](X, tmp_path))
    assert same(model, fitted)
    assert model.n_features_in_ == X.shape[1]
    theta = model.transform(FORMS[form](X, tmp_path))
    np.testing.assert_allclose(theta, fitted.transform(X), rtol=1e-6)
    assert (X != before).nnz == 0, "the caller's data stay as they are"


def test_partial_fit_takes_the_same_forms(X, tmp_path, cache):
    first = make().partial_fit(X)
    for form in ("dense", "gensim list", "path", "Corpus", "named DataFrame"):
        assert same(make().partial_fit(FORMS[form](X, tmp_path)), first)


BAD = {
    "negative": (lambda d: d - 5, "[Nn]egative"),
    "nan": (lambda d: np.where(d > 2, np.nan, d), "NaN"),
    "infinite": (lambda d: np.where(d > 2, np.inf, d), "infinity"),
    "text": (lambda d: np.full(d.shape, "a"), "convert|numbers|string"),
    "complex": (lambda d: d * 1j, "[Cc]omplex"),
    "no rows": (lambda d: d[:0], "0 sample"),
    "no columns": (lambda d: d[:, :0], "0 feature"),
    "one dimension": (lambda d: d[0], "2D"),
    "huge": (lambda d: d * 1e12, "2147483647|2\\*\\*31"),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("method", ["fit", "partial_fit", "transform", "score", "perplexity"])
def test_bad_data_are_refused(X, case, method):
    spoil, message = BAD[case]
    model = make(max_iter=1)
    if method not in ("fit", "partial_fit"):
        model.fit(X)
    with pytest.raises(ValueError, match=message):
        getattr(model, method)(spoil(X.toarray()))


@pytest.mark.parametrize(
    "documents", [[[(0, -1)]], [[(-1, 1)]], [[(0, 1.5)]], [[(0, np.nan)]], [["word"]], [[]], []]
)
def test_bad_streams_are_refused(documents):
    with pytest.raises((CorpusFormatError, ValueError)):
        make(max_iter=1).fit(iter(documents))


@pytest.mark.parametrize("method", ["transform", "score", "perplexity", "evaluate", "partial_fit"])
@pytest.mark.parametrize("grow", [False, True])
@pytest.mark.parametrize("form", ["dense", "Corpus", "gensim list"])
def test_other_words_than_those_of_the_fit(X, method, grow, form):
    """Word ids beyond the topics must not be looked up there; only partial_fit may add some."""
    if grow and method == "partial_fit":
        pytest.skip("see test_grow_vocabulary")
    model = make(grow_vocabulary=grow, max_iter=1).fit(X)
    wider = csr_array(np.hstack([X.toarray(), np.ones((X.shape[0], 3))]))
    with pytest.raises(ValueError, match="63|60"):
        getattr(model, method)(FORMS[form](wider, None))
    assert model.n_features_in_ == 60
    assert model.transform(X).shape == (300, 5), "as if nothing had happened"


def test_vocabularies_that_disagree_are_refused(X):
    """The same number of words, in another order: the rows of topics would be mixed up."""
    words = [f"w{i}" for i in range(X.shape[1])]
    model = make(max_iter=1).fit(as_corpus(X, words))
    assert model.vocabulary_ == tuple(words)
    with pytest.raises(ValueError, match="vocabular"):
        model.transform(as_corpus(X, words[::-1]))


def test_names_belong_to_the_last_fit(X):
    """A frame, then data without names: nothing of the frame may stay."""
    model = make(max_iter=1).fit(frame(X))
    assert list(model.feature_names_in_) == [f"w{i}" for i in range(60)]
    assert model.vocabulary_ == tuple(model.feature_names_in_)
    narrow = X[:, :40]
    for other in (as_corpus(narrow), pairs(narrow), narrow):
        again = clone(model).fit(frame(X)).fit(other)
        assert not hasattr(again, "feature_names_in_") and again.vocabulary_ is None
        assert again.transform(narrow.toarray()).shape == (300, 5)


def test_all_documents_empty():
    model = make().fit(np.zeros((4, 7)))
    assert np.all(np.isfinite(model.components_))
    np.testing.assert_allclose(model.transform(np.zeros((2, 7))), 1 / 5, rtol=1e-5)


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (7, 1), (2, 3)])
@pytest.mark.parametrize("n_components", [1, 3])
def test_tiny_corpora(options, shape, n_components):
    settings = OPTIONS[options] | ({"validation_size": 1} if options == "validated" else {})
    if options == "validated" and shape[0] == 1:
        pytest.skip("one document cannot be held out from itself")
    X = np.arange(1, 1 + np.prod(shape)).reshape(shape)
    model = make(n_components=n_components, **settings).fit(X)
    assert np.all(np.isfinite(model.components_)) and np.all(model.components_ > 0)
    np.testing.assert_allclose(model.transform(X).sum(axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize("options", OPTIONS)
def test_fractions_are_counts_too(X, options):
    """tf-idf weights, as scikit-learn's estimator takes them."""
    weights = X.toarray() / (1 + X.toarray().sum(axis=0))
    model = make(**OPTIONS[options]).fit(weights)
    assert np.all(np.isfinite(model.components_)) and np.all(model.components_ > 0)
    theta = model.transform(weights)
    assert np.all(theta >= 0)
    np.testing.assert_allclose(theta.sum(axis=1), 1, rtol=1e-5)
    assert np.isfinite(model.score(weights))


# --- transform ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["collapsed", "mean_field"])
def test_transform_against_the_reference(X, kind):
    model = make(local_step=kind).fit(X)
    theta = model.transform(X[:20])
    for row, document in zip(theta, documents_of(as_corpus(X[:20])), strict=True):
        gamma, _ = local_step(
            kind, *document, model.components_.astype(float), 0.2, n_sweeps=100, tol=1e-3
        )
        np.testing.assert_allclose(row, normalised(gamma), atol=2e-3)


@pytest.mark.parametrize("kind", ["collapsed", "mean_field"])
def test_a_row_does_not_depend_on_the_others(X, kind):
    model = make(local_step=kind).fit(X)
    theta = model.transform(X)
    order = np.random.default_rng(0).permutation(300)
    assert np.array_equal(model.transform(X[order]), theta[order])
    for d in (0, 150, 299):
        assert np.array_equal(model.transform(X[[d]])[0], theta[d])
    np.testing.assert_allclose(theta.sum(axis=1), 1, rtol=1e-6)


@pytest.mark.parametrize("n_jobs", [2, -1])
def test_threads_do_not_change_transform(X, fitted, n_jobs, tmp_path):
    fitted.save(tmp_path / "m")
    parallel = DPSVILDA.load(tmp_path / "m").set_params(n_jobs=n_jobs)
    parallel._check_params()
    assert np.array_equal(parallel.transform(X), fitted.transform(X))
    assert parallel.score(X) == fitted.score(X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_type_of_the_answer(X, fitted, dtype):
    answer = fitted.transform(X.astype(dtype))
    assert answer.dtype == (np.float32 if dtype == np.float32 else np.float64)
    np.testing.assert_allclose(answer, fitted.transform(X), rtol=1e-6)


def test_fit_transform_and_names(X, fitted):
    theta = make().fit_transform(X)
    assert np.array_equal(theta, fitted.transform(X))
    assert list(fitted.get_feature_names_out()) == [f"dpsvilda{k}" for k in range(5)]
    table = make().set_output(transform="pandas").fit(frame(X)).transform(frame(X))
    assert list(table.columns) == [f"dpsvilda{k}" for k in range(5)]
    np.testing.assert_array_equal(table.to_numpy(), theta)


@pytest.mark.parametrize(
    "method", ["transform", "score", "perplexity", "evaluate", "top_words", "save"]
)
def test_not_fitted(X, method, tmp_path):
    argument = {"save": tmp_path / "m", "top_words": 3}.get(method, X)
    with pytest.raises(NotFittedError, match="DPSVILDA"):
        getattr(make(), method)(argument)
    for name in ("components_", "exp_dirichlet_component_", "doc_topic_prior_", "bound_"):
        assert not hasattr(make(), name)


# --- attributes --------------------------------------------------------------------------------


@pytest.mark.parametrize("options", OPTIONS)
def test_attributes(X, options):
    model = make(**OPTIONS[options]).fit(X)
    assert model.components_.shape == model.exp_dirichlet_component_.shape == (5, 60)
    assert np.all(model.components_ >= np.float32(model.topic_word_prior_))
    np.testing.assert_allclose(
        model.exp_dirichlet_component_, np.exp(expected_log(model.components_)), rtol=1e-4,
        atol=1e-12,
    )  # fmt: skip
    assert model.doc_topic_prior_.shape == (5,) and np.all(model.doc_topic_prior_ > 0)
    assert isinstance(model.topic_word_prior_, float) and model.topic_word_prior_ > 0
    assert isinstance(model.bound_, float) and 1 < model.bound_ < 100
    assert model.vocabulary_ is None and model.n_features_in_ == 60
    n_train = 225 if options == "validated" else 300
    steps = -(-n_train // 32)
    assert model.n_iter_ <= model.max_iter
    assert model.n_batch_iter_ == steps * model.n_iter_
    assert len(model.history_) == model.n_iter_
    for i, entry in enumerate(model.history_, 1):
        assert entry["step"] == steps * i and entry["docs"] == n_train * i
        assert entry["epoch"] == pytest.approx(i)
        assert 0 < entry["rate"] <= 1
    assert np.all(np.diff([0] + [entry["seconds"] for entry in model.history_]) > 0)


@pytest.mark.parametrize("options", ["fixed priors", "mean_field", "kept"])
def test_topics_hold_the_tokens_of_the_corpus(X, options):
    """Statistics stand for all documents; what is kept is exactly the documents."""
    model = make(**OPTIONS[options] | {"max_iter": 8}).fit(X)
    assert mass(model) == pytest.approx(X.sum(), rel=1e-4 if options == "kept" else 0.05)


@pytest.mark.parametrize("max_iter", [0, 1, 7])
def test_number_of_passes(X, max_iter):
    model = make(max_iter=max_iter).fit(X)
    assert model.n_iter_ == max_iter
    assert model.n_batch_iter_ == 10 * max_iter
    assert np.all(np.isfinite(model.transform(X)))


def test_top_words(X):
    words = [f"w{i}" for i in range(60)]
    model = make().fit(as_corpus(X, words))
    order = np.argsort(-model.components_, axis=1)[:, :4]
    assert model.top_words(4) == [[words[i] for i in row] for row in order]
    assert make().fit(X).top_words(4) == order.tolist()
    assert len(model.top_words()[0]) == 10 and len(model.top_words(1000)[0]) == 60


# --- reproducible ------------------------------------------------------------------------------


@pytest.mark.parametrize("options", OPTIONS)
def test_the_same_seed_gives_the_same_bits(X, options):
    a, b = (make(**OPTIONS[options]).fit(X) for _ in range(2))
    assert same(a, b) and a.score(X) == b.score(X)
    other = make(**OPTIONS[options] | {"random_state": 1}).fit(X)
    assert not same(a, other)
    c = a.fit(X)
    assert same(b, c), "fit starts again"


def test_kinds_of_seed(X):
    a, b = (make(random_state=np.random.RandomState(7)).fit(X) for _ in range(2))
    assert same(a, b)
    assert not same(make(random_state=None).fit(X), make(random_state=None).fit(X))
    state = np.random.get_state()[1].copy()
    make(random_state=0).fit(X)
    assert np.array_equal(np.random.get_state()[1], state), "numpy's global state is not touched"


# --- it learns ---------------------------------------------------------------------------------


def distance_to_truth(model, topics):
    """Mean total variation between topics and the truth, matched at best."""
    found = normalised(model.components_.astype(np.float64))
    distances = cdist(found, topics, "cityblock") / 2
    return distances[linear_sum_assignment(distances)].mean()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"local_step": "mean_field"},
        {"warm_documents": True},
        {"keep_responsibilities": True},
        {"n_jobs": 2},
        {"n_jobs": 2, "local_steps": 4, "lr_rule": "per_T"},
        {"learning_rate": 0.1},
        {"doc_topic_prior": "auto", "topic_word_prior": "auto"},
    ],
    ids=str,
)
def test_known_topics_are_found(known, options):
    """The best of three starts, by held-out score: SVI may end in a poor optimum."""
    corpus = known.corpus()
    models = [
        DPSVILDA(5, batch_size=20, max_iter=15, random_state=seed, **options).fit(corpus)
        for seed in range(3)
    ]
    best = max(models, key=lambda model: model.score(corpus))
    assert distance_to_truth(best, known.topics) < 0.12
    result = best.evaluate(corpus)
    assert result.perplexity < 0.75 * result.unigram_perplexity


@pytest.mark.parametrize(
    ("options", "factor"),
    [
        ({}, 10),
        ({"keep_responsibilities": True}, 10),
        # Iterated to the end; what is learned from a few sweeps is larger.
        ({"local_step": "mean_field", "max_doc_update_iter": 100, "mean_change_tol": 1e-4}, 3),
    ],
    ids=["collapsed", "kept", "mean_field"],
)
def test_learned_alpha(options, factor):
    """Within an order of magnitude, and the larger the more even the documents are."""
    answers, truths = [], [0.03, 0.1, 0.3, 1.0]
    for alpha in truths:
        drawn = TopicCorpus(5, 100, n_documents=1000, n_tokens=100, alpha=alpha, seed=5)
        model = make(doc_topic_prior="auto", max_iter=30, **options).fit(drawn.corpus())
        learned = model.doc_topic_prior_
        assert learned.shape == (5,) and np.all(np.isfinite(learned))
        answers.append(np.exp(np.log(learned).mean()))
    assert np.all(np.diff(answers) > 0)
    assert np.all(np.abs(np.log(np.divide(answers, truths))) < np.log(factor))


def test_learned_alpha_tells_frequent_topics_from_rare_ones():
    """One topic has half of all tokens."""
    rng = np.random.default_rng(0)
    drawn = TopicCorpus(4, n_words=80, n_documents=1, n_tokens=1, alpha=1.0, seed=6)
    theta = rng.dirichlet([1.5, 0.5, 0.5, 0.5], 800)
    counts = rng.multinomial(80, theta @ drawn.topics)
    model = make(n_components=4, doc_topic_prior="auto", max_iter=12).fit(counts)
    found = normalised(model.components_.astype(np.float64))
    _, match = linear_sum_assignment(cdist(drawn.topics, found, "cityblock"))
    assert np.argmax(model.doc_topic_prior_) == match[0]


@pytest.mark.parametrize("options", ["fixed priors", "mean_field"])
def test_learned_eta(options):
    """Sparse topics want a small eta, dense ones a large one."""
    rng = np.random.default_rng(1)

    def learned(eta):
        topics = rng.dirichlet(np.full(200, eta), 5)
        counts = rng.multinomial(100, rng.dirichlet(np.full(5, 0.1), 800) @ topics)
        settings = OPTIONS[options] | {"topic_word_prior": "auto", "max_iter": 12}
        return make(**settings).fit(counts).topic_word_prior_

    sparse, dense = learned(0.05), learned(2.0)
    assert 0.05 / 4 < sparse < 0.05 * 4
    assert 2.0 / 4 < dense < 2.0 * 4


def test_fixed_priors_stay(X):
    alpha = np.array([0.1, 0.2, 0.3, 0.4, 0.5])
    model = make(doc_topic_prior=alpha, topic_word_prior=0.07).fit(X)
    np.testing.assert_array_equal(model.doc_topic_prior_, alpha)
    assert model.topic_word_prior_ == pytest.approx(0.07, rel=1e-6)
    assert make(doc_topic_prior=2).fit(X).doc_topic_prior_.tolist() == [2.0] * 5
    assert make().fit(X).doc_topic_prior_ == pytest.approx([0.2] * 5)


# --- going on ----------------------------------------------------------------------------------


def test_one_pass_by_either_door(X):
    assert same(make(max_iter=1).fit(X), make().partial_fit(X))


@pytest.mark.parametrize("options", ["fixed priors", "mean_field", "warm", "learned priors", "kept"])
def test_partial_fit_goes_on(X, options):
    model = make(**OPTIONS[options])
    for i, start in enumerate(range(0, 300, 60), 1):
        model.partial_fit(X[start : start + 60])
        assert model.n_batch_iter_ == 2 * i and model.n_iter_ == i
        assert np.all(np.isfinite(model.components_))
    assert mass(model) == pytest.approx(X.sum(), rel=0.35)


def test_partial_fit_of_a_stream_learns_the_topics(known):
    corpus = known.corpus()
    scores = []
    for seed in range(3):
        model = DPSVILDA(5, batch_size=20, total_samples=400, random_state=seed)
        for _ in range(15):
            for start in range(0, 400, 100):
                model.partial_fit(corpus.select(slice(start, start + 100)))
        scores.append((model.score(corpus), distance_to_truth(model, known.topics)))
    assert max(scores)[1] < 0.12


def test_total_samples(X):
    """What the documents stand for: N in (52)."""
    model = make(learning_rate=1.0, batch_size=300, total_samples=3000).partial_fit(X)
    assert mass(model) == pytest.approx(10 * X.sum(), rel=1e-4)
    model = make(learning_rate=1.0, batch_size=300).partial_fit(X)
    assert mass(model) == pytest.approx(X.sum(), rel=1e-4)
    assert mass(model.partial_fit(X)) == pytest.approx(2 * X.sum(), rel=1e-4), "documents seen"


def test_partial_fit_after_fit(X):
    model = make().fit(X)
    before = model.components_.copy()
    model.partial_fit(X[:64])
    assert model.n_batch_iter_ == 32 and model.n_iter_ == 4
    assert not np.array_equal(before, model.components_)
    rates = [entry["rate"] for entry in model.history_]
    expected = (31 + model.learning_offset) ** -model.learning_decay
    assert rates[-1] == pytest.approx(expected), "the clock goes on"


@pytest.mark.parametrize("options", ["fixed priors", "mean_field", "learned priors", "warm"])
def test_warm_start(X, options):
    settings = OPTIONS[options] | {"max_iter": 2}
    model = make(warm_start=True, **settings).fit(X)
    step, score = model.n_batch_iter_, model.score(X)
    model.fit(X)
    assert model.n_batch_iter_ == 2 * step
    assert model.score(X) > score - 0.05, "goes on from what it knew"
    cold = make(**settings).fit(X).fit(X)
    assert cold.n_batch_iter_ == step
    assert not same(model, cold)


@pytest.mark.parametrize("max_iter", [2, 3, 5])
def test_warm_start_with_kept_responsibilities_counts_nothing_twice(X, max_iter):
    model = make(keep_responsibilities=True, max_iter=6, warm_start=True).fit(X)
    model.set_params(max_iter=max_iter).fit(X)
    assert mass(model) == pytest.approx(X.sum(), rel=0.05)


def test_warm_start_on_fewer_or_more_words(X):
    model = make(warm_start=True).fit(X)
    for other in (X[:, :50], np.hstack([X.toarray(), X.toarray()[:, :1]])):
        with pytest.raises(ValueError, match="warm_start|60"):
            model.fit(other)
    assert model.n_features_in_ == 60 and model.transform(X).shape == (300, 5)


@pytest.mark.parametrize(
    ("name", "value", "attribute"),
    [
        ("n_components", 7, lambda m: np.count_nonzero(m.components_.sum(axis=1) > 100)),
        ("topic_word_prior", 0.5, lambda m: round(m.topic_word_prior_, 6)),
        ("doc_topic_prior", 0.9, lambda m: m.doc_topic_prior_[0]),
    ],
)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_parameters_changed_before_going_on(X, name, value, attribute, method):
    """They take effect, or are refused; they are not passed over in silence."""
    model = make(warm_start=True).fit(X)
    model.set_params(**{name: value})
    try:
        getattr(model, method)(X)
    except ValueError as error:
        assert name in str(error)
    else:
        assert attribute(model) == value


@pytest.mark.parametrize("form", ["dense", "Corpus", "gensim list", "DataFrame"])
def test_grow_vocabulary(X, form):
    model = make(grow_vocabulary=True).partial_fit(FORMS[form](X[:, :50], None))
    wider = FORMS[form](X, None)
    model.partial_fit(wider)
    assert model.n_features_in_ == 60 and model.components_.shape == (5, 60)
    assert np.all(model.components_[:, 50:].sum(axis=0) > 5 * model.topic_word_prior_)
    assert model.transform(wider).shape == (300, 5)
    assert np.isfinite(model.score(wider))


def test_a_stream_need_not_hold_the_last_word(X):
    """Nothing tells the number of words of a list of pairs; a batch may lack the largest id."""
    model = make(grow_vocabulary=True).partial_fit(X)
    documents = pairs(X[:50, :40])
    model.partial_fit(documents)
    assert model.n_features_in_ == 60
    assert model.transform(documents).shape == (50, 5)


def test_grown_words_are_named(X):
    words = [f"w{i}" for i in range(60)]
    model = make(grow_vocabulary=True).partial_fit(as_corpus(X[:, :50], words[:50]))
    model.partial_fit(as_corpus(X, words))
    assert model.vocabulary_ == tuple(words)


# --- following a fit ---------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "n"), [(0.1, 30), (75, 75), (0.001, 1)])
def test_validation(X, size, n):
    model = make(validation_size=size).fit(X)
    assert len(model.history_) == 3
    for entry in model.history_:
        assert entry["perplexity"] == pytest.approx(np.exp(-entry["log_likelihood"]))
        assert entry["score"] == entry["log_likelihood"]
        assert entry["unigram_perplexity"] > 1
        assert entry["docs"] % (300 - n) == 0, "the others were trained on"
    json.dumps(model.history_)


@pytest.mark.parametrize(
    ("every", "expected"), [(1.0, [1, 2, 3, 4]), (0.5, np.arange(0.5, 4.1, 0.5)), (2, [2, 4])]
)
def test_evaluate_every(X, every, expected):
    model = make(validation_size=60, evaluate_every=every, max_iter=4, batch_size=24).fit(X)
    scored = [entry["docs"] / 240 for entry in model.history_ if "score" in entry]
    assert scored == pytest.approx(expected)


def test_early_stopping(X):
    model = make(
        early_stopping=True, validation_size=0.2, max_iter=500, tol=1e-3, n_iter_no_change=3
    ).fit(X)
    scores = [entry["score"] for entry in model.history_]
    assert 3 < len(scores) < 500 and model.n_iter_ == len(scores)
    best = np.maximum.accumulate(scores)
    better = [s > b + 1e-3 * abs(b) for s, b in zip(scores[1:], best[:-1], strict=True)]
    assert not any(better[-3:]), "three looks without an improvement end the fit"
    assert all(any(better[i : i + 3]) for i in range(len(better) - 3)), "and nothing before"


@pytest.mark.parametrize("options", ["fixed priors", "kept"])
def test_callbacks(X, options):
    seen = []

    def callback(event):
        seen.append((event.step, event.items, event.state.natural().sum()))
        return event.step >= 20

    model = make(callbacks=[callback], **OPTIONS[options] | {"max_iter": 10}).fit(X)
    assert [step for step, *_ in seen] == [10, 20]
    assert [items for _, items, _ in seen] == [300, 600]
    assert model.n_batch_iter_ == 20 and model.n_iter_ == 2


def test_an_error_in_a_callback_comes_out(X):
    def callback(event):
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        make(callbacks=[callback]).fit(X)


@pytest.mark.parametrize("passes", [3.25, 3.75, 4.0, 5.5])
def test_a_fit_that_ends_among_kept_responsibilities(X, passes):
    """The first pass that keeps them must not end with a part of the documents alone."""
    model = make(
        keep_responsibilities=True, max_iter=10, evaluate_every=0.25, batch_size=15,
        callbacks=[lambda event: event.items >= passes * 300],
    ).fit(X)  # fmt: skip
    assert model.n_batch_iter_ == 20 * passes
    assert mass(model) == pytest.approx(X.sum(), rel=0.1)


def test_scikit_learn_callbacks(X, capsys):
    callback = pytest.importorskip("sklearn.callback")
    bar, scores = callback.ProgressBar(), callback.ScoringMonitor(scoring=None)
    model = make(max_iter=4).set_callbacks(bar, scores).fit(X, np.zeros(300))
    log = scores.get_logs().data_as_pandas
    passes = log[log["task_name"] == "pass"]
    assert list(passes["task_id"]) == [0, 1, 2, 3]
    assert np.all(np.isfinite(passes["score"])), "the model of each pass is scored"
    assert passes["score"].iloc[-1] == pytest.approx(model.score(X))
    assert same(model, make(max_iter=4).fit(X)), "looking changes nothing"
    assert "DPSVILDA" in capsys.readouterr().out, "the bar was drawn"


@pytest.mark.parametrize(
    "options",
    [{"max_iter": 0}, {"validation_size": 30, "early_stopping": True}, OPTIONS["kept"]],
    ids=str,
)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_scikit_learn_callbacks_are_told_of_every_end(X, options, method):
    """Each task that begins also ends, whatever ends the fit."""
    callback = pytest.importorskip("sklearn.callback")

    class Recorder:
        def __init__(self):
            self.open, self.ended = [], 0

        def setup(self, estimator, context):
            pass

        def teardown(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            self.open.append(id(context))

        def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
            self.open.remove(id(context))
            self.ended += 1
            if fitted_estimator is not None:
                assert fitted_estimator.transform(X[:2]).shape == (2, 5)

    recorder = Recorder()
    assert isinstance(recorder, callback.FitCallback)
    getattr(make(**options).set_callbacks(recorder), method)(X)
    assert recorder.open == [] and recorder.ended > 0


def test_a_callback_of_scikit_learn_may_end_the_fit(X):
    pytest.importorskip("sklearn.callback")

    class Stop:
        def setup(self, estimator, context):
            pass

        teardown = on_fit_task_begin = setup

        def on_fit_task_end(self, estimator, context):
            return context.task_id == 1

    assert make(max_iter=9).set_callbacks(Stop()).fit(X).n_iter_ == 2


@pytest.mark.parametrize("verbose", [0, 1])
def test_nothing_is_printed_to_stdout(X, verbose, capsys, caplog):
    with caplog.at_level(logging.INFO, "dpsvi"):
        make(verbose=verbose, validation_size=30).fit(X)
    assert capsys.readouterr().out == ""


# --- saved models ------------------------------------------------------------------------------


@pytest.mark.parametrize("options", OPTIONS)
def test_save_and_load(options, tmp_path):
    """Bit for bit, over enough numbers for a rounding error to show."""
    drawn = TopicCorpus(20, n_words=2000, n_documents=500, n_tokens=100, alpha=0.1, seed=7)
    X = csr_array(drawn.counts)
    words = [f"w{i}" for i in range(2000)]
    model = make(n_components=20, **OPTIONS[options]).fit(as_corpus(X, words))
    model.save(tmp_path / "model")
    loaded = DPSVILDA.load(tmp_path / "model")
    assert np.array_equal(loaded.components_, model.components_)
    assert np.array_equal(loaded.doc_topic_prior_, model.doc_topic_prior_)
    assert loaded.topic_word_prior_ == model.topic_word_prior_
    assert np.array_equal(loaded.transform(X), model.transform(X))
    assert loaded.evaluate(X) == model.evaluate(X)
    assert loaded.get_params() == model.get_params()
    assert loaded.vocabulary_ == tuple(words)
    for name in ("n_iter_", "n_batch_iter_", "bound_", "n_features_in_"):
        assert getattr(loaded, name) == getattr(model, name)
    assert list(loaded.get_feature_names_out()) == list(model.get_feature_names_out())


def test_a_loaded_model_goes_on(X, tmp_path):
    model = make(warm_start=True).fit(X)
    model.save(tmp_path / "model")
    loaded = DPSVILDA.load(tmp_path / "model")
    for one in (model, loaded):
        one.partial_fit(X)
    assert loaded.n_batch_iter_ == model.n_batch_iter_ == 40
    np.testing.assert_allclose(loaded.components_, model.components_, rtol=1e-3, atol=1e-3)
    for one in (model, loaded):
        one.fit(X)
    assert loaded.n_batch_iter_ == model.n_batch_iter_ == 70
    np.testing.assert_allclose(loaded.components_, model.components_, rtol=1e-3, atol=1e-3)


def test_names_are_saved(X, tmp_path):
    model = make().fit(frame(X))
    model.save(tmp_path / "model")
    loaded = DPSVILDA.load(tmp_path / "model")
    assert list(loaded.feature_names_in_) == list(model.feature_names_in_)
    assert np.array_equal(loaded.transform(frame(X)), model.transform(frame(X)))
    with pytest.raises(ValueError, match="feature names"):
        loaded.transform(frame(X)[model.feature_names_in_[::-1]])


@pytest.mark.parametrize(
    "prior", [None, 0.3, np.float32(0.25), np.full(5, 0.2), [0.1, 0.2, 0.3, 0.4, 0.5], "auto"], ids=str
)
def test_every_kind_of_prior_can_be_saved(X, prior, tmp_path):
    model = make(doc_topic_prior=prior).fit(X)
    model.save(tmp_path / "model")
    loaded = DPSVILDA.load(tmp_path / "model")
    assert np.array_equal(loaded.doc_topic_prior_, model.doc_topic_prior_)
    clone(loaded).fit(X)


def test_other_models_are_refused(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    path = tmp_path / "model" / "model.json"
    meta = json.loads(path.read_text())
    for change, message in [
        ({"kind": "gaussian_mixture"}, "gaussian_mixture"),
        ({"schema": 99}, "99 is newer"),
        ({"params": {"n_topics": 3}}, "n_topics"),
        ({"params": meta["params"] | {"n_components": 4}}, "n_components|shape"),
    ]:
        path.write_text(json.dumps(meta | change))
        with pytest.raises(ModelFormatError, match=message):
            DPSVILDA.load(tmp_path / "model")
    for missing in ("step", "eta", "vocabulary"):
        path.write_text(json.dumps({k: v for k, v in meta.items() if k != missing}))
        with pytest.raises(ModelFormatError, match=missing):
            DPSVILDA.load(tmp_path / "model")


# --- parameters --------------------------------------------------------------------------------

WRONG = [
    ("n_components", 0, ">= 1"),
    ("n_components", 65_536, "<= 65535"),
    ("n_components", 2.0, "integer"),
    ("n_components", "ten", "integer"),
    ("n_components", True, "integer"),
    ("doc_topic_prior", 0.0, "> 0"),
    ("doc_topic_prior", -1, "> 0"),
    ("doc_topic_prior", np.nan, "> 0"),
    ("doc_topic_prior", np.inf, "> 0"),
    ("doc_topic_prior", "asymmetric", "auto"),
    ("doc_topic_prior", [0.1, 0.2], r"\(5,\)"),
    ("doc_topic_prior", [0.1, 0.2, 0.3, 0.4, 0.0], "> 0"),
    ("doc_topic_prior", 1e-50, "> "),  # 0 in float32
    ("topic_word_prior", 0, "> 0"),
    ("topic_word_prior", np.inf, "> 0"),
    ("topic_word_prior", "symmetric", "auto"),
    ("topic_word_prior", [0.1] * 60, "auto"),
    ("topic_word_prior", 1e-50, "> "),
    ("local_step", "gibbs", "collapsed.*mean_field"),
    ("engine", "mpirun", "serial.*threads"),
    ("n_jobs", 0, ">= 1"),
    ("n_jobs", -2, ">= 1"),
    ("n_jobs", 1.5, "integer"),
    ("local_steps", 0, ">= 1"),
    ("batch_size", 0, ">= 1"),
    ("batch_size", 12.5, "integer"),
    ("max_iter", -1, ">= 0"),
    ("max_iter", None, "integer"),
    ("learning_decay", 0.0, "0"),
    ("learning_decay", 1.1, "1"),
    ("learning_decay", "fast", "number"),
    ("learning_offset", 0.0, "> 0"),
    ("learning_offset", -1.0, "> 0"),
    ("learning_offset", np.inf, "> 0"),
    ("learning_offset", None, "number"),
    ("learning_rate", 0.0, "> 0"),
    ("learning_rate", 1.5, "<= 1"),
    ("learning_rate", "optimal", "number"),
    ("lr_rule", "linear", "constant"),
    ("total_samples", 0, "> 0"),
    ("total_samples", "all", "number"),
    ("max_doc_update_iter", 0, ">= 1"),
    ("mean_change_tol", -1e-3, ">= 0"),
    ("mean_change_tol", np.nan, ">= 0"),
    ("validation_size", 0.0, "> 0"),
    ("validation_size", 1.0, "1.0"),
    ("validation_size", 300, "299"),
    ("validation_size", -3, ">= 1"),
    ("validation_size", "half", "number|integer"),
    ("evaluate_every", 0, "> 0"),
    ("evaluate_every", np.inf, "> 0"),
    ("tol", -1.0, ">= 0"),
    ("n_iter_no_change", 0, ">= 1"),
    ("n_iter_no_change", 1.5, "integer"),
    ("callbacks", [3], "call"),
    ("random_state", "seed", "seed"),
]


@pytest.mark.parametrize(("name", "value", "allowed"), WRONG, ids=lambda v: str(v)[:20])
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_wrong_parameters(X, name, value, allowed, method):
    """Refused with name, value and what is allowed, before anything is lost."""
    if method == "partial_fit" and name in ("validation_size", "callbacks", "random_state"):
        pytest.skip("fit says it")
    model = make(max_iter=1).fit(X)
    before, params = model.transform(X), model.get_params()
    model.set_params(**{name: value})
    with pytest.raises((ValueError, TypeError), match=f"(?s){allowed}") as caught:
        getattr(model, method)(X)
    if name != "random_state":  # scikit-learn's own check
        assert name in str(caught.value)
        assert repr(value) in str(caught.value) or np.ndim(value)
    model.set_params(**params)
    assert np.array_equal(model.transform(X), before), "what was learned is still there"


COMBINATIONS = [
    ({"engine": "serial", "n_jobs": 2}, "engine='serial'.*n_jobs=2"),
    ({"keep_responsibilities": True, "local_step": "mean_field"}, "keep_responsibilities"),
    ({"early_stopping": True}, "early_stopping.*validation_size"),
]


@pytest.mark.parametrize(("options", "message"), COMBINATIONS, ids=str)
def test_wrong_combinations(X, options, message):
    with pytest.raises(ValueError, match=message):
        make(**options).fit(X)


def test_one_document_cannot_be_held_out():
    with pytest.raises(ValueError, match="validation_size"):
        make(validation_size=1).fit([[1, 2, 3]])


def test_errors_of_dpsvi_are_also_built_in_ones():
    assert issubclass(ModelFormatError, DpsviError) and issubclass(ModelFormatError, ValueError)
