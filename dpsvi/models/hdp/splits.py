"""Topics cut in two, by which documents use which of their words.

What a document has of a topic, its words weighted by their responsibilities, is a point; a cut is a
mixture of two multinomials of these.  EM begins from the sides of the axis of correspondence
analysis, along which the words that documents have differ most from what they have by chance.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import expit, xlogy

from dpsvi.base import Items
from dpsvi.evaluation.completion import infer_documents
from dpsvi.training.items import count

LEAST = 0.5  # tokens of a topic in a document; one with less does not have it
FEWEST = 4  # documents of a topic that is cut
ROUNDS = 10  # of EM
_POWERS = 15  # of the matrix whose axis is looked for
_PART = 1 << 16  # words of documents that are looked at at once


class Split(NamedTuple):
    """How one topic becomes two."""

    topic: int
    words: np.ndarray  # (n,): those that are known to be in it
    share: np.ndarray  # (n,): of their counts, what goes to the new one
    rest: float  # share of all other words, and of the tables
    gain: float  # nats: what two distributions of words explain better than one


def splits(basis, alpha, items: Items, topics, eta: float, n_jobs: int = 1) -> list[Split]:
    """The best cut of each of these topics that has documents, the one that gains most first.

    Parameters
    ----------
    basis : float32 array, (n_words, n_topics)
        E beta.
    alpha : float32 array, (n_topics,)
    items : Items
        All documents: what a few say would not be what is in the topics.
    topics : int array
    eta : float
        Prior of a word.
    n_jobs : int
        Threads; they do not change the result.
    """
    gamma = infer_documents(
        basis, alpha, items, digamma=True, tol=1e-3, n_sweeps=50, n_jobs=n_jobs
    )
    document = np.repeat(np.arange(count(items)), np.diff(items.offsets))
    ratio = items.value / _norms(basis, gamma, document, items.index)
    found = []
    for k in topics:
        own = np.flatnonzero((gamma[:, k] - alpha[k] >= LEAST)[document])
        counts = ratio[own] * gamma[document[own], k] * basis[items.index[own], k]
        documents, d = np.unique(document[own], return_inverse=True)
        words, w = np.unique(items.index[own], return_inverse=True)
        if len(documents) >= FEWEST and len(words) > 1:
            found.append(Split(int(k), words, *_cut(csr_matrix((counts, (d, w))), eta)))
    return sorted(found, key=lambda split: -split.gain)


def _norms(basis, gamma, document, index):
    """sum_k gamma_dk beta_wk of every word of every document."""
    norms = np.empty(len(index))
    for first in range(0, len(index), _PART):
        part = slice(first, first + _PART)
        norms[part] = np.einsum("ik,ik->i", gamma[document[part]], basis[index[part]])
    return norms


def _cut(counts, eta):
    """Shares of the words, of all counts, and the gain, from (n_documents, n_words)."""
    share, total = (_axis(counts) > 0).astype(np.float64), counts.sum(axis=0).A1
    for _ in range(ROUNDS):
        new = counts.T @ share
        logs = np.log((new + eta) / (new + eta).sum())
        logs -= np.log((total - new + eta) / (total - new + eta).sum())
        share = expit(counts @ logs + np.log((new.sum() + 1) / (total.sum() - new.sum() + 1)))
    new = np.clip(counts.T @ share, 0.0, total)
    rest = new.sum() / total.sum()
    gain = _explained(new) + _explained(total - new) - _explained(total)
    return (new + eta * rest) / (total + eta), rest, gain


def _explained(counts):
    """Log-likelihood of words by their own frequencies, in nats."""
    return xlogy(counts, counts).sum() - xlogy(counts.sum(), counts.sum())


def _axis(counts):
    """Place of each document on the first axis of correspondence analysis, but for its scale."""
    by_document, by_word = np.sqrt(counts.sum(axis=1).A1), np.sqrt(counts.sum(axis=0).A1)
    v = np.random.default_rng(0).normal(size=len(by_word)) * by_word
    for _ in range(_POWERS):
        # The largest singular vectors, `by_document` and `by_word`, are those of chance.
        v -= by_word * (by_word @ v) / (by_word @ by_word)
        u = (counts @ (v / by_word)) / by_document
        v = (counts.T @ (u / by_document)) / by_word
        v /= np.linalg.norm(v) or 1.0
    return u / by_document
