"""The mean-field local step of Wang, Paisley, Blei (2011): two levels of sticks.

With L_iw = E ln beta_iw, for the T topics i, the K_d sticks t of a document and its words w::

    phi_dwt   proportional to  exp(E ln sigma_t(pi_d) + sum_i zeta_dti L_iw)
    gamma_dt = (1 + sum_w c_dw phi_dwt,  alpha_0 + sum_w sum_{s>t} c_dw phi_dws)
    zeta_dti  proportional to  exp(E ln sigma_i(V) + sum_w c_dw phi_dwt L_iw)
    stats_iw = sum_d c_dw sum_t phi_dwt zeta_dti,        m_i = sum_d sum_t zeta_dti

The truncations are of q alone, which gives nothing to later sticks: all T and K_d are Beta
variables.  Where all phi are even, as Wang et al. begin, all zeta are alike and only the prior of
the sticks tells them apart.  Here stick t begins at the t-th largest topic of the document, as EM
for the document's proportions finds them.

A stick that no token has chosen tells nothing of the topics: its c_dt is as the corpus's sticks
say, ``q(c_dt | V) = p(c_dt | V)``.  With a zeta of its own it would add ``ln sum_i exp(E ln
sigma_i(V))``, which is negative, to the bound, and a table to those that made this zeta.  So a
document has no more sticks than tokens, and those with less than `LEAST_USAGE` tokens are taken
away between the sweeps: K_d, of q alone, may differ by document.
"""

from __future__ import annotations

import numpy as np

from dpsvi.expfam.stick_breaking import by_size
from dpsvi.kernels.digamma import digamma
from dpsvi.kernels.fold import fold, list_words, topic_sizes
from dpsvi.kernels.jit import copy, inline_kernel, kernel
from dpsvi.kernels.special import exp_or_zero, psi
from dpsvi.models.hdp.options import options_of
from dpsvi.models.hdp.sticks import count_tables, expected_log_weights, leave_tables_out

LEAST_USAGE = 0.5  # tokens of a stick; with less it is as if no token had chosen it
FIRST_SWEEPS = 5  # of EM, which tells a document's largest topics


@kernel
def softmax(x):
    """exp(x) over its sum, in place."""
    top = x.max()
    norm = x.dtype.type(0)
    for i in range(x.shape[0]):
        x[i] = exp_or_zero(x[i] - top)
        norm += x[i]
    for i in range(x.shape[0]):
        x[i] /= norm


@kernel
def largest_topics(block, counts, n_topics, basis, positions, vectors, ratio, zeta):
    """``zeta_t`` is all on the t-th largest topic of the document."""
    n, n_columns = block.shape
    gamma, weight, total = vectors[0], vectors[1], vectors[2]
    for i in range(n):
        top = block[i, :n_topics].max()
        for k in range(n_columns):
            basis[i, k] = exp_or_zero(block[i, k] - top)
    gamma[:] = 0
    gamma[:n_topics] = 1
    for _ in range(FIRST_SWEEPS):
        copy(gamma, weight)
        fold(basis, positions, counts, weight, total, ratio)
        for k in range(n_topics):
            gamma[k] = weight[k] * total[k]
    order = by_size(gamma[:n_topics])
    zeta[:] = 0
    for t in range(zeta.shape[0]):
        zeta[t, order[t]] = 1.0


@kernel
def read_usage(usage, alpha, log_stick):
    """Write E ln sigma_t(pi_d), given the expected tokens of every stick."""
    behind, left = np.float64(alpha), 0.0
    for t in range(usage.shape[0]):
        behind += usage[t]
    for t in range(usage.shape[0]):
        behind -= usage[t]
        both = digamma(1.0 + usage[t] + behind)
        log_stick[t] = left + digamma(1.0 + usage[t]) - both
        left += digamma(behind) - both


@inline_kernel
def assign(block, counts, log_stick, zeta, phi):
    """``phi``, multiplied by the counts."""
    for i in range(block.shape[0]):
        for t in range(zeta.shape[0]):
            x = log_stick[t]
            for k in range(block.shape[1]):
                x += zeta[t, k] * block[i, k]
            phi[i, t] = x
        softmax(phi[i, : zeta.shape[0]])
        for t in range(zeta.shape[0]):
            phi[i, t] *= counts[i]


@inline_kernel
def drop_idle(usage, zeta):
    """Take the sticks with less than `LEAST_USAGE` tokens away, but for one; returns their number.

    The others keep their order.
    """
    n_sticks, largest = 0, usage.max()
    for t in range(usage.shape[0]):
        if usage[t] >= min(largest, usage.dtype.type(LEAST_USAGE)):
            usage[n_sticks] = usage[t]
            copy(zeta[t], zeta[n_sticks])
            n_sticks += 1
    return n_sticks


