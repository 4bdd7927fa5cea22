"""Priors that are learned: eta after every pass, alpha when a fit has ended."""

import numpy as np
import pytest
from reference.lda import TopicCorpus, collapsed_step, documents_of
from scipy.special import gammaln

from dpsvi import DPSVIHDP, DPSVILDA, VirtualCluster, as_corpus
from dpsvi.cluster.virtual import Timing
from dpsvi.evaluation.completion import completion_perplexity
from dpsvi.families.topics import learned_priors
from dpsvi.families.topics.learned_priors import (
    ETA_RANGE,
    RANGE,
    fixed_point_eta,
    learned_concentration,
    learned_eta,
    too_small,
)
from dpsvi.families.topics.matrix import FLOAT
from dpsvi.families.topics.priors import FORMING
from dpsvi.families.topics.without_own import WithoutOwn, topic_tokens
from dpsvi.kernels.jit import as_items


def items_of(corpus):
    return as_items(corpus.offsets, corpus.index, corpus.value, FLOAT)


def test_topics_without_the_own_counts_of_a_document(corpus):
    lda = DPSVILDA(5, max_iter=2, max_doc_update_iter=9, mean_change_tol=0, random_state=0)
    state = lda.fit(corpus)._state
    found = WithoutOwn(state, items_of(corpus), 5, np.random.default_rng(0))
    part = found.part(5, 40)
    alpha, eta = state.model.hyper[:5], lda.topic_word_prior_
    lam = lda.components_.astype(np.float64)
    documents, first = documents_of(corpus), 0
    order = np.random.default_rng(0).permutation(corpus.n_items)
    assert np.array_equal(found.chosen, order)
    for d in order[5:25]:
        ids, counts = documents[d]
        gamma = alpha + counts.sum() / 5
        _, own = collapsed_step(ids, counts, lam, alpha, 9, 0.0, gamma)
        without = np.maximum(lam[:, ids].T - own, eta) / (lam.sum(axis=1) - own.sum(axis=0))
        rows = part.basis[first : first + len(ids)]
        np.testing.assert_array_equal(
            part.seen.value[first : first + len(ids)] + part.hidden.value[first : first + len(ids)],
            counts,
        )
        np.testing.assert_allclose(rows, without, rtol=2e-2, atol=1e-6)
        first += len(ids)
    visible = found.seen.value.sum() + found.hidden.value.sum()
    assert visible == sum(documents[d][1].sum() for d in order), "no token is lost"


@pytest.mark.parametrize("n_tokens", [15, 40])
def test_what_is_learned_grows_with_the_truth(n_tokens):
    """Documents of one topic each want a smaller alpha than those of all topics."""
    answers = []
    for alpha in (0.002, 5.0):
        drawn = TopicCorpus(20, 300, n_documents=1500, n_tokens=n_tokens, alpha=alpha, seed=5)
        lda = DPSVILDA(20, max_iter=15, random_state=0).fit(drawn.corpus())
        assert np.ptp(lda.doc_topic_prior_) == 0
        answers.append(lda.doc_topic_prior_[0])
    assert answers[1] >= 2 * answers[0]


@pytest.mark.parametrize("estimator", [DPSVILDA, DPSVIHDP])
@pytest.mark.parametrize("kind", ["collapsed", "mean_field"])
def test_documents_without_topics_are_not_much_worse_than_counted_words(estimator, kind):
    """Short documents, all alike, and many topics: priors that run away show themselves here.

    The mean of three corpora: one of so few tokens may have a learned prior by chance.
    """
    ratios = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.multinomial(6, rng.dirichlet(np.full(300, 0.5)), 1200)
        model = estimator(40, local_step=kind, max_iter=10, random_state=0).fit(X[:1000])
        result = model.evaluate(X[1000:])
        ratios.append(result.perplexity / result.unigram_perplexity)
    assert np.mean(ratios) < 1.1 and max(ratios) < 1.2


