"""The collapsed local step of LDA: stochastic CVB0 (Foulds et al. 2013) in a memory-free form.

Integrating theta and beta out and keeping the zeroth-order term of the expectations (Asuncion et
al. 2009) replaces exp(E log) by plain means.  CVB0 leaves a token's own share phi out of the counts
that explain it, which otherwise has to be remembered.  Within the document it need not be: phi
solves an equation in which only the last norm is needed (`kernels.fold.leave_own_out`)::

    b_wk = lam_wk / sum_v lam_vk,      phi_dwk = gamma_dk b_wk / (norm_dw + OWN c_dw b_wk)
    gamma_dk = alpha_k + sum_w c_dw phi_dwk

With OWN c = 1 this is exactly CVB0's exclusion of one token from its document.  Here all c tokens of
the word are left out, and OWN = 2 times: lam_wk holds them, too, from earlier visits, and what was
remembered of those would be needed to take them out of it.  `python -m experiments.own_counts`
compares the strengths.

There is no digamma, and word rows are read in place: nothing is computed for each word first.
"""

from __future__ import annotations

import numpy as np

from dpsvi.jit import inline_kernel
from dpsvi.kernels.fold import (
    ETA,
    SWEEPS,
    TOL,
    add_assigned,
    fold,
    gather,
    leave_own_out,
    list_words,
    prefetch_words,
    start_even,
    topic_sizes,
)

OWN = 2.0  # how many times a word's own count is left out of its document
EVERY = 3  # sweeps between two times that it is reckoned anew; the first sweep is without


@inline_kernel
def explain(counts, hyper, length, gamma, weight, total, ratio, left, block):
    """Iterate gamma of one document; leaves topic weights, word ratios and block of the last sweep.
    """
    n_columns = gamma.shape[0]
    real = gamma.dtype.type
    tol = real(hyper[n_columns + TOL]) * length
    positions = np.arange(counts.shape[0])
    left[:] = 0
    for sweep in range(int(hyper[n_columns + SWEEPS])):
        if sweep % EVERY == 1:
            leave_own_out(real(OWN), ratio, left, block)
        weight[:] = gamma
        fold(block, positions, counts, weight, total, ratio)
        change = real(0)
        for k in range(n_columns):
            new = real(hyper[k]) + weight[k] * total[k]
            change += abs(new - gamma[k])
            gamma[k] = new
        if change < tol and sweep > 0:
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
    ratios = work.scratch[(4 + longest) * n_columns :][: 2 * longest].reshape((2, longest))

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
        ids, block = work.ids[: stop - start], blocks[: stop - start]
        ratio, left = ratios[0, : stop - start], ratios[1, : stop - start]
        length = zero
        for i in range(stop - start):
            ids[i] = work.slot[words[i]]
            length += counts[i]
        if warm and shared.item_memory[d, 0] > 0:
            gamma[:] = shared.item_memory[d]
        else:
            start_even(hyper, length / real(n_topics), gamma)
        gather(rows, words, c, eta, topic, block)
        explain(counts, hyper, length, gamma, weight, total, ratio, left, block)
        add_assigned(work.stats, ids, ratio, weight, block)
        if warm:
            shared.item_memory[d] = gamma
    for i in range(n):
        work.slot[work.touched[i]] = -1
    return n
