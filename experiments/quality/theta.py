"""Topic proportions of documents, by one and the same code for every entrant, and their use."""

from __future__ import annotations

import numpy as np

from dpsvi.evaluation.completion import FLOAT, infer_documents
from dpsvi.kernels.jit import as_items


def proportions(topics, corpus, threads: int = 1) -> np.ndarray:
    """Fold documents into fixed topics: E[theta] by variational Bayes, with the model's own alpha.

    Parameters
    ----------
    topics : experiments.panel.recorder.Topics
    corpus : Corpus
    threads : int

    Returns
    -------
    float32 array, (n_items, n_topics)
    """
    probabilities = topics.counts / topics.counts.sum(axis=0, dtype=np.float64)
    basis = np.ascontiguousarray(probabilities, np.float32)
    alpha = np.broadcast_to(np.asarray(topics.alpha, np.float32), basis.shape[1]).copy()
    gamma = infer_documents(
        basis, alpha, as_items(corpus.offsets, corpus.index, corpus.value, FLOAT),
        digamma=True, tol=1e-3, n_sweeps=100, n_jobs=threads,
    )  # fmt: skip
    return gamma / gamma.sum(axis=1, keepdims=True)


def classified(theta, labels, test_theta, test_labels) -> dict[str, float]:
    """Train on some documents, predict the labels of others.

    Returns
    -------
    dict
        ``accuracy`` and ``macro_f1`` of TopMost's classifier, a support vector machine with a
        Gaussian kernel; ``linear_accuracy`` of a linear one.
    """
    from sklearn.metrics import accuracy_score, f1_score
    from sklearn.svm import SVC, LinearSVC

    found = SVC().fit(theta, labels).predict(test_theta)
    linear = LinearSVC(random_state=0).fit(theta, labels).predict(test_theta)
    return {
        "accuracy": float(accuracy_score(test_labels, found)),
        "macro_f1": float(f1_score(test_labels, found, average="macro")),
        "linear_accuracy": float(accuracy_score(test_labels, linear)),
    }
