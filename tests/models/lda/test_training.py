"""Training of DPSVILDA: it learns, it goes on where it was, it can be followed and ended."""

import json
import logging

import numpy as np
import pytest
from reference.lda import normalised
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from tools.lda_cases import FORMS, OPTIONS, make, mass, pairs, same

from dpsvi import DPSVILDA, as_corpus, load_corpus

pytestmark = pytest.mark.filterwarnings("ignore::dpsvi.errors.CorpusWarning")


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
    # What is learned is within a factor of four of what topics are fitted with: .4 and 1 here.
    assert 0.05 / 4 < sparse < 0.3 and dense > 2 * sparse


@pytest.mark.parametrize("kind", ["collapsed", "mean_field"])
def test_priors_of_a_single_topic(X, kind):
    """theta is 1 whatever alpha is: nothing can be learned of it, and nothing may break."""
    model = make(
        n_components=1, local_step=kind, doc_topic_prior="auto", topic_word_prior="auto",
        batch_size=5, max_iter=5,
    ).fit(X)  # fmt: skip
    assert np.isfinite(model.doc_topic_prior_[0]) and model.doc_topic_prior_[0] > 0
    assert np.all(model.transform(X) == 1)


def test_fixed_priors_stay(X):
    alpha = np.array([0.1, 0.2, 0.3, 0.4, 0.5])
    model = make(doc_topic_prior=alpha, topic_word_prior=0.07).fit(X)
    np.testing.assert_array_equal(model.doc_topic_prior_, alpha)
    assert model.topic_word_prior_ == pytest.approx(0.07, rel=1e-6)
    assert make(doc_topic_prior=2).fit(X).doc_topic_prior_.tolist() == [2.0] * 5
    assert make().fit(X).doc_topic_prior_ == pytest.approx([0.5] * 5)


def test_real_documents(corpora_folder):
    """Newswire: far better than word frequencies, and no worse with two threads."""
    corpus = load_corpus(corpora_folder / "docword.ap.txt.gz", cache=False)
    train, test = corpus.select(slice(0, 2000)), corpus.select(slice(2000, None))

    def evaluate(seed, **options):
        model = DPSVILDA(30, batch_size=64, max_iter=6, random_state=seed, **options).fit(train)
        return model.evaluate(test)

    one = [evaluate(seed) for seed in range(3)]
    two = [evaluate(seed, n_jobs=2) for seed in range(3)]
    assert max(result.perplexity / result.unigram_perplexity for result in one + two) < 0.75
    mean = [np.mean([result.log_likelihood for result in results]) for results in (one, two)]
    assert mean[1] == pytest.approx(mean[0], abs=0.02), "2 % of the perplexity"


# --- going on ----------------------------------------------------------------------------------


def test_one_pass_by_either_door(X):
    """With step sizes that are given; those of a fit depend on its number of passes."""
    settings = {"learning_decay": 0.7}
    assert same(make(max_iter=1, **settings).fit(X), make(**settings).partial_fit(X))


@pytest.mark.parametrize(
    "options", ["fixed priors", "mean_field", "warm", "learned priors", "kept"]
)
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


@pytest.mark.parametrize("chunk", [50, 150, 400])
def test_partial_fit_of_chunks_is_as_good_as_one_pass(known, chunk):
    """Of unknown length, or of a known one: the latter is only the most that N can be."""
    corpus = known.corpus()
    one, parts = [], []
    for seed in range(24):
        settings = dict(n_components=5, doc_topic_prior=None, random_state=seed)
        one.append(DPSVILDA(max_iter=1, **settings).fit(corpus).score(corpus))
        streams = DPSVILDA(**settings), DPSVILDA(total_samples=len(corpus), **settings)
        for stream in streams:
            for start in range(0, len(corpus), chunk):
                stream.partial_fit(corpus.select(slice(start, min(len(corpus), start + chunk))))
        assert same(*streams)
        parts.append(streams[0].score(corpus))
    assert np.mean(parts) > np.mean(one) - 0.02


def test_a_short_last_chunk_does_not_decide(known):
    """Its documents count as much as others."""
    corpus = known.corpus()
    stream = DPSVILDA(5, doc_topic_prior=None, random_state=0)
    stream.partial_fit(corpus.select(slice(0, 398)))
    before = stream.components_
    stream.partial_fit(corpus.select(slice(398, 400)))
    assert np.abs(stream.components_ - before).sum() < 0.2 * before.sum()


