"""Held-out document completion: the one yardstick for every topic model, ours or not.

Each test document's tokens are split in two at random.  The topic proportions are inferred from
one half, the other half is predicted (perplexity B: Hoffman et al. 2013; Wallach et al. 2009)::

    perplexity = exp( - sum over predicted tokens of log sum_k E[theta_dk] E[beta_kw] / tokens )

It is an average over tokens of independent documents: the number of test documents changes its
sampling error and not its value.  No prior term of the corpus is divided by the test size.
"""

from __future__ import annotations

from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import NamedTuple

import numpy as np
from scipy.special import psi

from dpsvi.base import Items
from dpsvi.evaluation.infer import infer, score
from dpsvi.kernels.jit import as_items
from dpsvi.training.signals import Deferred

FLOAT = np.dtype(np.float32)
PART = 4096  # documents whose gamma is in memory at once, in a thread
_LOOK_APART = 0.1  # seconds between two looks for a signal
WORTH_A_THREAD = 1 << 20  # weights of words in topics that are read in a millisecond or two


class Completion(NamedTuple):
    """Result of a document completion."""

    perplexity: float  # exp(-log_likelihood)
    log_likelihood: float  # nats per predicted token
    n_tokens: float  # predicted tokens, a whole number when counts are
    unigram_perplexity: float  # of the corpus-wide word frequencies, on the same tokens


def split_tokens(value, seed: int = 0):
    """Split counts in two: each token goes to either half with probability 1/2.

    The fractional part of a count is one token of that size.
    """
    value = np.asarray(value)
    rng = np.random.default_rng(seed)
    whole = np.floor(value)
    second = rng.binomial(whole.astype(np.int64), 0.5).astype(np.float32)
    part = value - whole
    if part.any():
        second += np.where(rng.random(len(part)) < 0.5, part, 0).astype(np.float32)
    return (value - second).astype(np.float32), second


def infer_documents(basis, alpha, items: Items, *, digamma, tol, n_sweeps, n_jobs: int = 1):
    """Gamma of every document, topics fixed; each on its own: float32, (n_items, n_columns).

    Parameters
    ----------
    basis : float32 array, (n_words, n_columns)
    alpha : float32 array, (n_columns,)
    items : Items
    digamma, tol, n_sweeps
        See :func:`dpsvi.evaluation.infer.infer`.
    n_jobs : int
        Threads; they share nothing, the result does not depend on their number.
    """
    n = len(items.offsets) - 1
    gamma = np.empty((n, len(alpha)), np.float32)
    _over_items(
        n, n_jobs,
        lambda a, b: infer(basis, alpha, items, a, b, digamma, np.float32(tol), n_sweeps, gamma),
    )  # fmt: skip
    return gamma


def explain_documents(basis, gamma, items: Items) -> np.ndarray:
    """Sum_w c_dw log sum_k exp(psi(gamma_dk)) basis_wk of every document: float64, (n_items,).

    The norms of the last sweep of :func:`infer_documents` are those of the gamma before it: with
    the gamma that it leaves they would be no bound.

    Parameters
    ----------
    basis : float32 array, (n_words, n_columns)
    gamma : float32 array, (n_items, n_columns)
        0 in padding columns.
    items : Items
    """
    found = np.zeros(len(gamma))
    for d, (start, stop) in enumerate(zip(items.offsets[:-1], items.offsets[1:], strict=True)):
        counts = items.value[start:stop]
        if counts.any():
            weight = psi(gamma[d].astype(float))  # minus infinity where gamma is 0
            top = weight.max()
            norms = basis[items.index[start:stop][counts > 0]] @ np.exp(weight - top)
            found[d] = counts[counts > 0] @ (top + np.log(norms))
    return found