@kernel
def explain(block, counts, log_weight, alpha, tol, n_sweeps, zeta, phi, usage, log_stick):
    """Iterate phi, the sticks and zeta of one document, from `zeta` and `log_stick`.

    Leaves the last values everywhere, `phi` multiplied by the counts.  Returns how many sticks are
    left, the first ones.
    """
    n, n_topics = block.shape[0], log_weight.shape[0]
    n_sticks = zeta.shape[0]
    usage[:] = 0
    for sweep in range(n_sweeps):
        if sweep > 0:
            n_sticks = drop_idle(usage[:n_sticks], zeta)
            read_usage(usage[:n_sticks], alpha, log_stick)
        assign(block, counts, log_stick[:n_sticks], zeta[:n_sticks], phi)
        change = phi.dtype.type(0)
        for t in range(n_sticks):
            new = phi[:, t].sum()
            change += abs(new - usage[t])
            usage[t] = new
            copy(log_weight, zeta[t])
            for i in range(n):
                for k in range(block.shape[1]):
                    zeta[t, k] += phi[i, t] * block[i, k]
            softmax(zeta[t, :n_topics])
        read_usage(usage[:n_sticks], alpha, log_stick)
        if change < tol and sweep > 0:
            break
    return n_sticks


@inline_kernel
def add_document(ids, phi, zeta, stats, tables):
    """Add a document's statistics to those of its words, and its tables."""
    for t in range(zeta.shape[0]):
        for i in range(ids.shape[0]):
            row, x = stats[ids[i]], phi[i, t]
            for k in range(row.shape[0]):
                row[k] += x * zeta[t, k]
        for k in range(tables.shape[0]):
            tables[k] += zeta[t, k]


@inline_kernel
def explain_all(options, log_weight, items, batch, work):
    """The documents of a batch, one after the other: statistics of their words; returns tables."""
    n_columns, n_topics, real = work.stats.shape[1], log_weight.shape[0], work.stats.dtype
    longest = 0
    for d in batch:
        longest = max(longest, items.offsets[d + 1] - items.offsets[d])
    truncation = options.truncation
    block, basis = np.empty((longest, n_columns), real), np.empty((longest, n_columns), real)
    phi, zeta = np.empty((longest, truncation), real), np.empty((truncation, n_columns), real)
    usage, log_stick = np.empty(truncation, real), np.empty(truncation, real)
    vectors, ratio = np.empty((3, n_columns), real), np.empty(longest, real)
    positions, tables = np.arange(longest), np.zeros(n_topics)
    for d in batch:
        start, stop = items.offsets[d], items.offsets[d + 1]
        if start == stop:
            continue
        n, counts = stop - start, items.value[start:stop]
        most = min(truncation, max(1, int(np.ceil(counts.sum()))))  # each table has a token
        for i in range(n):
            work.ids[i] = work.slot[items.index[start + i]]
            copy(work.expected[work.ids[i]], block[i])
        largest_topics(
            block[:n], counts, n_topics, basis[:n], positions[:n], vectors, ratio[:n], zeta[:most]
        )
        log_stick[:] = 0  # the first phi does not know the sticks
        n_sticks = explain(
            block[:n], counts, log_weight, options.alpha, options.tol * counts.sum(),
            options.n_sweeps, zeta[:most], phi[:n], usage[:most], log_stick[:most],
        )  # fmt: skip
        add_document(work.ids[:n], phi[:n], zeta[:n_sticks], work.stats, tables)
    return tables


def local(shared, scale, hyper, items, batch, work):
    """See :class:`dpsvi.base.Model`; the last row holds the tables."""
    rows = shared.rows
    n_words, n_columns = rows.shape[0] - 1, rows.shape[1]
    real = rows.dtype.type
    options = options_of(hyper, n_columns)
    c, eta, log_size = real(scale), real(options.eta), np.empty(n_columns, rows.dtype)
    n = list_words(items, batch, work)
    leave_tables_out(work.totals, rows[n_words])
    n_topics = topic_sizes(
        options.marks, options.eta, hyper[:0], scale, n_words, work.totals, log_size
    )
    for k in range(n_topics):
        log_size[k] = psi(log_size[k])
    for i in range(n):
        row, logs = rows[work.touched[i]], work.expected[i]
        logs[:] = 0
        for k in range(n_topics):
            logs[k] = psi(eta + c * row[k]) - log_size[k]
    tables = count_tables(rows[n_words], scale, n_topics)
    log_weight = expected_log_weights(tables, options.omega).astype(rows.dtype)
    found = explain_all(options, log_weight, items, batch, work)
    for i in range(n):
        work.slot[work.touched[i]] = -1
    work.touched[n] = n_words
    for k in range(n_topics):
        work.stats[n, k] = found[k]
    return n + 1