def test_a_callback_may_look_at_the_topics(X):
    """What it sees is not kept for the end."""
    seen = []
    model = make(max_iter=2)
    def look(event):
        seen.append(model.components_)
        model.transform(X[:5])

    model.callbacks = [look]
    model.fit(X)
    assert len(seen) == 2 and not np.array_equal(*seen)
    np.testing.assert_allclose(model.components_, model._state.natural()[:, :5].T, rtol=1e-6)
    loaded_sizes = model.components_.sum(axis=1, dtype=np.float64)
    np.testing.assert_allclose(model._sizes, loaded_sizes)


def test_total_samples(X):
    """What the documents stand for: N in (52)."""
    model = make(learning_rate=1.0, batch_size=300, total_samples=3000).partial_fit(X)
    assert mass(model) == pytest.approx(10 * X.sum(), rel=1e-4)
    model = make(learning_rate=1.0, batch_size=300).partial_fit(X)
    assert mass(model) == pytest.approx(X.sum(), rel=1e-4)
    assert mass(model.partial_fit(X)) == pytest.approx(2 * X.sum(), rel=1e-4), "documents seen"


def test_documents_of_several_passes_count_once(X):
    settings = dict(learning_rate=1.0, batch_size=300)
    model = make(**settings, max_iter=5).fit(X)
    assert mass(model.partial_fit(X)) == pytest.approx(2 * X.sum(), rel=1e-4)
    fewer = make(**settings, max_iter=5, total_samples=150).fit(X)
    assert mass(fewer.partial_fit(X)) == pytest.approx(0.5 * X.sum(), rel=1e-4), "as given"


def test_warm_start_on_other_words(X):
    """Those with other names are refused; a frame has to keep its order, a corpus has not."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X.toarray(), columns=[f"w{i}" for i in range(60)])
    model = make(warm_start=True, max_iter=1).fit(frame)
    with pytest.raises(ValueError, match="feature names"):
        model.fit(frame.rename(columns=lambda name: "z" + name))
    assert model.feature_names_in_[0] == "w0"
    words = make(warm_start=True, max_iter=1).fit(as_corpus(X, vocabulary=list(frame.columns)))
    theta = words.transform(frame)
    for other in (as_corpus(X[:, ::-1], list(frame.columns[::-1])), frame[frame.columns[::-1]]):
        np.testing.assert_allclose(words.transform(other), theta, rtol=1e-3, atol=1e-5)
    for other in (as_corpus(X, ["z", *frame.columns[1:]]), frame.rename(columns={"w0": "z"})):
        for method in (words.fit, words.partial_fit, words.transform):
            with pytest.raises(ValueError, match="the word 'z', which .* was not fitted with"):
                method(other)


def test_partial_fit_after_fit(X):
    model = make(learning_decay=0.7).fit(X)
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
        assert entry["items"] % (300 - n) == 0, "the others were trained on"
    json.dumps(model.history_)


@pytest.mark.parametrize(
    ("every", "expected"), [(1.0, [1, 2, 3, 4]), (0.5, np.arange(0.5, 4.1, 0.5)), (2, [2, 4])]
)
def test_evaluate_every(X, every, expected):
    model = make(validation_size=60, evaluate_every=every, max_iter=4, batch_size=24).fit(X)
    scored = [entry["items"] / 240 for entry in model.history_ if "score" in entry]
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
    bar = callback.ProgressBar()
    scores = callback.ScoringMonitor(scoring={"score": lambda e, X, y: e.score(X)})
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


def test_scikit_learn_callbacks_see_the_topics_of_their_pass(X):
    """Also in a second fit, after `components_` has been looked at."""
    pytest.importorskip("sklearn.callback")
    seen = []

    class Look:
        def setup(self, estimator, context):
            pass

        teardown = on_fit_task_begin = setup

        def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
            seen.append(fitted_estimator.components_.copy())

    model = make().fit(X)
    assert model.components_.shape == (5, 60)
    model.set_params(random_state=1).set_callbacks(Look()).fit(X)
    assert len(seen) == 4, "three passes and the fit"
    assert not any(np.array_equal(a, b) for a, b in zip(seen[:2], seen[1:3], strict=True))
    assert np.array_equal(seen[-1], model.components_)


@pytest.mark.parametrize("form", ["gensim generator", "Corpus", "DataFrame"])
def test_scikit_learn_callbacks_can_score_what_can_be_read_once(X, form):
    callback = pytest.importorskip("sklearn.callback")
    scores = callback.ScoringMonitor(scoring={"score": lambda e, X, y: e.score(X)})
    make().set_callbacks(scores).fit(FORMS[form](X, None), np.zeros(300))
    assert len(scores.get_logs().data) == 4


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
