"""Alg. 1-4 for LDA again, plainly: dense parameters in float64, workers that take turns.

Nothing is lazy and nothing is sparse here: ``u <- max(u + rho (lambda_hat(u) - u), eta)`` in a
worker, ``v <- max(v + u - w, eta)`` in the master, over all entries.  lam is (topics, words).
"""

import numpy as np
from scipy.special import psi

from reference.lda import expected_log, natural_step


def batch_statistics(documents, lam, alpha, n_sweeps):
    """sum_d c_dw phi_dwk of a batch, (44): mean field, all its documents in one matrix."""
    ids = np.unique(np.concatenate([words for words, _ in documents]))
    counts = np.zeros((len(documents), len(ids)))
    for row, (words, count) in zip(counts, documents, strict=True):
        row[np.searchsorted(ids, words)] = count
    beta = np.exp(psi(lam[:, ids]) - psi(lam.sum(axis=1, keepdims=True)))
    gamma = alpha + counts.sum(axis=1, keepdims=True) / len(lam) * np.ones(len(lam))
    for _ in range(n_sweeps):
        theta = np.exp(expected_log(gamma))
        ratio = counts / (theta @ beta)
        gamma = alpha + theta * (ratio @ beta.T)
    stats = np.zeros_like(lam)
    stats[:, ids] = beta * (theta.T @ ratio)
    return stats


def worker(documents, w, alpha, eta, batches, rates, n_sweeps):
    """Alg. 4 with one thread: u after a local step for each batch, from w."""
    u = w
    for batch, rate in zip(batches, rates, strict=True):
        stats = batch_statistics([documents[d] for d in batch], u, alpha, n_sweeps)
        u = np.maximum(natural_step(u, eta, stats, rate, len(documents) / len(batch)), eta)
    return u


def displacements_in_turn(
    documents, lam, alpha, eta, batches, rates, *, n_workers, local_steps, n_sweeps
):
    """Alg. 3 with M = gamma = 1: worker t mod n pushes u - w, then reads v.  The last v."""
    v, read = lam, [lam] * n_workers
    for turn, first in enumerate(range(0, len(batches), local_steps)):
        w = read[turn % n_workers]
        own = slice(first, first + local_steps)
        u = worker(documents, w, alpha, eta, batches[own], rates[own], n_sweeps)
        v = np.maximum(v + (u - w), eta)
        read[turn % n_workers] = v
    return v
