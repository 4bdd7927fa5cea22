"""The collapsed local step of LDA with few topics a document: its cost hardly grows with K.

A document of some hundred words belongs to a handful of many topics.  So its words vote: each has
a list of the topics that it is most probable in, and the document is explained, by the equations of
:mod:`dpsvi.kernels.collapsed`, as if the `FEW` topics with the most votes were all there are::

    votes_k = sum_w c_dw b_wk / sum_j b_wj,      b_wk = lam_wk / sum_v lam_vk

with k from the `LISTED` topics of each word.  Statistics are those of these topics, so a pair reads
and writes `FEW` numbers whatever K is.  Nothing is remembered of documents.

Lists are what threads keep between their steps, each its own.  A thread looks through the whole row
of a word when it meets it first, and again 1, 3, 7, ... visits later, at most ``K / LOOK`` each
time: so looking costs about ``LOOK`` numbers a visit of a word that comes often.

The idea that few topics of a document matter is that of sparse samplers and of ESVI (Yao et al.
2009; Zhang et al. 2019).  `python -m experiments.many_topics` compares the step with the others.
"""

from __future__ import annotations

import numpy as np

from dpsvi.kernels.collapsed import explain, repetition, sharpness
from dpsvi.kernels.fold import options_of, start_even, topic_sizes
from dpsvi.kernels.jit import inline_kernel, kernel
from dpsvi.models.lda.local_steps import collapsed

# A sweep costs little here.
DEFAULTS = collapsed.DEFAULTS._replace(sweeps=20, more_sweeps=1.0, stream_sweeps=20)
FEW = 32  # topics of a document
LISTED = 8  # topics in the list of a word
LOOK = 16
# Of a word: visits until it is looked at, how many these were, its list, the sum of its lam.
_SUM = 2 + 2 * LISTED
_RECORD = _SUM + 1


def fields(n_words: int, n_columns: int) -> dict:
    """Fields of :class:`dpsvi.base.Model` for a model of this shape."""
    return {
        "few_columns": FEW, "thread_memory": n_words * _RECORD,
        "scratch": lambda longest: 3 * n_columns + 5 * FEW + longest * (FEW + 2),
    }  # fmt: skip


@kernel
def _look(row, prior, eta, c, n_topics, topic, share, record):
    """List the topics in which a word is most probable, with their shares of all topics.

    `prior` holds the eta of the word in each topic where it has some of its own; `share` is
    memory for a number a topic.
    """
    total = share.dtype.type(0)
    if prior.shape[0]:
        for k in range(topic.shape[0]):
            share[k] = (share.dtype.type(prior[k]) + c * row[k]) * topic[k]
            total += share[k]
    else:
        for k in range(topic.shape[0]):
            share[k] = (eta + c * row[k]) * topic[k]
            total += share[k]
    smooth = share.dtype.type(prior.sum()) if prior.shape[0] else eta * share.dtype.type(n_topics)
    record[_SUM] = smooth + c * row.sum()
    ids, shares = record[2 : 2 + LISTED], record[2 + LISTED : _SUM]
    least, place, n = share.dtype.type(0), 0, 0
    for k in range(LISTED):
        shares[k] = 0.0
    for k in range(topic.shape[0]):
        if share[k] > least:
            ids[place], shares[place] = k, share[k]
            n += 1
            if n < LISTED:
                place = n
                continue
            place = 0
            for i in range(1, LISTED):
                if shares[i] < shares[place]:
                    place = i
            least = share.dtype.type(shares[place])
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
def _vote(
    words, counts, rows, word_prior, eta, c, n_topics, topic, share, records, votes, found
):  # fmt: skip
    """Choose the topics of a document, `found` up to the number that is returned."""
    n, none = 0, word_prior.reshape(word_prior.size)[:0]
    for i in range(words.shape[0]):
        record = records[words[i]]
        if record[0] <= 0:
            prior = word_prior[words[i]] if word_prior.shape[0] else none
            _look(rows[words[i]], prior, eta, c, n_topics, topic, share, record)
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


@inline_kernel
def _gather(words, rows, word_prior, eta, c, found, size, block):
    """``block_ij = lam_wk / sum_v lam_vk`` of the words of a document and the topics in `found`.

    `size` holds one over the sum of each topic, and 0 behind those that were found.
    """
    for i in range(words.shape[0]):
        row, gathered = rows[words[i]], block[i]
        if word_prior.shape[0]:
            prior = word_prior[words[i]]
            for j in range(FEW):
                k = found[j]
                gathered[j] = (block.dtype.type(prior[k]) + c * row[k]) * size[j]
        else:
            for j in range(FEW):
                gathered[j] = (eta + c * row[found[j]]) * size[j]


def local(shared, scale, hyper, items, batch, work):
    """See :class:`dpsvi.base.Model`; statistics are of few columns."""
    rows, longest = shared.rows, work.ids.shape[0]
    n_words, n_columns = rows.shape
    real = rows.dtype.type
    options = options_of(hyper, n_columns)
    vectors, rest = work.scratch[: 3 * n_columns], work.scratch[3 * n_columns :]
    topic, votes = vectors[:n_columns], vectors[n_columns : 2 * n_columns]
    share = vectors[2 * n_columns :]
    short = rest[: 5 * FEW].reshape((5, FEW))
    gamma, weight, total, alpha, size = short[0], short[1], short[2], short[3], short[4]
    blocks = rest[5 * FEW :][: longest * FEW].reshape((longest, FEW))
    ratios = rest[(5 + longest) * FEW :][: 2 * longest].reshape((2, longest))
    records = work.kept.reshape((n_words, _RECORD))
    found = np.empty(max(FEW, longest * LISTED), np.int32)
    n_topics = topic_sizes(
        options.alpha, options.eta, options.sizes, scale, n_words, work.totals, topic
    )
    prior, all_sizes = real(options.alpha.sum()), topic.sum()
    sharp, mean = sharpness(options.alpha, all_sizes, n_words)
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
            words, counts, rows, options.word_prior, eta, c, n_topics, topic, share, records, votes,
            found,
        )  # fmt: skip
        for j in range(FEW):
            alpha[j] = options.alpha[found[j]] if j < most else 0
            size[j] = topic[found[j]] if j < most else 0
            found[j] = found[j] if j < most else 0
        _gather(words, rows, options.word_prior, eta, c, found, size, block)
        length, held = counts.sum(), 0.0
        for i in range(stop - start):
            held += counts[i] * records[words[i], _SUM]
        repeats = repetition(counts, length, real(held), all_sizes)
        start_even(alpha, length / real(most), gamma)
        explain(
            counts, alpha, prior, options.tol, options.n_sweeps, length, repeats, sharp, mean,
            gamma, weight, total, ratio, left, block,
        )  # fmt: skip
        for i in range(stop - start):
            stats, columns, b = work.stats[n], work.columns[n], block[i]
            work.touched[n] = words[i]
            for j in range(FEW):
                columns[j] = found[j]
                stats[j] = ratio[i] * weight[j] * b[j]
            n += 1
    return n
