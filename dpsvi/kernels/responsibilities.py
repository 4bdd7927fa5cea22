"""Collapsed variational Bayes with kept responsibilities: CVB0 (Asuncion et al. 2009, eq. 20).

Every (document, word) pair keeps its phi between visits, in 16-bit fixed point, so that a token's
own count can be left out of the counts that explain it::

    phi_dwk  proportional to
        (gamma_dk - OWN phi_dwk) (lam_wk - phi_dwk) / (sum_v lam_vk - phi_dwk)
    gamma_dk = alpha_k + sum_w c_dw phi_dwk,      lam_wk = eta + sum_d c_dw phi_dwk

OWN = 1 is CVB0.  Here it is the 2 of the memory-free step (`dpsvi.kernels.collapsed`), which ends
at a lower perplexity here, too: `python -m experiments.own_counts --kept`.  Of a word that comes
often one token is left out, and minor topics get no fewer tokens: these are rules of that step.

The statistics are the *changes* of c phi.  lam therefore stays the exact sum of what is kept, and
nothing decays: incremental inference (Neal and Hinton 1998) rather than a stochastic step.  LDA and
the HDP share this; alpha, the prior of a document, may differ from step to step.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from dpsvi.kernels import collapsed
from dpsvi.kernels.fold import count_evidence, list_words, prefetch_words, topic_sizes
from dpsvi.kernels.hyper import pack
from dpsvi.kernels.jit import inline_kernel

UNIT = 65535.0  # a kept responsibility of 1
FIRST_SWEEPS = 7  # over a document whose tokens are not assigned yet, at most


@inline_kernel
def count_tokens(kept, values, alpha, gamma):
    """``gamma_k = alpha_k + sum_w c_dw phi_dwk`` of what is kept; returns how many these are."""
    real = gamma.dtype.type
    known, part = real(0), real(1 / UNIT)
    for k in range(gamma.shape[0]):
        gamma[k] = alpha[k]
    for j in range(values.shape[0]):
        old, count = kept[j], values[j] * part
        for k in range(gamma.shape[0]):
            assigned = count * real(np.int32(old[k]))
            gamma[k] += assigned
            known += assigned
    return known


def scratch(columns: int, longest: int) -> int:
    """Length of ``work.scratch``."""
    return 5 * columns


def keeping(model, local, options_of):
    """`model` with a local step that keeps responsibilities, all else as it is.

    Parameters
    ----------
    model : dpsvi.base.Model
    local : callable
        Its step that calls :func:`explain_all`.
    options_of : callable(hyper, columns)
        Names what ``model.hyper`` holds, `n_sweeps` among it.
    """
    columns = model.shape[1]
    options = options_of(model.hyper, columns)
    options = options._replace(n_sweeps=min(options.n_sweeps, FIRST_SWEEPS))
    return model._replace(
        hyper=pack(options), local=local, scratch=partial(scratch, columns), item_memory=0,
        value_memory=columns, learner="incremental",
    )  # fmt: skip


@inline_kernel
def explain_all(shared, scale, options, n_words, items, batch, work, evidence):
    """The documents of a batch, one after the other: changes are added to ``work.stats``.

    Parameters
    ----------
    shared, scale, items, batch, work
        As for a local step, with ``value_memory`` = columns; the words of the batch have their
        slots.
    options : dpsvi.kernels.fold.Options
        Columns of padding must hold rows of 0.
    n_words : int
        V; ``work.totals`` are those of so many rows.
    evidence : bool
        Whether the change of E[psi(n_k + alpha_k) - psi(alpha_k)] is added to ``work.tally``.
    """
    rows, kept = shared.rows, shared.value_memory
    n_columns = rows.shape[1]
    real = rows.dtype.type
    zero, half, unit, part = real(0), real(0.5), real(UNIT), real(1 / UNIT)
    times = real(collapsed.OWN)
    c, eta = real(scale), real(options.eta)
    vectors = work.scratch[: 5 * n_columns].reshape((5, n_columns))
    gamma, phi, size, prior, alpha = vectors[0], vectors[1], vectors[2], vectors[3], vectors[4]
    for k in range(n_columns):
        prior[k], alpha[k] = eta, options.alpha[k]
    topic_sizes(options.alpha, options.eta, options.sizes, scale, n_words, work.totals, size)
    smooth = real(n_words) * eta
    for b in range(batch.shape[0]):
        d = batch[b]
        start, stop = items.offsets[d], items.offsets[d + 1]
        if b + 1 < batch.shape[0]:
            prefetch_words(items, batch[b + 1], rows)
        known = count_tokens(kept[start:stop], items.value[start:stop], alpha, gamma)
        if evidence and known > 0:
            count_evidence(gamma, alpha, -1.0, work.tally)
        # One sweep a visit; the first one finds its tokens unassigned and takes a few more.
        for _ in range(1 if known > 0 else options.n_sweeps):
            for j in range(start, stop):
                old, row = kept[j], rows[items.index[j]]
                single = part * min(items.value[j], real(1))  # a weight may be less than a token
                stats = work.stats[work.slot[items.index[j]]]
                if options.word_prior.shape[0]:
                    for k in range(n_columns):
                        prior[k] = options.word_prior[items.index[j], k]
                norm = zero
                for k in range(n_columns):
                    own = single * real(np.int32(old[k]))
                    # No less than the prior is left.  RACE: a lost write can leave less in lam
                    # than this token has put there, and on the first visit lam lacks it.
                    document = max(gamma[k] - times * own, alpha[k])
                    word = prior[k] + max(c * row[k] - own, zero)
                    phi[k] = document * word / max(size[k] - own, smooth)
                    norm += phi[k]
                norm = unit / norm
                count = items.value[j] * part
                for k in range(n_columns):
                    new = np.int32(phi[k] * norm + half)
                    change = count * real(new - np.int32(old[k]))
                    gamma[k] += change
                    stats[k] += change
                    old[k] = np.uint16(new)
        if evidence and stop > start:
            count_evidence(gamma, alpha, 1.0, work.tally)


def recall(shared, scale, hyper, items, batch, work):
    """See :class:`dpsvi.base.Model`: ``UNIT c phi`` of what is kept, which stays as it is.

    `hyper` is the alpha of a model that has a row of tables behind those of the words; else empty.
    The tables of the documents are then in this row, ``UNIT alpha_k E[psi(n_k + alpha_k) -
    psi(alpha_k)]``.
    """
    n = list_words(items, batch, work)
    n_columns = work.stats.shape[1]
    gamma = work.scratch[:n_columns]
    work.tally[:] = 0
    for d in batch:
        start, stop = items.offsets[d], items.offsets[d + 1]
        for j in range(start, stop):
            stats, phi = work.stats[work.slot[items.index[j]]], shared.value_memory[j]
            assigned = np.float64(items.value[j])
            for k in range(n_columns):
                stats[k] += assigned * np.float64(np.int32(phi[k]))
        if hyper.shape[0]:
            count_tokens(shared.value_memory[start:stop], items.value[start:stop], hyper, gamma)
            count_evidence(gamma, hyper, 1.0, work.tally)
    for i in range(n):
        work.slot[work.touched[i]] = -1
    if hyper.shape[0]:
        work.touched[n] = work.slot.shape[0] - 1
        for k in range(n_columns):
            work.stats[n, k] = UNIT * hyper[k] * work.tally[k]
        return n + 1
    return n
