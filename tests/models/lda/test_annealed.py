"""Annealed priors: large ones hold at the end of a fit, and topics are found with small ones."""

from unittest.mock import patch

import numpy as np
import pytest
from reference.lda import TopicCorpus, normalised

from dpsvi import DPSVILDA, VirtualCluster
from dpsvi.cluster.virtual import Timing
from dpsvi.cluster.virtual.virtual_time import VirtualTime
from dpsvi.evaluation.completion import completion_perplexity
from dpsvi.models.lda.annealed import AnnealedPriors

LARGE = {"doc_topic_prior": 0.8, "topic_word_prior": 0.4}
K, DEFAULT_ALPHA, DEFAULT_ETA = 40, 5 / 40, 2 / 40


@pytest.fixture(scope="module")
def titles():
    """Documents of seven tokens: the prior of .8 for each of 40 topics weighs as much as 32."""
    return TopicCorpus(K, 600, 2000, 7, 0.02, 0).corpus()


def make(passes=6, **options):
    options = {**LARGE, "engine": "serial", "random_state": 0, "max_iter": passes, **options}
    return DPSVILDA(K, **options)


def at_once():
    """In this context fits have the priors that were asked for from the beginning."""
    return patch.object(AnnealedPriors, "_begin_part", lambda self, done, n_passes: None)


def same(one, other):
    return np.array_equal(one.components_, other.components_)


def test_large_priors_do_not_keep_topics_alike(titles):
    """The topics are scored with the alpha that the documents are drawn with."""
    train, test = titles.select(np.arange(1800)), titles.select(np.arange(1800, 2000))
    annealed = make(12).fit(train)
    with at_once():
        plain = make(12).fit(train)
    for model in (annealed, plain):
        np.testing.assert_allclose(model.doc_topic_prior_, 0.8)
        assert model.topic_word_prior_ == pytest.approx(0.4)
    annealed, plain = (
        completion_perplexity(normalised(model.components_.astype(float)).T, test, 0.02).perplexity
        for model in (annealed, plain)
    )
    assert annealed < 0.93 * plain


def test_the_last_third_has_the_priors_asked_for(titles):
    seen = []

    def look(event):
        model = event.state.model
        seen.append((event.epoch, model.hyper[0], model.hyper[model.shape[1]], model.prior[0]))

    make(6, evaluate_every=0.5, callbacks=[look]).fit(titles)
    for epoch, alpha, eta, prior in seen:
        late = epoch >= 4
        assert alpha == pytest.approx(0.8 if late else DEFAULT_ALPHA), epoch
        assert eta == pytest.approx(0.4 if late else DEFAULT_ETA), epoch
        assert prior == pytest.approx(eta), epoch


@pytest.mark.parametrize(
    "options",
    [
        {"doc_topic_prior": 0.01, "topic_word_prior": 0.01},
        {"doc_topic_prior": None, "topic_word_prior": None},
        {"learning_rate": 0.05},
        {"learning_decay": 0.7},
        {"local_step": "mean_field"},
        {"max_iter": 1},
        {"early_stopping": True, "validation_size": 50},
    ],
    ids=str,
)
def test_fits_that_are_not_annealed(titles, options):
    """Small priors; steps or an end that the user has chosen; the paper's; too few passes."""
    annealed = make(**options).fit(titles)
    with at_once():
        plain = make(**options).fit(titles)
    assert same(annealed, plain)


def test_each_prior_is_annealed_for_itself(titles):
    """Each topic keeps its share of alpha; words with priors of their own keep them."""
    alpha = np.linspace(0.1, 1.5, K)
    eta = np.full(600, 0.4)
    seen = []

    def look(event):
        seen.append(event.state.model.hyper[:K].copy())

    model = make(6, doc_topic_prior=alpha, topic_word_prior=eta, callbacks=[look]).fit(titles)
    np.testing.assert_allclose(seen[0], alpha * DEFAULT_ALPHA / alpha.mean())
    np.testing.assert_allclose(seen[-1], alpha)
    np.testing.assert_allclose(model.topic_word_prior_, np.full((K, 600), 0.4), rtol=1e-6)


def test_a_fit_that_ends_early_has_the_priors_asked_for(titles):
    model = make(6, callbacks=[lambda event: event.epoch >= 2]).fit(titles)
    assert model.n_iter_ == 2
    np.testing.assert_allclose(model.doc_topic_prior_, 0.8)
    assert model.topic_word_prior_ == pytest.approx(0.4)
    counts = model.components_ - 0.4
    assert counts.sum(dtype=float) == pytest.approx(titles.value.sum(dtype=float), rel=0.01)


def test_with_kept_responsibilities(titles):
    """The passes before them are annealed; the topics are the sum of what is kept and eta."""
    model = make(8, keep_responsibilities=True).fit(titles)
    with at_once():
        plain = make(8, keep_responsibilities=True).fit(titles)
    counts = model.components_ - 0.4
    assert counts.sum(dtype=float) == pytest.approx(titles.value.sum(dtype=float), rel=1e-3)
    assert model.perplexity(titles) < plain.perplexity(titles)


@pytest.mark.parametrize("strategy", ["decay", "displacement", "local_sgd", "push_sum"])
def test_workers_are_told(titles, strategy):
    """Each begins with small priors and ends with those given, which peers have all along."""
    seen: dict[int, list] = {}

    def noted(self, task, n_steps):
        seen.setdefault(self.computing, []).append(task.hyper[0])
        return run(self, task, n_steps)

    run = VirtualTime.run_steps
    cluster = VirtualCluster(n_workers=3, strategy=strategy, timing=Timing(step=1e-3, value=0.0))
    with patch.object(VirtualTime, "run_steps", noted):
        model = make(6, engine="simulated", cluster=cluster).fit(titles)
    assert len(seen) == 3
    for alphas in seen.values():
        assert alphas[0] == pytest.approx(0.8 if strategy == "push_sum" else DEFAULT_ALPHA)
        assert alphas[-1] == pytest.approx(0.8)
    np.testing.assert_allclose(model.doc_topic_prior_, 0.8)
