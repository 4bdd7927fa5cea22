"""The collapsed local step: theta, beta and the assignments of tables integrated out.

Given the sticks, topic proportions over the T topics are a Dirichlet process on a finite set,
``theta_d ~ Dir(a)`` with ``a_i = alpha_0 E sigma_i(V)`` (Teh, Jordan, Beal, Blei 2006; the mean of
sigma as in Sato, Kurihara, Nakagawa 2012): the document's own sticks and their truncation fall
away.  Without theta and beta (Teh, Kurihara, Welling 2008)::

    phi_dwi  proportional to  exp(E ln(a_i + n_di)) lam_iw / sum_v lam_iv
    E n_di = sum_w c_dw phi_dwi
    m_di = a_i E[psi(a_i + n_di) - psi(a_i)]                        (expected tables)

Expectations over n_di, the tokens of topic i, treat n_di = 0, of probability ``exp(-E n_di)``,
apart, and are else taken at the mean of n_di given that it is not 0 (Teh et al. 2007).  With the
logarithm of the mean instead, as LDA's CVB0 has it, a document of few tokens keeps a little of
every topic, nothing empties a topic, and perplexity is higher (`nyt`, 10 passes, T = 150: 2073
instead of 1986).  A token's own count is not left out.

A document begins with a share of its tokens on the topics that make the whole of it likeliest, as
in a mixture of unigrams, and the rest even.  From an even start all topics take part in all first
documents and share the vocabulary out between them (`nyt` again: 1986 instead of 1881).
"""

from __future__ import annotations

import numpy as np

from dpsvi.jit import inline_kernel
from dpsvi.kernels.fold import (
    ETA,
    SWEEPS,
    TOL,
    add_assigned,
    count_evidence,
    fold,
    gather,
    leave_own_out,
    list_words,
    prefetch_words,
    topic_sizes,
)
from dpsvi.models.lda_steps.collapsed import EVERY, OWN
from dpsvi.models.hdp_steps.sticks import ALPHA, OMEGA, count_tables, expected_weights


def scratch(columns: int, longest: int) -> int:
    """Length of ``work.scratch``."""
    return 4 * columns + longest * (columns + 2)


UNIGRAM_SHARE = 0.2  # of a document's tokens at the start; 0 and 0.5 are worse on `nyt`


@inline_kernel
def first_gamma(block, counts, alpha, n_topics, gamma, likely):
    """First gamma of a document; `likely` is overwritten."""
    length, top, norm = counts.sum(), likely.dtype.type(-np.inf), likely.dtype.type(0)
    likely[:] = 0
    for i in range(block.shape[0]):
        for k in range(n_topics):
            likely[k] += counts[i] * np.log(block[i, k])
    for k in range(n_topics):
        top = max(top, likely[k])
    for k in range(n_topics):
        likely[k] = np.exp(likely[k] - top)
        norm += likely[k]
    share = likely.dtype.type(UNIGRAM_SHARE)
    even = (likely.dtype.type(1) - share) / likely.dtype.type(n_topics)
    gamma[:] = 0
    for k in range(n_topics):
        gamma[k] = alpha[k] + length * (share * likely[k] / norm + even)


@inline_kernel
def expected_logs(gamma, alpha, n_topics, weight):
    """``weight_i = exp(E ln(a_i + n_i))``, where gamma_i = a_i + E n_i."""
    for k in range(n_topics):
        a = np.float32(alpha[k])
        mean = max(gamma[k] - a, np.float32(1e-6))
        present = np.float32(-np.expm1(-np.float64(mean)))
        log = np.log(a)
        weight[k] = np.exp(log + present * (np.log(a + mean / present) - log))


@inline_kernel
def explain(counts, length, own, n_topics, gamma, weight, total, ratio, left, block):
    """Iterate gamma of one document; leaves topic weights, word ratios and block of the last sweep.
    """
    n_columns, real = gamma.shape[0], gamma.dtype.type
    tol = real(own[n_columns + TOL]) * length
    positions = np.arange(counts.shape[0])
    left[:] = 0
    for sweep in range(int(own[n_columns + SWEEPS])):
        expected_logs(gamma, own, n_topics, weight)
        if sweep % EVERY == 1:
            leave_own_out(real(OWN), ratio, left, block)
        fold(block, positions, counts, weight, total, ratio)
        change = gamma.dtype.type(0)
        for k in range(n_topics):
            new = gamma.dtype.type(own[k]) + weight[k] * total[k]
            change += abs(new - gamma[k])
            gamma[k] = new
        if change < tol and sweep > 0:
            break


@inline_kernel
def explain_all(rows, c, own, n_topics, items, batch, topic, work):
    """The documents of a batch, one after the other: word ratios, and tables into the last row."""
    n_columns, longest = topic.shape[0], work.ids.shape[0]
    gamma = work.scratch[n_columns : 2 * n_columns]
    weight = work.scratch[2 * n_columns : 3 * n_columns]
    total = work.scratch[3 * n_columns : 4 * n_columns]
    blocks = work.scratch[4 * n_columns : (4 + longest) * n_columns].reshape((longest, n_columns))
    ratios = work.scratch[(4 + longest) * n_columns :][: 2 * longest].reshape((2, longest))
    eta = rows.dtype.type(own[n_columns + ETA])
    weight[:] = 0  # padding
    for b in range(batch.shape[0]):
        start, stop = items.offsets[batch[b]], items.offsets[batch[b] + 1]
        if start == stop:
            continue
        if b + 1 < batch.shape[0]:
            prefetch_words(items, batch[b + 1], rows)
        words, counts, n = items.index[start:stop], items.value[start:stop], stop - start
        for i in range(n):
            work.ids[i] = work.slot[words[i]]
        block, ratio = blocks[:n], ratios[0, :n]
        gather(rows, words, c, eta, topic, block)
        first_gamma(block, counts, own, n_topics, gamma, total)
        explain(
            counts, counts.sum(), own, n_topics, gamma, weight, total, ratio, ratios[1, :n], block
        )
        add_assigned(work.stats, work.ids[:n], ratio, weight, block)
        count_evidence(gamma, own[:n_columns], work.tally)


def local(shared, scale, hyper, items, batch, work):
    """See :class:`dpsvi.base.Model`; the last row holds the tables."""
    rows = shared.rows
    n_words, n_columns = rows.shape[0] - 1, rows.shape[1]
    real = rows.dtype.type
    own, topic = hyper.copy(), work.scratch[:n_columns]  # alphas in the place of the marks
    n = list_words(items, batch, work)
    for k in range(n_columns):
        work.totals[k] -= rows[n_words, k]
    n_topics = topic_sizes(hyper, scale, n_words, work.totals, topic)
    for k in range(n_topics):
        topic[k] = real(1) / topic[k]
    tables = count_tables(rows[n_words], scale, n_topics)
    own[:n_topics] *= hyper[n_columns + ALPHA] * expected_weights(tables, hyper[n_columns + OMEGA])
    before = work.tally[:n_topics].copy()
    explain_all(rows, real(scale), own, n_topics, items, batch, topic, work)
    for i in range(n):
        work.slot[work.touched[i]] = -1
    work.touched[n] = n_words
    for k in range(n_topics):
        found = own[k] * (work.tally[k] - before[k])
        work.stats[n, k] = found
        work.tally[k] = before[k] + found
    return n + 1