def test_only_what_was_asked_for_is_learned(X):
    settings = dict(n_components=5, max_iter=2, random_state=0)
    alpha = [0.1, 0.2, 0.3, 0.4, 0.5]
    given = DPSVILDA(doc_topic_prior=alpha, topic_word_prior=0.07, **settings).fit(X)
    np.testing.assert_array_equal(given.doc_topic_prior_, alpha)
    fixed = DPSVILDA(doc_topic_prior=None, topic_word_prior=None, **settings).fit(X)
    assert fixed.doc_topic_prior_ == pytest.approx(np.full(5, 0.5))
    assert fixed.topic_word_prior_ == pytest.approx(0.4)
    learned = DPSVILDA(topic_word_prior=None, **settings).fit(X)
    assert learned.doc_topic_prior_[0] != fixed.doc_topic_prior_[0]
    np.testing.assert_array_equal(learned.components_, fixed.components_)  # alpha: afterwards
    learned = DPSVILDA(doc_topic_prior=None, **settings).fit(X)
    assert learned.topic_word_prior_ != fixed.topic_word_prior_
    assert learned.doc_topic_prior_ == pytest.approx(np.full(5, 0.5))
    hdp = DPSVIHDP(10, doc_concentration=2.0, max_iter=2, random_state=0).fit(X)
    assert hdp.doc_concentration_ == 2.0


def test_partial_fit_keeps_what_a_fit_has_learned(X):
    model = DPSVILDA(5, max_iter=3, random_state=0).fit(X)
    learned = model.doc_topic_prior_, model.topic_word_prior_
    model.partial_fit(X[:100])
    assert np.array_equal(model.doc_topic_prior_, learned[0])
    assert model.topic_word_prior_ == learned[1]


@pytest.mark.parametrize("n_topics", [1, 3])
def test_documents_of_one_token_say_nothing(n_topics):
    X = np.eye(30, dtype=int)
    model = DPSVILDA(n_topics, max_iter=2, random_state=0).fit(X)
    assert np.all(np.isfinite(model.doc_topic_prior_) & (model.doc_topic_prior_ > 0))


@pytest.mark.parametrize(
    "perplexities, expected",
    [
        ({0.5: 102, 1: 100, 2: 102}, 2),
        ({0.25: 100, 0.5: 100.5, 1: 101.2, 2: 103}, 0.5),
        ({0.5: 100.1, 1: 100, 2: 100.2, 4: 99.5, 8: 101}, 8),  # what is a little worse is no end
        ({2.0**i: 100 - i for i in range(-6, 7)}, RANGE),
    ],
)
def test_twice_the_best_concentration_is_taken(perplexities, expected, monkeypatch):
    """Topics of few tokens know of the documents that they are judged by."""

    class Without:
        n_hidden = 1000.0

        def __init__(self, *given):
            pass

        def __len__(self):
            return 10

        def tokens_a_word(self, shares):
            return 0.0

        def part(self, first, last):
            return self

        def log_likelihoods(self, alpha):
            each = -self.n_hidden * np.log(perplexities.get(float(np.sum(alpha)) / 5, 200))
            return np.full(10, each / 10)

    monkeypatch.setattr(learned_priors, "WithoutOwn", Without)
    found = learned_concentration(None, None, np.full(2, 0.5), 5.0, None)
    assert found == 5 * expected


@pytest.mark.parametrize("alpha", [0.1, 0.3, 1.0])
def test_topics_of_many_tokens_ask_for_the_right_alpha(alpha):
    """Few words and many documents: what the fit's documents want is what new ones want."""
    factors, found = (0.25, 0.5, 2**-0.5, 1.0, 2**0.5, 2.0, 4.0), []
    for seed in range(5):
        drawn = TopicCorpus(5, 60, n_documents=3000, n_tokens=60, alpha=alpha, seed=seed)
        lda = DPSVILDA(5, max_iter=20, random_state=0).fit(drawn.counts[:2000])
        topics = np.ascontiguousarray(lda.components_.T / lda.components_.sum(axis=1))
        test, learned = as_corpus(drawn.counts[2000:]), lda.doc_topic_prior_[0]
        found.append([completion_perplexity(topics, test, f * learned).perplexity for f in factors])
        assert found[-1][3] < 1.005 * min(found[-1])
    mean = dict(zip(factors, np.mean(found, axis=0), strict=True))
    assert mean[2.0] > mean[1.0], "twice as much is worse"