def infer_proportions(
    basis, alpha, items: Items, proportions, *, normalize, digamma, tol, n_sweeps, n_jobs: int = 1
) -> None:
    """Fill `proportions`, (n_documents, n_topics), with gamma or, if `normalize`, its mean.

    A part at a time, in the threads: nothing else of that size is made, and nothing is left to
    be done in one thread.  The first parameters are those of :func:`infer_documents`.
    """
    n, n_topics = proportions.shape
    n_jobs = min(n_jobs, 1 + items.index.size * len(alpha) // WORTH_A_THREAD)

    def fill(first, last):
        gamma = np.empty((last - first, len(alpha)), np.float32)
        part = items._replace(offsets=items.offsets[first : last + 1])
        infer(basis, alpha, part, 0, last - first, digamma, np.float32(tol), n_sweeps, gamma)
        gamma = gamma[:, :n_topics]
        if normalize:
            np.divide(gamma, gamma.sum(axis=1, keepdims=True), out=proportions[first:last])
        else:
            proportions[first:last] = gamma

    _over_items(n, n_jobs, fill, most=PART)


def _over_items(n, n_jobs, function, most=None):
    """Call ``function(first, last)`` for parts of `n` items, each of at most so many."""
    n_parts = 1 if n_jobs == 1 else 4 * n_jobs
    if most is not None:
        n_parts = max(n_parts, -(-n // most))
    edges = np.linspace(0, n, n_parts + 1).astype(int)
    if n_jobs == 1:
        for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            function(first, last)
        return
    # Delivered between waits: what a signal raises may leave a lock behind that the threads need.
    with Deferred() as signals, ThreadPoolExecutor(n_jobs) as pool:
        parts = zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
        futures = [pool.submit(function, first, last) for first, last in parts]
        try:
            while (found := wait(futures, _LOOK_APART, FIRST_EXCEPTION)).not_done:
                if any(future.exception() for future in found.done):
                    break
                signals.deliver()
        finally:
            pool.shutdown(cancel_futures=True)
    for future in futures:
        future.result()


def completion_perplexity(
    word_probabilities,
    corpus,
    doc_topic_prior,
    *,
    word_counts=None,
    seed=0,
    n_jobs=1,
) -> Completion:
    """Held-out perplexity of fixed topics by document completion.

    Parameters
    ----------
    word_probabilities : array, (n_words, n_topics)
        E[beta], transposed: every column sums to 1.
    corpus : Corpus
        Test documents.
    doc_topic_prior : float or array, (n_topics,)
        alpha, used to infer the proportions.
    word_counts : array, (n_words,), or None
        Training counts for the unigram baseline, smoothed by adding one; None: the baseline is
        the marginal of the topics, equally weighted.
    seed : int
        Of the split.
    n_jobs : int
        Threads; they do not change the result.

    Raises
    ------
    ValueError
        Shapes differ, columns do not sum to 1, or no token is left to predict.
    """
    topics = np.asarray(word_probabilities, dtype=np.float32)
    if topics.ndim != 2 or topics.shape[0] != corpus.n_features:
        raise ValueError(
            f"word_probabilities must have one row for each of the {corpus.n_features} words, "
            f"got shape {topics.shape}"
        )
    sums = topics.sum(axis=0, dtype=np.float64)
    if not np.allclose(sums, 1, atol=1e-3):
        raise ValueError(
            f"columns of word_probabilities must sum to 1, got {sums.min():g} to {sums.max():g}"
        )
    if topics.min() < 0:
        raise ValueError(f"word_probabilities must be >= 0, got {topics.min():g}")
    impossible = corpus.index[topics.max(axis=1)[corpus.index] == 0]
    if len(impossible):
        raise ValueError(f"no topic gives word {impossible.min()} a probability above 0")
    alpha = np.broadcast_to(np.asarray(doc_topic_prior, np.float32), topics.shape[1]).copy()
    if not np.all((alpha > 0) & np.isfinite(alpha)):
        raise ValueError(f"doc_topic_prior must be > 0, got {doc_topic_prior!r}")
    topics = np.ascontiguousarray(topics)
    first, second = split_tokens(corpus.value, seed)
    n_tokens = float(second.sum(dtype=np.float64))
    if n_tokens == 0:
        raise ValueError("no tokens to predict: the documents are empty or too short to split")

    seen = as_items(corpus.offsets, corpus.index, first, FLOAT)
    gamma = infer_documents(
        topics, alpha, seen, digamma=True, tol=1e-3, n_sweeps=100, n_jobs=n_jobs
    )
    theta = gamma / gamma.sum(axis=1, keepdims=True)
    log_likelihood = np.empty(corpus.n_items)
    score(
        topics, theta, as_items(corpus.offsets, corpus.index, second, FLOAT), 0, corpus.n_items,
        log_likelihood,
    )  # fmt: skip
    baseline = topics.mean(axis=1) if word_counts is None else np.asarray(word_counts) + 1.0
    frequencies = baseline / baseline.sum(dtype=np.float64)
    predicted = second > 0
    unigram = second[predicted] @ np.log(frequencies[corpus.index[predicted]])
    mean = float(log_likelihood.sum() / n_tokens)
    return Completion(float(np.exp(-mean)), mean, n_tokens, float(np.exp(-unigram / n_tokens)))
