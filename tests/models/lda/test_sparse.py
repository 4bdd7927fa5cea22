"""The local step of few topics a document, against a slow one that chooses them from all."""

import numpy as np
import pytest
from reference.lda import documents_of, statistics
from tools.lda_cases import found_statistics, make

from dpsvi import DPSVILDA, VirtualCluster
from dpsvi.kernels.jit import as_items, compile_local
from dpsvi.models.lda.local_steps.sparse import LISTED
from dpsvi.models.lda.model import make_model
from dpsvi.training.state import State
from dpsvi.training.task import make_works

ETA, SWEEPS = 0.05, 7


class Step:
    """Calls of the local step by one thread, from topics that may change between them."""

    def __init__(self, corpus, n_topics, alpha, eta=ETA):
        self.items = as_items(corpus.offsets, corpus.index, corpus.value, np.dtype(np.float32))
        self.model = make_model(
            corpus.n_features, n_topics, alpha, eta, local_step="sparse", n_sweeps=SWEEPS, tol=0.0
        )
        self.state = State.resume(self.model, np.zeros(self.model.shape, np.float32), 1)
        (self.work,) = make_works(
            self.model, self.items, corpus.n_items, 1, self.state.shared.thread_memory
        )

    def set_topics(self, lam):
        """Let the topics be `lam`, (n_topics, n_words)."""
        prior = np.broadcast_to(self.model.prior, self.model.shape)[:, : len(lam)]
        self.state.shared.rows[:, : len(lam)] = lam.T - prior
        self.state.recount()

    def __call__(self, batch):
        """Statistics of all words, (n_words, n_topics)."""
        shared, work, model = self.state.shared, self.work, self.model
        work.totals[:] = shared.totals.sum(axis=0)
        local = compile_local(model.local, model.real)
        n = local(shared, 1.0, model.hyper, self.items, np.asarray(batch, np.int32), work)
        stats = found_statistics(work, n, model.shape)
        assert not stats[:, model.used_columns :].any(), "padding"
        return stats[:, : model.used_columns]


def expected_statistics(kind, corpus, batch, lam, alpha):
    documents = documents_of(corpus)
    return statistics(kind, [documents[d] for d in batch], lam, alpha, n_sweeps=SWEEPS)[0].T


def some_topics(corpus, n_topics, rng):
    return ETA + rng.gamma(0.1, 20.0, size=(n_topics, corpus.n_features))


@pytest.mark.parametrize("n_topics", [40, 300])
def test_a_document_is_explained_by_the_topics_with_most_votes(corpus, n_topics, rng):
    batch, alpha = range(0, 60, 3), rng.uniform(0.01, 0.1, n_topics)
    lam, step = some_topics(corpus, n_topics, rng), Step(corpus, n_topics, alpha)
    step.set_topics(lam)
    stats, expected = step(batch), expected_statistics("sparse", corpus, batch, lam, alpha)
    np.testing.assert_allclose(stats, expected, rtol=2e-3, atol=2e-3)
    tokens = np.asarray(corpus.to_csr()[list(batch)].sum(axis=0)).ravel()
    np.testing.assert_allclose(stats.sum(axis=1), tokens, rtol=1e-5)


def test_few_topics_in_all_are_those_of_the_collapsed_step(corpus, rng):
    n_topics, batch = LISTED, range(30)
    alpha = np.full(n_topics, 0.1)
    lam, step = some_topics(corpus, n_topics, rng), Step(corpus, n_topics, alpha)
    step.set_topics(lam)
    expected = expected_statistics("collapsed", corpus, batch, lam, alpha)
    np.testing.assert_allclose(step(batch), expected, rtol=1e-3, atol=2e-4)


def test_words_have_priors_of_their_own(corpus, rng):
    n_topics, batch, alpha = 40, range(20), np.full(40, 0.1)
    eta = rng.uniform(0.01, 2.0, (n_topics, corpus.n_features))
    lam, step = eta + some_topics(corpus, n_topics, rng), Step(corpus, n_topics, alpha, eta)
    step.set_topics(lam)
    expected = expected_statistics("sparse", corpus, batch, lam, alpha)
    np.testing.assert_allclose(step(batch), expected, rtol=2e-3, atol=2e-3)


def test_words_learn_of_topics_that_change(corpus, rng):
    """Lists are looked at again: soon after the first visit, ever more rarely later on."""
    n_topics, alpha, batch = 640, np.full(640, 0.1), range(40)
    first, then = some_topics(corpus, n_topics, rng), some_topics(corpus, n_topics, rng)
    step = Step(corpus, n_topics, alpha)
    step.set_topics(first)
    step(batch)
    step.set_topics(then)
    expected = expected_statistics("sparse", corpus, batch, then, alpha)
    apart = [np.abs(step(batch) - expected).sum() / expected.sum() for _ in range(8)]
    assert apart[-1] < 0.01 < 0.1 < apart[0]


def test_memory_of_a_thread_does_not_grow_with_the_topics(corpus):
    few, many = (Step(corpus, n_topics, 0.1).work for n_topics in (100, 10_000))
    assert few.stats.nbytes == many.stats.nbytes and few.kept.nbytes == many.kept.nbytes
    assert not many.expected.size


@pytest.mark.parametrize("pattern", ["alike", "one topic has all", "huge", "none seen"])
def test_extremes_give_every_token_to_a_topic(corpus, pattern):
    n_topics, lam = 40, np.full((40, corpus.n_features), 1e-4)
    if pattern == "one topic has all":
        lam[3] += 1e6
    elif pattern == "huge":
        lam += 1e9
    elif pattern == "alike":
        lam += 1.0
    step = Step(corpus, n_topics, np.full(n_topics, 1e-3), 1e-4)
    step.set_topics(lam)
    stats = step(range(corpus.n_items))
    tokens = np.bincount(corpus.index, weights=corpus.value, minlength=corpus.n_features)
    np.testing.assert_allclose(stats.sum(axis=1), tokens, rtol=1e-4)


def test_many_topics_are_found_as_by_the_collapsed_step(rng):
    """More topics than a document has; the bound is on what is held out."""
    topics = rng.dirichlet(np.full(400, 0.03), 60)
    theta = rng.dirichlet(np.full(60, 0.05), 1500)
    X = rng.poisson(80 * theta @ topics)
    sparse, dense = (
        DPSVILDA(60, local_step=step, random_state=0).fit(X[:1300]).perplexity(X[1300:])
        for step in ("sparse", "collapsed")
    )
    known = X[:1300].sum(axis=0) + 0.01
    counted = np.exp(-(X[1300:] @ np.log(known / known.sum())).sum() / X[1300:].sum())
    assert sparse < 1.03 * dense < 0.6 * counted


def test_what_does_not_go_together_is_refused(X):
    with pytest.raises(ValueError, match="warm_documents keeps all topics"):
        make(local_step="sparse", warm_documents=True).fit(X)
    with pytest.raises(ValueError, match="keep_responsibilities needs local_step='collapsed'"):
        make(local_step="sparse", keep_responsibilities=True).fit(X)
    cluster = VirtualCluster(local_decay="as_read")
    with pytest.raises(ValueError, match="local_decay='as_read' over-writes whole rows"):
        make(local_step="sparse", engine="simulated", cluster=cluster).fit(X)
