"""`bound_`: exact at the parameters of documents that inference ends with, and a bound."""

import numpy as np
import pytest
from reference.hdp import mean_weights
from reference.lda import TopicCorpus, document_bound, documents_of, expected_log
from scipy.special import gammaln, psi, softmax

from dpsvi import DPSVIHDP, DPSVILDA
from dpsvi.errors import DivergedError
from dpsvi.families.topics import inference

# Many topics and few tokens: gamma still changes much in the sweep that is the last one.
DRAWN = TopicCorpus(10, n_words=120, n_documents=40, n_tokens=6, alpha=0.05, seed=0)
KINDS = [
    (DPSVILDA, "collapsed"), (DPSVILDA, "mean_field"), (DPSVILDA, "sparse"),
    (DPSVIHDP, "collapsed"), (DPSVIHDP, "mean_field"),
]  # fmt: skip


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: f"{kind[0]._kind}-{kind[1]}")
def fitted(request):
    cls, local_step = request.param
    return cls(50, local_step=local_step, max_iter=5, random_state=0).fit(DRAWN.corpus())


def read(model):
    """Lam and alpha, (topics, words) and (topics,)."""
    if isinstance(model, DPSVILDA):
        alpha = model.doc_topic_prior_
    else:
        alpha = model.doc_concentration_ * mean_weights(model.tables_, model.topic_concentration)
    return model.components_.astype(np.float64), alpha


def explained(ids, gamma, lam):
    """Phi, the best one for this gamma."""
    return softmax(expected_log(gamma) + expected_log(lam)[:, ids].T, axis=1)


def tokens(ids, counts, gamma, lam):
    """E log p(w | z, beta) + E log p(z | theta) - E log q(z), each by itself."""
    phi = explained(ids, gamma, lam)
    weighted = counts[:, None] * phi
    words = (weighted * expected_log(lam)[:, ids].T).sum()
    topics = (weighted * expected_log(gamma)).sum()
    return words + topics - (weighted * np.log(np.maximum(phi, 1e-300))).sum()


def proportions(gamma, alpha):
    """E log p(theta) - E log q(theta); see `document_bound` for the difference in it."""
    constants = [gammaln(a.sum()) - gammaln(a).sum() for a in (alpha, gamma)]
    return constants[0] - constants[1] + (alpha - gamma) @ expected_log(gamma)


def test_every_term_is_that_of_the_gamma_inference_ends_with(fitted, monkeypatch):
    """Numbers of single precision: a document has 6 tokens of some nats each."""
    seen = []

    def document_bounds(*terms):
        seen.append((terms, known(*terms)))
        return seen[-1][1]

    known = inference.document_bounds
    monkeypatch.setattr(inference, "document_bounds", document_bounds)
    corpus = DRAWN.corpus()
    perplexity = fitted.perplexity(corpus, kind="bound")
    (((alpha, gamma, log_norm, lengths), bounds),) = seen
    lam, own_alpha = read(fitted)
    gamma = gamma.astype(np.float64)
    np.testing.assert_allclose(alpha, own_alpha, rtol=1e-12)
    pairs = zip(documents_of(corpus), gamma, strict=True)
    np.testing.assert_allclose(
        log_norm - lengths * psi(gamma.sum(axis=1)),
        [tokens(*document, own, lam) for document, own in pairs], rtol=1e-6,
    )  # fmt: skip
    np.testing.assert_allclose(
        known(alpha, gamma, np.zeros(len(gamma)), np.zeros(len(gamma))),
        [proportions(own, own_alpha) for own in gamma], rtol=1e-9, atol=1e-9,
    )  # fmt: skip
    assert np.log(perplexity) == pytest.approx(-bounds.sum() / corpus.n_tokens, rel=1e-12)
    assert fitted.bound_ == pytest.approx(perplexity, rel=1e-12), "there are less than 1,000"


def converged(ids, counts, lam, alpha):
    """Gamma, from the same start, until it changes no more."""
    logs = expected_log(lam)[:, ids].T
    gamma = np.ones(len(alpha))
    for _ in range(20_000):
        last, gamma = gamma, alpha + counts @ softmax(psi(gamma) + logs, axis=1)
        if np.abs(gamma - last).max() < 1e-9:
            break
    return gamma


def test_bound_is_below_that_of_inference_without_limits_and_approaches_it(fitted, monkeypatch):
    corpus, (lam, alpha) = DRAWN.corpus(), read(fitted)
    bounds = [
        document_bound(*document, converged(*document, lam, alpha), lam, alpha)
        for document in documents_of(corpus)
    ]
    best, found = np.sum(bounds) / corpus.n_tokens, []
    for tol in (1e-3, 1e-4, 1e-6):
        monkeypatch.setattr(inference, "_INFER", dict(tol=tol, n_sweeps=10_000))
        found.append(-np.log(fitted.perplexity(corpus, kind="bound")))
    assert found[0] < found[1] < found[2] + 1e-6, "tighter limits, a higher bound"
    assert found[0] < best - 1e-6 and found[2] == pytest.approx(best, abs=1e-6)


def test_without_a_token_there_is_no_bound(fitted):
    for kind in ("completion", "bound"):
        with pytest.raises(ValueError, match="no tokens to predict"):
            fitted.perplexity(np.zeros((3, 120), int), kind=kind)


def test_topics_that_became_infinite_are_no_fault_of_the_documents():
    lda = DPSVILDA(2, topic_word_prior=1e300, validation_size=5, random_state=0)
    with pytest.raises(DivergedError, match="NaN or infinite"):
        lda.fit(DRAWN.corpus())
