"""Collapsed variational Bayes with kept responsibilities: CVB0 (Asuncion et al. 2009, eq. 20).

Every (document, word) pair keeps its phi between visits, in 16-bit fixed point, so that a token's
own count can be left out of the counts that explain it::

    phi_dwk  proportional to
        (gamma_dk - OWN phi_dwk) (lam_wk - phi_dwk) / (sum_v lam_vk - phi_dwk)
    gamma_dk = alpha_k + sum_w c_dw phi_dwk,      lam_wk = eta + sum_d c_dw phi_dwk

OWN = 1 is CVB0.  Here it is the 2 of the memory-free step (`dpsvi.kernels.collapsed`), which ends
at a lower perplexity here, too: `python -m experiments.own_counts --kept`.

The statistics are the *changes* of c phi.  lam therefore stays the exact sum of what is kept, and
nothing decays: incremental inference (Neal and Hinton 1998) rather than a stochastic step.
"""

from __future__ import annotations

import numpy as np

from dpsvi.base import Model
from dpsvi.kernels import collapsed
from dpsvi.kernels.fold import (
    list_words,
    options_of,
    prefetch_words,
    topic_sizes,
)
from dpsvi.kernels.jit import inline_kernel
from dpsvi.training.state import State

UNIT = 65535.0  # a kept responsibility of 1


def recall(shared, scale, hyper, items, batch, work):
    """See :class:`dpsvi.base.Model`: ``UNIT c phi`` of what is kept, which stays as it is."""
    n = list_words(items, batch, work)
    for d in batch:
        for j in range(items.offsets[d], items.offsets[d + 1]):
            stats, phi = work.stats[work.slot[items.index[j]]], shared.value_memory[j]
            count = np.float64(items.value[j])
            for k in range(stats.shape[0]):
                stats[k] += count * np.float64(np.int32(phi[k]))
    for i in range(n):
        work.slot[work.touched[i]] = -1
    return n


def sum_of(state: State) -> State:
    """A state from 0, which one pass over all items makes ``UNIT sum_d c_dw phi_dwk``.

    The sums are made in float64: 20 million times 1 is no more than 2**24 in float32; and those of
    integers are exact, in whatever order.
    """
    n_columns = state.model.shape[1]
    model = Model(
        name=state.model.name, shape=state.model.shape, prior=np.zeros(n_columns),
        hyper=np.zeros(0), local=recall, scratch=_no_scratch, value_memory=n_columns,
        learner="incremental", nonnegative=True, used_columns=state.model.used_columns,
    )  # fmt: skip
    total = State.resume(model, np.zeros(model.shape), 1)
    total.shared = total.shared._replace(value_memory=state.shared.value_memory)
    return total


def _no_scratch(longest):
    return 0


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


def local(shared, scale, hyper, items, batch, work):
    """See :class:`dpsvi.base.Model`; incremental, with ``value_memory`` = columns."""
    rows, kept = shared.rows, shared.value_memory
    n_rows, n_columns = rows.shape
    real = rows.dtype.type
    zero, half, unit, part = real(0), real(0.5), real(UNIT), real(1 / UNIT)
    times = real(collapsed.OWN)
    options = options_of(hyper, n_columns)
    c, eta = real(scale), real(options.eta)
    vectors = work.scratch[: 5 * n_columns].reshape((5, n_columns))
    gamma, phi, size, prior, alpha = vectors[0], vectors[1], vectors[2], vectors[3], vectors[4]
    for k in range(n_columns):
        prior[k], alpha[k] = eta, options.alpha[k]

    n = list_words(items, batch, work)
    topic_sizes(options.alpha, options.eta, options.sizes, scale, n_rows, work.totals, size)
    smooth = real(n_rows) * eta
    for b in range(batch.shape[0]):
        d = batch[b]
        start, stop = items.offsets[d], items.offsets[d + 1]
        if b + 1 < batch.shape[0]:
            prefetch_words(items, batch[b + 1], rows)
        known = count_tokens(kept[start:stop], items.value[start:stop], alpha, gamma)
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
    for i in range(n):
        work.slot[work.touched[i]] = -1
    return n