def test_factor_goes_by_the_topics_in_use(corpus):
    """Topics that no document is expected to have do not count."""
    state = DPSVILDA(5, max_iter=1, random_state=0).fit(corpus)._state
    items = items_of(corpus)
    without = WithoutOwn(state, items, 5, np.random.default_rng(0))
    per_word = items.value.sum() / corpus.n_features
    assert without.tokens_a_word(np.full(5, 0.2)) == pytest.approx(per_word / 5)
    assert without.tokens_a_word(np.array([0.5, 0.5, 0, 0, 0])) == pytest.approx(per_word / 2)
    factors = [too_small(tokens) for tokens in (0, 0.1, 1, 10, 1e9)]
    assert factors[0] == 2 and factors[-1] == pytest.approx(1) and factors == sorted(factors)[::-1]


def test_documents_are_asked_until_they_tell_the_best(monkeypatch):
    """Differences like those of real documents: chance may hide the best from a few of them."""
    rng, truth, asked = np.random.default_rng(0), {0.5: 0.3, 1: 0.0, 2: 0.04, 4: 0.5}, []

    class Without:
        n_hidden = 1000.0

        def __init__(self, *given):
            self.each = {t: -2 - mean + rng.normal(size=2000) for t, mean in truth.items()}

        def __len__(self):
            return 2000

        def tokens_a_word(self, shares):
            return 0.0

        def part(self, first, last):
            self.span = slice(first, last)
            return self

        def log_likelihoods(self, alpha):
            total = float(np.sum(alpha)) / 5
            asked.append((total, self.span.start))
            return self.each.get(total, np.full(2000, -50.0))[self.span]

    monkeypatch.setattr(learned_priors, "WithoutOwn", Without)
    found = []
    for _ in range(20):
        found.append(learned_concentration(None, None, np.full(2, 0.5), 5.0, None) / 10)
    assert set(found) <= {1, 2} and found.count(1) >= 15
    assert {total for total, first in asked if first} == {0.5, 1, 2}, "others are out at once"
    assert (4, 0) in asked and (0.5, 1600) not in asked


def test_ranges(corpus):
    """However little the documents say, what is learned stays near what was used."""
    lda = DPSVILDA(5, max_iter=1, random_state=0).fit(corpus)
    state, shares = lda._state, np.full(5, 0.2)
    for used in (1e-3, 1.0, 1e3):
        found = learned_concentration(
            state, items_of(corpus), shares, used, np.random.default_rng(0)
        )
        assert used / RANGE <= found <= used * RANGE
    sizes = topic_tokens(state, 5)
    most = max(np.quantile(sizes, 0.1) / 3, sizes.mean() / 30) / corpus.n_features
    for first in (1e-4, 0.01, 1.0, 100.0):
        found = learned_eta(state, 5, first)
        assert first / ETA_RANGE <= found <= min(ETA_RANGE * first, max(first, 1.01 * most))


def etas_of(model, data, every=0.5) -> list[tuple[float, float]]:
    """Eta in use at each look of a fit, with the epoch."""
    seen = []

    def look(event):
        seen.append((event.epoch, float(event.state.model.prior.flat[0])))

    model.set_params(evaluate_every=every, callbacks=[look]).fit(data)
    return seen


@pytest.mark.parametrize("estimator", [DPSVILDA, DPSVIHDP])
def test_eta_is_learned_after_every_pass(estimator, corpus):
    """At the same moments however often the observer looks."""
    model = estimator(10, max_iter=4, engine="serial", random_state=0)
    seen = etas_of(model, corpus)
    assert [epoch for epoch, _ in seen] == pytest.approx(np.arange(0.5, 4.1, 0.5), abs=0.02)
    values = [eta for _, eta in seen]
    assert values[0] == pytest.approx(0.2), "2 / K"
    assert values[1] != values[0] and values[1] == values[2] and values[3] == values[4]
    whole = etas_of(estimator(10, max_iter=4, engine="serial", random_state=0), corpus, 1.0)
    assert [eta for _, eta in whole] == values[1::2]


def rare_topics(seed, n_topics=120, n_words=2000):
    """Few documents of many topics, some rare; the rare ones have few tokens for so many words."""
    rng = np.random.default_rng(seed)
    often = 1 / np.arange(1, n_topics + 1)
    topics = rng.dirichlet(0.02 * np.linspace(0.1, 6, n_words), n_topics)
    chosen = rng.choice(n_topics, size=(220, 3), p=often / often.sum())
    return np.array([rng.multinomial(600, topics[three].mean(axis=0)) for three in chosen])


