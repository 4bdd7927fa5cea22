"""Measures of topics by their top words, and of clusters of documents by their labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import linear_sum_assignment

_EPSILON = 1e-12  # added to the share of documents that hold both words, as in gensim


def top_words(counts: np.ndarray, n: int) -> np.ndarray:
    """Return the `n` most probable words of each topic, the first one first.

    Parameters
    ----------
    counts : array, (n_words, n_topics)
    n : int

    Returns
    -------
    int array, (n_topics, n)
    """
    return np.argsort(-counts, axis=0, kind="stable")[:n].T


def npmi(top: np.ndarray, corpus) -> float:
    """Mean normalised pointwise mutual information [1]_ of all pairs of top words of all topics.

    It is ``log(p(v, w) / (p(v) p(w))) / -log p(v, w)``.  Probabilities are shares of the documents
    of `corpus` that hold a word, or both words: a document is one window, since bags of words have
    no order.

    Parameters
    ----------
    top : int array, (n_topics, n)
        Words that some document holds.
    corpus : Corpus

    References
    ----------
    .. [1] G. Bouma, "Normalized (pointwise) mutual information in collocation extraction", 2009.
    """
    words, places = np.unique(top, return_inverse=True)
    places = places.reshape(top.shape)
    X = corpus.to_csr().tocsc()[:, words]
    X.data = np.ones(X.nnz)  # stored counts are above 0
    together = (X.T @ X).toarray() / corpus.n_items
    alone = together.diagonal()
    first, second = np.triu_indices(top.shape[1], 1)
    v, w = places[:, first], places[:, second]
    both = together[v, w] + _EPSILON
    return float(np.mean(np.log(both / (alone[v] * alone[w])) / -np.log(both)))


def diversity(top: np.ndarray) -> float:
    """Share of different words among the top words of all topics, as in BERTopic's paper."""
    return len(np.unique(top)) / top.size


def once_only(top: np.ndarray) -> float:
    """Share of top words that head just one topic: what TopMost calls topic diversity."""
    return float((np.unique(top, return_counts=True)[1] == 1).sum() / top.size)


def purity(labels: np.ndarray, clusters: np.ndarray) -> float:
    """Share of items that have the commonest label of their cluster."""
    table = _contingency(labels, clusters)
    return float(table.max(axis=0).sum() / table.sum())


def mutual_information(labels: np.ndarray, clusters: np.ndarray) -> float:
    """Mutual information of labels and clusters, divided by the mean of their entropies (NMI).

    0 where there is one label and one cluster, which tell nothing of each other.
    """
    joint = _contingency(labels, clusters)
    joint = joint / joint.sum()
    of_labels, of_clusters = joint.sum(axis=1), joint.sum(axis=0)
    i, j = joint.nonzero()
    shared = joint[i, j] @ np.log(joint[i, j] / (of_labels[i] * of_clusters[j]))
    entropies = -sum(p @ np.log(p) for p in (of_labels, of_clusters))
    return float(2 * shared / entropies) if entropies > 0 else 0.0


def stability(runs: Sequence[Sequence[Sequence]]) -> float:
    """Mean similarity of the topics of two runs, over all pairs of runs.

    Topics of two runs are paired so that their similarity is largest in all; the similarity of two
    topics is Jaccard's, words that both have over words that either has.

    Parameters
    ----------
    runs : sequence of runs, each a sequence of topics, each a sequence of top words
        At least two runs.
    """
    found = []
    for i, run in enumerate(runs):
        for other in runs[:i]:
            alike = np.array([[_jaccard(set(a), set(b)) for b in other] for a in run])
            found.append(alike[linear_sum_assignment(-alike)].mean())
    return float(np.mean(found))


def _jaccard(a, b):
    return len(a & b) / len(a | b)


def _contingency(labels, clusters):
    """Numbers of items for each label, a row, and each cluster, a column."""
    rows, columns = (np.unique(x, return_inverse=True)[1] for x in (labels, clusters))
    table = np.zeros((rows.max() + 1, columns.max() + 1))
    np.add.at(table, (rows, columns), 1)
    return table
