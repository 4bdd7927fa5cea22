"""The collapsed local step of LDA with few topics a document: its cost does not grow with K.

A document of some hundred words belongs to a handful of many topics.  So its words vote: each has
a list of the topics that it is most probable in, and the document is explained, by the equations of
:mod:`dpsvi.kernels.collapsed`, as if the `FEW` topics with the most votes were all there are::

    votes_k = sum_w c_dw b_wk / sum_j b_wj,      b_wk = lam_wk / sum_v lam_vk

with k from the `LISTED` topics of each word.  Statistics are those of these topics; reading
and writing them costs the same whatever K is.  Nothing is remembered of documents.

Lists are what threads keep between their steps, each its own.  A thread looks through the whole row
of a word when it meets it first, and again after 2, 4, 8, ... visits, at most ``K / LOOK`` apart:
so looking costs about ``LOOK`` numbers a visit.

The idea that few topics of a document matter is that of sparse samplers and of ESVI (Yao et al.
2009; Zhang et al. 2019).  `python -m experiments.many_topics` compares the step with the others.
"""

from __future__ import annotations

import numpy as np

from dpsvi.families.topics.defaults import Defaults
from dpsvi.kernels.collapsed import explain
from dpsvi.kernels.fold import options_of, start_even, topic_sizes
from dpsvi.kernels.jit import inline_kernel, kernel

DEFAULTS = Defaults(
    word_tokens=2.0, sweeps=20, steps=256, most=64, memory=0.2, stream_memory=1 / 3,
    stream_sweeps=20,
)  # fmt: skip
FEW = 32  # topics of a document
LISTED = 8  # topics in the list of a word
LOOK = 16
_RECORD = 2 + 2 * LISTED  # of a word: visits until it is looked at, how many these were, its list


def fields(n_words: int, n_columns: int) -> dict:
    """Fields of :class:`dpsvi.base.Model` for a model of this shape."""
    return {
        "few_columns": FEW, "thread_memory": n_words * _RECORD,
        "scratch": lambda longest: 2 * n_columns + 4 * FEW + longest * (FEW + 2),
    }  # fmt: skip


@inline_kernel
def _parameter(rows, word_prior, eta, c, w, k):
    """``lam_wk``."""
    if word_prior.shape[0]:
        eta = rows.dtype.type(word_prior[w, k])
    return eta + c * rows[w, k]


@kernel
def _look(rows, word_prior, eta, c, w, topic, record):
    """List the topics in which a word is most probable, with their shares of all topics."""
    ids, shares = record[2 : 2 + LISTED], record[2 + LISTED :]
    total, least, place, n = 0.0, 0.0, 0, 0
    for k in range(LISTED):
        shares[k] = 0.0
    for k in range(topic.shape[0]):
        x = _parameter(rows, word_prior, eta, c, w, k) * topic[k]
        total += x
        if x > least:
            ids[place], shares[place] = k, x
            n += 1
            if n < LISTED:
                place = n
                continue
            place = 0
            for i in range(1, LISTED):
                if shares[i] < shares[place]:
                    place = i
            least = shares[place]
    for k in range(LISTED):
        shares[k] /= total


@kernel
def _first(found, votes, n, most):
    """Order the n topics in `found` such that those with the most votes are the first `most`."""
    low, high = 0, n - 1
    while low < high:
        pivot = votes[found[(low + high) // 2]]
        i, j = low, high
        while i <= j:
            while votes[found[i]] > pivot:
                i += 1
            while votes[found[j]] < pivot:
                j -= 1
            if i <= j:
                found[i], found[j] = found[j], found[i]
                i += 1
                j -= 1
        if most <= j:
            high = j
        elif most >= i:
            low = i
        else:
            break


@inline_kernel
def _vote(words, counts, rows, word_prior, eta, c, topic, records, votes, found):
    """Choose the topics of a document, `found` up to the number that is returned."""
    n = 0
    for i in range(words.shape[0]):
        record = records[words[i]]
        if record[0] <= 0:
            _look(rows, word_prior, eta, c, words[i], topic, record)
            record[1] = min(2 * record[1] + 1, topic.shape[0] / LOOK)
            record[0] = record[1]
        record[0] -= 1
        for j in range(LISTED):
            if record[2 + LISTED + j] > 0:
                k = np.int32(record[2 + j])
                if votes[k] == 0:
                    found[n] = k
                    n += 1
                votes[k] += counts[i] * record[2 + LISTED + j]
    most = min(n, FEW)
    if n > FEW:
        _first(found, votes, n, FEW - 1)
    for j in range(n):
        votes[found[j]] = 0
    return most


def local(shared, scale, hyper, items, batch, work):
    """See :class:`dpsvi.base.Model`; statistics are of few columns."""
    rows, longest = shared.rows, work.ids.shape[0]
    n_words, n_columns = rows.shape
    real = rows.dtype.type
    options = options_of(hyper, n_columns)
    topic, votes = work.scratch[:n_columns], work.scratch[n_columns : 2 * n_columns]
    rest = work.scratch[2 * n_columns :]
    vectors = rest[: 4 * FEW].reshape((4, FEW))
    gamma, weight, total, alpha = vectors[0], vectors[1], vectors[2], vectors[3]
    blocks = rest[4 * FEW :][: longest * FEW].reshape((longest, FEW))
    ratios = rest[(4 + longest) * FEW :][: 2 * longest].reshape((2, longest))
    records = work.kept.reshape((n_words, _RECORD))
    found = np.empty(max(FEW, longest * LISTED), np.int32)
    topic_sizes(options.alpha, options.eta, options.sizes, scale, n_words, work.totals, topic)
    prior = real(options.alpha.sum())
    for k in range(n_columns):
        topic[k] = real(1) / topic[k] if options.alpha[k] > 0 else real(0)
        votes[k] = 0
    c, eta = real(scale), real(options.eta)
    n = 0
    for d in batch:
        start, stop = items.offsets[d], items.offsets[d + 1]
        if start == stop:
            continue
        words, counts = items.index[start:stop], items.value[start:stop]
        block, left = blocks[: stop - start], ratios[1, : stop - start]
        ratio = ratios[0, : stop - start]
        most = _vote(
            words, counts, rows, options.word_prior, eta, c, topic, records, votes, found
        )
        length = real(0)
        for i in range(stop - start):
            length += counts[i]
            gathered = block[i]
            for j in range(most):
                k = found[j]
                gathered[j] = _parameter(rows, options.word_prior, eta, c, words[i], k) * topic[k]
            for j in range(most, FEW):
                gathered[j] = 0
        for j in range(FEW):
            alpha[j] = options.alpha[found[j]] if j < most else 0
        start_even(alpha, length / real(most), gamma)
        explain(
            counts, alpha, prior, options.tol, options.n_sweeps, length, gamma, weight, total,
            ratio, left, block,
        )  # fmt: skip
        for i in range(stop - start):
            stats, columns, b = work.stats[n], work.columns[n], block[i]
            work.touched[n] = words[i]
            for j in range(FEW):
                columns[j] = found[j] if j < most else 0
                stats[j] = ratio[i] * weight[j] * b[j]
            n += 1
    return n
