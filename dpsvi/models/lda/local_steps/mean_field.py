"""The mean-field local step of LDA, eq. (44); Hoffman, Blei, Bach 2010.

    phi_dwk  proportional to  exp(E log theta_dk + E log beta_kw)
    gamma_dk = alpha_k + sum_w c_dw phi_dwk
    stats_wk = sum_d c_dw phi_dwk

exp(E log theta) needs no normaliser, and exp(E log beta) of a word may have any unit: they cancel
in phi.  Both are taken in units near the largest of their row, since exp(psi(x)) of a small x
underflows.
"""

from __future__ import annotations

import numpy as np

from dpsvi.families.topics.defaults import Defaults
from dpsvi.kernels.fold import (
    add_outer,
    fold,
    list_words,
    options_of,
    start_even,
    topic_sizes,
)
from dpsvi.kernels.jit import copy, inline_kernel, prefetch
from dpsvi.kernels.special import exp_digamma, exp_digamma_row

DEFAULTS = Defaults(
    word_tokens=5.0, sweeps=50, steps=32, most=64, memory=1.0, memory_share=0.1, big_start=16384,
)  # fmt: skip


@inline_kernel
def explain(basis, ids, counts, options, n_topics, length, gamma, weight, total, ratio):
    """Iterate gamma of one document; leaves topic weights and word ratios of the last sweep."""
    n_columns = gamma.shape[0]
    tol = gamma.dtype.type(options.tol) * length
    weight[:] = 0
    for _ in range(options.n_sweeps):
        exp_digamma_row(gamma, n_topics, weight)
        fold(basis, ids, counts, weight, total, ratio)
        change = gamma.dtype.type(0)
        for k in range(n_columns):
            new = gamma.dtype.type(options.alpha[k]) + weight[k] * total[k]
            change += abs(new - gamma[k])
            gamma[k] = new
        if change < tol:
            break


@inline_kernel
def read_word(rows, word, c, eta, word_prior, lam):
    """``lam_k = eta_k + c rows_wk`` of a word."""
    row = rows[word]
    if word_prior.shape[0]:
        prior = word_prior[word]
        for k in range(row.shape[0]):
            lam[k] = lam.dtype.type(prior[k]) + c * row[k]
    else:
        for k in range(row.shape[0]):
            lam[k] = eta + c * row[k]


def local(shared, scale, hyper, items, batch, work):
    """See :class:`dpsvi.base.Model`; columns beyond the topics must hold rows of 0."""
    rows = shared.rows
    n_rows, n_columns = rows.shape
    real = rows.dtype.type
    zero = real(0)
    options = options_of(hyper, n_columns)
    c, eta = real(scale), real(options.eta)
    warm = shared.item_memory.shape[0] > 0

    gamma = work.scratch[:n_columns]
    weight = work.scratch[n_columns : 2 * n_columns]
    total = work.scratch[2 * n_columns : 3 * n_columns]
    topic = work.scratch[3 * n_columns : 4 * n_columns]
    ratios = work.scratch[4 * n_columns :]

    n = list_words(items, batch, work)
    n_topics = topic_sizes(
        options.alpha, options.eta, options.sizes, scale, n_rows, work.totals, topic
    )
    # The mean size as unit keeps the products in the middle of the range of float32; so does taking
    # a topic of less than a token, whose words are in no document, for one of a token.
    mean = topic.sum() / real(n_topics)
    for k in range(n_columns):
        topic[k] = mean / exp_digamma(max(topic[k], real(1))) if k < n_topics else zero
    for i in range(n):
        if i + 8 < n:
            prefetch(rows, np.int64(work.touched[i + 8]))
        basis = work.expected[i]
        # Not in place: the compiler uses vectors only where it knows that input is not output.
        read_word(rows, work.touched[i], c, eta, options.word_prior, weight)
        exp_digamma_row(weight, n_topics, basis)
        for k in range(n_columns):
            basis[k] *= topic[k]

    for d in batch:
        start, stop = items.offsets[d], items.offsets[d + 1]
        if start == stop:
            continue
        ids, counts = work.ids[: stop - start], items.value[start:stop]
        ratio = ratios[: stop - start]
        length = zero
        for i in range(stop - start):
            ids[i] = work.slot[items.index[start + i]]
            length += counts[i]
        if warm and shared.item_memory[d, 0] > 0:
            copy(shared.item_memory[d], gamma)
        else:
            start_even(options.alpha, length / real(n_topics), gamma)
        explain(work.expected, ids, counts, options, n_topics, length, gamma, weight, total, ratio)
        add_outer(work.stats, ids, ratio, weight)
        if warm:
            copy(gamma, shared.item_memory[d])
    for i in range(n):
        basis, stats = work.expected[i], work.stats[i]
        for k in range(n_columns):
            stats[k] *= basis[k]
        work.slot[work.touched[i]] = -1
    return n
