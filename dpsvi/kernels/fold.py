"""The inner iteration that every LDA local step shares, and the list of words of a batch."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpsvi.kernels.jit import inline_kernel, kernel, naming_kernel, prefetch
from dpsvi.kernels.special import psi


class Options(NamedTuple):
    """What a local step of LDA knows besides the topics: ``Model.hyper``."""

    alpha: np.ndarray  # (n_columns,): prior of the topic proportions, 0 for padding
    eta: float  # prior of the words of a topic
    tol: float  # change of gamma, as a share of the document's tokens, that ends the sweeps
    n_sweeps: int  # most sweeps over a document
    sizes: np.ndarray  # (n_columns,): sum_w eta_wk, where eta is not one number; else empty
    word_prior: np.ndarray  # (n_words, n_columns): eta_wk; else empty


@naming_kernel
def options_of(hyper, n_columns):
    """Name what :func:`dpsvi.kernels.hyper.pack` made of :class:`Options`."""
    n = n_columns
    rest = hyper[n + 3 :]
    word_prior = rest[n:] if len(rest) else rest
    return Options(
        hyper[:n], hyper[n], hyper[n + 1], int(hyper[n + 2]), rest[:n],
        word_prior.reshape((len(word_prior) // n, n)),
    )  # fmt: skip


@inline_kernel
def list_words(items, batch, work):
    """Give each distinct word of the batch a slot; returns their number."""
    n = 0
    for d in batch:
        for j in range(items.offsets[d], items.offsets[d + 1]):
            w = items.index[j]
            if work.slot[w] < 0:
                work.slot[w] = n
                work.touched[n] = w
                n += 1
    return n


@inline_kernel
def prefetch_words(items, d, rows):
    """Ask for the rows of document d's words while the document before it is being worked on."""
    for j in range(items.offsets[d], min(items.offsets[d + 1], items.offsets[d] + 512)):
        prefetch(rows, np.int64(items.index[j]))


@inline_kernel
def topic_sizes(alpha, eta, sizes, scale, n_rows, totals, size):
    """``size_k = sum_w lam_wk``; columns with alpha 0 are padding and get 0.  Returns K.

    `sizes` are those of the prior; if it is empty, each of the `n_rows` words has `eta`.
    """
    smooth = n_rows * eta
    n_topics = 0
    for k in range(size.shape[0]):
        size[k] = 0
        if alpha[k] > 0:
            if sizes.shape[0]:
                smooth = sizes[k]
            size[k] = smooth + scale * totals[k]
            n_topics += 1
    return n_topics


@inline_kernel
def start_even(alpha, share, gamma):
    """``gamma_k = alpha_k + share``: a document that belongs to all topics alike."""
    for k in range(gamma.shape[0]):
        gamma[k] = alpha[k] + share if alpha[k] > 0 else 0


@kernel
def fold(basis, ids, counts, weight, total, ratio):
    """One sweep over the words of a document, without ever storing phi.

    With topic weights ``f`` (`weight`) and the row ``b_i = basis[ids[i]]`` of each word::

        norm_i = sum_k f_k b_ik,   ratio_i = counts_i / norm_i,   total_k = sum_i ratio_i b_ik

    so that the expected count of topic k is ``f_k total_k``.  Writes `total` and `ratio`.
    Four words a pass: each load of `weight` and of `total` then serves four rows.
    """
    n_columns = weight.shape[0]
    n = counts.shape[0]
    zero = weight.dtype.type(0)
    for k in range(n_columns):
        total[k] = zero
    for i in range(0, n - n % 4, 4):
        r0, r1, r2, r3 = basis[ids[i]], basis[ids[i + 1]], basis[ids[i + 2]], basis[ids[i + 3]]
        d0 = zero
        d1 = zero
        d2 = zero
        d3 = zero
        for k in range(n_columns):
            f = weight[k]
            d0 += f * r0[k]
            d1 += f * r1[k]
            d2 += f * r2[k]
            d3 += f * r3[k]
        s0 = counts[i] / d0
        s1 = counts[i + 1] / d1
        s2 = counts[i + 2] / d2
        s3 = counts[i + 3] / d3
        for k in range(n_columns):
            total[k] += (s0 * r0[k] + s1 * r1[k]) + (s2 * r2[k] + s3 * r3[k])
        ratio[i] = s0
        ratio[i + 1] = s1
        ratio[i + 2] = s2
        ratio[i + 3] = s3
    for i in range(n - n % 4, n):
        row = basis[ids[i]]
        d0 = zero
        for k in range(n_columns):
            d0 += weight[k] * row[k]
        s0 = counts[i] / d0
        for k in range(n_columns):
            total[k] += s0 * row[k]
        ratio[i] = s0


@kernel
def count_evidence(gamma, alpha, times, tally):
    """Add E[psi(n_k + alpha_k) - psi(alpha_k)], so many `times`, to the tally.

    n_k, the tokens of topic k, is random: m_k = gamma_k - alpha_k is its mean and it is 0 with
    probability exp(-m_k).  Like Teh et al. (2007) the expectation is taken at the mean of n_k
    given n_k > 0.  Taken at m_k itself, many small shares of a token look like many topics.
    """
    for k in range(gamma.shape[0]):
        a = np.float32(alpha[k])
        if gamma[k] > a > 0:
            mean = max(gamma[k] - a, np.float32(1e-6))
            present = -np.expm1(-np.float64(mean))
            tally[k] += times * present * (psi(np.float32(mean / present) + a) - psi(a))


@inline_kernel
def add_outer(stats, ids, ratio, weight):
    """``stats[ids[i]] += ratio_i * weight`` for every word of a document."""
    for i in range(ids.shape[0]):
        row = stats[ids[i]]
        s = ratio[i]
        for k in range(weight.shape[0]):
            row[k] += s * weight[k]
