"""DPSVILDA as its users meet it: scikit-learn's rules, all kinds of input, attributes."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from reference.lda import documents_of, expected_log, infer, normalised
from scipy.sparse import csr_array, vstack
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks
from tools.lda_cases import FORMS, OPTIONS, frame, make, mass, pairs, same

from dpsvi import DPSVILDA, as_corpus
from dpsvi.errors import CorpusFormatError, resolve_jobs
from dpsvi.evaluation import completion

pytestmark = pytest.mark.filterwarnings("ignore::dpsvi.errors.CorpusWarning")


@parametrize_with_checks(
    [DPSVILDA(**OPTIONS[name]) for name in OPTIONS if name != "validated"]
)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def fitted(X):
    return make().fit(X)


# --- what may be passed in ---------------------------------------------------------------------


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
    "documents",
    [[[(0, -1)]], [[(-1, 1)]], [[(0, 1.5)]], [[(0, np.nan)]], [[("word", 1)]], [[]], []],
)
def test_bad_streams_are_refused(documents):
    with pytest.raises((CorpusFormatError, ValueError)):
        make(max_iter=1).fit(iter(documents))


READERS = ["transform", "score", "perplexity", "evaluate"]


@pytest.mark.parametrize(
    ("method", "grow"),
    [(method, grow) for method in READERS for grow in (False, True)] + [("partial_fit", False)],
)
@pytest.mark.parametrize("form", ["dense", "Corpus", "gensim list"])
def test_other_words_than_those_of_the_fit(X, method, grow, form):
    """Word ids beyond the topics must not be looked up there; only partial_fit may add some."""
    model = make(grow_vocabulary=grow, max_iter=1).fit(X)
    wider = csr_array(np.hstack([X.toarray(), np.ones((X.shape[0], 3))]))
    with pytest.raises(ValueError, match="63|60"):
        getattr(model, method)(FORMS[form](wider, None))
    assert model.n_features_in_ == 60
    assert model.transform(X).shape == (300, 5), "as if nothing had happened"


def test_words_are_matched_by_their_names(X):
    """In another order they are the same words; others, as many, are not."""
    words = [f"w{i}" for i in range(X.shape[1])]
    model = make(max_iter=1).fit(as_corpus(X, words))
    assert model.vocabulary_ == tuple(words)
    theta = model.transform(as_corpus(X[:, ::-1], words[::-1]))
    np.testing.assert_allclose(theta, model.transform(X), rtol=1e-3, atol=1e-5)
    with pytest.raises(ValueError, match="the word 'other', which DPSVILDA was not fitted with"):
        model.transform(as_corpus(X, [*words[:-1], "other"]))


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


@pytest.mark.parametrize("reason", ["count", "validation_size"])
def test_a_fit_that_is_refused_leaves_the_model_alone(X, reason):
    """Wider data that cannot be fitted: topics and number of words still belong together."""
    model = make(max_iter=1).fit(X)
    before = model.transform(X)
    wider = np.hstack([X.toarray(), np.ones((X.shape[0], 3))])
    if reason == "count":
        model.transform(X)
        wider[7, 61] = 1e12
    else:
        model.set_params(validation_size=1000)
    with pytest.raises(ValueError, match=reason):
        model.fit(wider)
    wider[7, 61] = 1
    with pytest.raises(ValueError, match="63"):
        model.transform(wider)
    assert np.array_equal(model.transform(X), before)


def test_a_corpus_without_words_is_refused(X):
    with pytest.raises(ValueError, match="empty corpus: 4 documents"):
        make().fit(np.zeros((4, 60)))
    theta = make().fit(X).transform(np.zeros((2, 60)))
    np.testing.assert_allclose(theta, 1 / 5, rtol=1e-5)


@pytest.mark.parametrize(
    ("options", "shape"),
    [
        (options, shape)
        for options in OPTIONS
        for shape in [(1, 1), (1, 5), (7, 1), (2, 3)]
        if options != "validated" or shape[0] > 1  # see test_one_document_cannot_be_held_out
    ],
)
@pytest.mark.parametrize("n_components", [1, 3])
def test_tiny_corpora(options, shape, n_components):
    settings = OPTIONS[options] | ({"validation_size": 1} if options == "validated" else {})
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
        lam = model.components_.astype(float)
        gamma = infer(kind, *document, lam, model.doc_topic_prior_, n_sweeps=100, tol=1e-3)
        np.testing.assert_allclose(row, normalised(gamma), atol=2e-3)
    gamma = model.transform(X[:20], normalize=False)
    np.testing.assert_allclose(normalised(gamma), theta, rtol=1e-5)
    tokens = np.asarray(X[:20].sum(axis=1)).ravel()
    np.testing.assert_allclose(
        gamma.sum(axis=1), tokens + model.doc_topic_prior_.sum(), rtol=1e-4
    )


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
def test_threads_and_parts_do_not_change_transform(X, fitted, n_jobs, tmp_path, monkeypatch):
    """`n_jobs` is that of today, not of the fit; few documents are not worth a thread."""
    expected = [fitted.transform(X, normalize=normalize) for normalize in (True, False)]
    pools = []

    class Pool(ThreadPoolExecutor):
        def __init__(self, n_threads):
            pools.append(n_threads)
            super().__init__(n_threads)

    monkeypatch.setattr(completion, "ThreadPoolExecutor", Pool)
    monkeypatch.setattr(completion, "PART", 7)
    fitted.save(tmp_path / "m")
    parallel = DPSVILDA.load(tmp_path / "m").set_params(n_jobs=n_jobs)
    assert np.array_equal(parallel.transform(X), expected[0])
    assert not pools
    monkeypatch.setattr(completion, "WORTH_A_THREAD", 1)
    for normalize, theta in zip((True, False), expected, strict=True):
        assert np.array_equal(parallel.transform(X, normalize=normalize), theta)
    assert pools == [resolve_jobs(n_jobs)] * 2 or resolve_jobs(n_jobs) == 1
    assert parallel.score(X) == fitted.score(X)


@pytest.mark.parametrize("n_words", [4, 30])
def test_transform_of_few_or_many_of_the_words(X, fitted, n_words):
    """Rows of words that are not there are left out, or all are taken: it is the same."""
    some = X.copy()
    some.data[some.indices >= n_words] = 0
    some.eliminate_zeros()
    both = fitted.transform(vstack([some, X]).tocsr())
    np.testing.assert_array_equal(fitted.transform(some), both[:300])


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
        assert entry["step"] == steps * i and entry["items"] == n_train * i
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
    for n_words in (-1, 0, 1.5, "a"):
        with pytest.raises((ValueError, TypeError), match="n_words must be an integer >= 1"):
            model.top_words(n_words)


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
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    make(random_state=0).fit(X)
    after = np.random.get_state()[1]  # noqa: NPY002
    assert np.array_equal(after, state), "numpy's global state is not touched"