@pytest.mark.parametrize("seed", [0, 1])
def test_eta_does_not_empty_small_topics(seed):
    counts = rare_topics(seed)
    fixed, learned = (
        DPSVILDA(
            120, max_iter=30, topic_word_prior=prior, engine="serial", random_state=seed
        ).fit(counts[:200]) for prior in (None, "auto")
    )  # fmt: skip
    assert learned.topic_word_prior_ > 1.5 * fixed.topic_word_prior_
    sizes = learned.components_.sum(axis=1) - 2000 * learned.topic_word_prior_
    assert np.sum(sizes > 0.1 * sizes.mean()) >= 115
    assert learned.perplexity(counts[200:]) < fixed.perplexity(counts[200:])


def test_eta_only_falls_once_topics_have_formed():
    """It would rise by what small topics lose, and they by what it rises."""
    model = DPSVILDA(120, max_iter=30, engine="serial", random_state=0)
    etas = [eta for _, eta in etas_of(model, rare_topics(0), 1.0)]
    assert len(etas) == 30 and np.all(np.diff(etas[FORMING - 1 :]) <= 0)
    assert model.topic_word_prior_ > etas[-1], "it is learned once more at the end"


def test_topics_that_lose_their_tokens_bound_eta_until_they_are_empty(corpus):
    """Nine topics of 1,000 tokens and ten of few; the large ones ask for a large eta."""
    lda = DPSVILDA(19, max_iter=1, random_state=0, engine="serial").fit(corpus)
    state, n_words = lda._state, corpus.n_features
    learned = {}
    for tokens in (10, 0.5):
        sizes = np.repeat([1000, tokens], [9, 10])
        state.shared.rows[:n_words, :19] = sizes / (n_words * state.scale)
        state.recount()
        learned[tokens] = learned_eta(state, 19, 12 / n_words)  # stands for 12 tokens at first
    assert learned[10] == pytest.approx((9 * 1000 + 10 * 10) / 19 / 30 / n_words, rel=1e-3)
    assert learned[0.5] > 5 * learned[10]


def test_mean_field_that_empties_topics_does_so_with_the_eta_it_began_with(corpus):
    model = DPSVIHDP(10, local_step="mean_field", max_iter=3, engine="serial", random_state=0)
    assert {eta for _, eta in etas_of(model, corpus)} == {np.float32(0.3)}


@pytest.mark.parametrize("eta, most", [(0.02, 1.005), (0.3, 0.99), (1.0, 0.995)])
def test_topics_with_the_eta_they_were_drawn_with_predict_better(eta, most, rng):
    """Three times as many topics as there are, whose words are few or many."""
    topics = rng.dirichlet(np.full(400, eta), 10)
    theta = rng.dirichlet(np.full(10, 0.1), 1500)
    counts = rng.multinomial(80, theta @ topics)
    train, test = counts[:1200], counts[1200:]
    learned, fixed = (
        np.mean([
            DPSVILDA(30, topic_word_prior=prior, max_iter=15, random_state=seed).fit(train)
            .perplexity(test) for seed in range(2)
        ])
        for prior in ("auto", None)
    )  # fmt: skip
    assert learned < most * fixed


@pytest.mark.parametrize("more", [{}, {"keep_responsibilities": True, "doc_topic_prior": 3.0}])
@pytest.mark.parametrize("after", [2.4, 3.4, 4.4, 5.0])
def test_a_fit_that_is_resumed_has_the_eta_it_had(more, after, corpus, tmp_path):
    """Interrupted between passes and in them, in those that keep responsibilities, too."""
    settings = dict(max_iter=5, engine="serial", evaluate_every=0.5, random_state=0, **more)

    def make(**more):
        kept = dict(checkpoint_dir=tmp_path, checkpoint_seconds=0)
        return DPSVILDA(10, **settings, **kept, **more)

    def interrupt(event):
        if event.epoch >= after - 1e-9:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make(callbacks=[interrupt]).fit(corpus)
    resumed = make().resume(corpus)
    whole = DPSVILDA(10, **settings).fit(corpus)
    assert np.array_equal(resumed.components_, whole.components_)
    assert resumed.topic_word_prior_ == whole.topic_word_prior_


