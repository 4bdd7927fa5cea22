"""The collapsed local step of LDA: stochastic CVB0 (Foulds et al. 2013) in its memory-free form.

Integrating theta and beta out and keeping the zeroth-order term of the expectations (Asuncion et
al. 2009) replaces exp(E log) by plain means::

    phi_dwk  proportional to  gamma_dk lam_kw / sum_v lam_kv
    gamma_dk = alpha_k + sum_w c_dw phi_dwk

A token's own count is not excluded: it would have to be remembered (see `responsibilities`).
There is no digamma, and word rows are read in place: nothing is computed for each word first.
"""

from __future__ import annotations

import numpy as np

from dpsvi.jit import inline_kernel
from dpsvi.kernels.fold import (
    ETA,
    LEARN_ALPHA,
    SWEEPS,
    TOL,
    add_outer,
    count_evidence,
    fold,
    list_words,
    prefetch_words,
    start_even,
    topic_sizes,
)


@inline_kernel
def explain(basis, ids, counts, hyper, n_topics, topic, gamma, weight, total, ratio):
    """Iterate gamma of one document; leaves topic weights and word ratios of the last sweep."""
    n_columns = gamma.shape[0]
    tol = gamma.dtype.type(hyper[n_columns + TOL] * n_topics)
    for _ in range(int(hyper[n_columns + SWEEPS])):
        for k in range(n_columns):
            weight[k] = gamma[k] * topic[k]
        fold(basis, ids, counts, weight, total, ratio)
        change = gamma.dtype.type(0)
        for k in range(n_columns):
            new = gamma.dtype.type(hyper[k]) + weight[k] * total[k]
            change += abs(new - gamma[k])
            gamma[k] = new
        if change < tol:
            break


def local(shared, scale, hyper, items, batch, work):
    """See :class:`dpsvi.base.Model`; columns beyond the topics must hold rows of 0."""
    rows = shared.rows
    n_rows, n_columns = rows.shape
    real = rows.dtype.type
    zero = real(0)
    c, eta = real(scale), real(hyper[n_columns + ETA])
    warm = shared.item_memory.shape[0] > 0

    gamma = work.scratch[:n_columns]
    weight = work.scratch[n_columns : 2 * n_columns]
    total = work.scratch[2 * n_columns : 3 * n_columns]
    topic = work.scratch[3 * n_columns : 4 * n_columns]
    longest = work.ids.shape[0]
    # Gathered rows of one document: contiguous, they are read at full speed in every sweep.
    blocks = work.scratch[4 * n_columns : (4 + longest) * n_columns].reshape((longest, n_columns))
    ratios = work.scratch[(4 + longest) * n_columns :]
    positions = np.arange(longest)

    n = list_words(items, batch, work)
    n_topics = topic_sizes(hyper, scale, n_rows, work.totals, topic)
    for k in range(n_columns):
        topic[k] = real(1) / topic[k] if hyper[k] > 0 else zero

    for b in range(batch.shape[0]):
        d = batch[b]
        start, stop = items.offsets[d], items.offsets[d + 1]
        if start == stop:
            continue
        if b + 1 < batch.shape[0]:
            prefetch_words(items, batch[b + 1], rows)
        words, counts = items.index[start:stop], items.value[start:stop]
        ids, ratio = work.ids[: stop - start], ratios[: stop - start]
        length = zero
        block = blocks[: stop - start]
        for i in range(stop - start):
            ids[i] = work.slot[words[i]]
            length += counts[i]
            row, copy = rows[words[i]], block[i]
            for k in range(n_columns):
                copy[k] = eta + c * row[k]
        if warm and shared.item_memory[d, 0] > 0:
            gamma[:] = shared.item_memory[d]
        else:
            start_even(hyper, length / real(n_topics), gamma)
        explain(
            block, positions[: stop - start], counts, hyper, n_topics, topic, gamma, weight, total,
            ratio,
        )  # fmt: skip
        add_outer(work.stats, ids, ratio, weight)
        if hyper[n_columns + LEARN_ALPHA] > 0:
            count_evidence(gamma, hyper[:n_columns], work.tally)
        if warm:
            shared.item_memory[d] = gamma
    for i in range(n):
        row, stats = rows[work.touched[i]], work.stats[i]
        for k in range(n_columns):
            stats[k] *= eta + c * row[k]
        work.slot[work.touched[i]] = -1
    return n