@pytest.mark.parametrize("estimator", [DPSVILDA, DPSVIHDP])
@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("end", [0.5, 1.0, 1.5, 4.0])
def test_the_last_eta_is_that_of_the_last_topics(estimator, kept, end, corpus):
    """However a fit ends: by a callback in the middle of a pass, or after passes that keep."""
    seen = []

    def look(event):
        seen.append(float(event.state.model.prior.flat[0]))
        return event.epoch >= end - 1e-9

    model = estimator(
        10, max_iter=4, engine="serial", keep_responsibilities=kept, evaluate_every=0.5,
        random_state=0, callbacks=[look],
    ).fit(corpus)  # fmt: skip
    state, found = model._state, model.topic_word_prior_
    state.model.prior[...] = seen[-1]  # what was in use before the end
    assert learned_eta(state, 10, 0.2) == pytest.approx(found) and found != seen[-1]


def test_a_fit_that_goes_on_begins_with_what_was_learned(corpus):
    """Not where eta empties topics, and not where it was given for each word."""
    settings = dict(max_iter=2, engine="serial", random_state=0, warm_start=True)
    for model, stays in (
        (DPSVILDA(10, **settings), False), (DPSVIHDP(10, **settings), False),
        (DPSVIHDP(10, local_step="mean_field", **settings), True),
    ):  # fmt: skip
        learned = model.fit(corpus).topic_word_prior_
        first = etas_of(model, corpus)[0][1]
        assert first == pytest.approx(0.3 if stays else learned)
    for given in ({"topic_word_prior": np.full(corpus.n_features, 0.1)}, {"seed_words": {0: [1]}}):
        model = DPSVILDA(10, **settings, **given).fit(corpus)
        model.set_params(seed_words=None, topic_word_prior="auto")
        assert etas_of(model, corpus)[0][1] == pytest.approx(0.2)


def test_an_interrupted_fit_that_went_on_keeps_the_eta_of_its_topics(corpus):
    model = DPSVILDA(10, max_iter=4, engine="serial", random_state=0, warm_start=True).fit(corpus)
    seen = []

    def interrupt(event):
        seen.append(float(event.state.model.prior.flat[0]))
        if event.epoch > 1.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.set_params(callbacks=[interrupt]).fit(corpus)
    assert model.topic_word_prior_ == seen[-1]


def test_topics_without_seeds_are_not_guided(corpus):
    for seeds in ({}, [], {0: []}, [[], []]):
        model = DPSVILDA(10, seed_words=seeds, max_iter=1, random_state=0).fit(corpus)
        assert model.topic_word_prior_ != pytest.approx(0.2, rel=1e-3)


@pytest.mark.parametrize("strategy, learns", [("decay", True), ("gossip", False)])
def test_workers_have_the_eta_that_was_learned(strategy, learns, corpus):
    """Without a master it is learned when the fit has ended."""
    cluster = VirtualCluster(strategy=strategy, n_workers=3, timing=Timing(1e-4, 1e-9))
    seen = etas_of(
        DPSVILDA(10, engine="simulated", cluster=cluster, max_iter=4, random_state=0), corpus, 1.0
    )
    assert (len({eta for _, eta in seen}) > 1) == learns


@pytest.mark.parametrize("eta", [0.01, 0.1, 1.0])
def test_fixed_point_eta(eta, rng):
    """Raises the likelihood of the counts to its maximum."""
    counts = rng.multinomial(3000, rng.dirichlet(np.full(400, eta), 8)).T.astype(np.float32)

    def log_likelihood(e):
        n, sums = counts.shape[0], counts.sum(axis=0, dtype=np.float64)
        each = gammaln(n * e) - gammaln(sums + n * e) + (gammaln(counts + e) - gammaln(e)).sum(0)
        return each.sum()

    totals, found = counts.sum(axis=0, dtype=np.float64), 0.3
    for _ in range(100):
        found = fixed_point_eta(found, counts.astype(np.float64), totals, len(counts))
    assert found == pytest.approx(eta, rel=0.2)
    # Whole counts are taken as Poisson means: near the maximum, not at it.
    assert log_likelihood(found) >= max(log_likelihood(found * f) for f in (0.8, 1.25))
