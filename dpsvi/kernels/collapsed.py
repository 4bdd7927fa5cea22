"""Documents explained by CVB0 without their own counts; LDA and the HDP share this.

Integrating theta and beta out and keeping the zeroth-order term of the expectations (Asuncion et
al. 2009) replaces exp(E log) by plain means.  CVB0 leaves a token's own share phi out of the counts
that explain it, which otherwise has to be remembered.  Within the document it need not be: phi
solves an equation in which only the last norm is needed::

    b_wk = lam_wk / sum_v lam_vk,      phi_dwk = gamma_dk b_wk / (norm_dw + OWN c_dw b_wk)
    gamma_dk = alpha_k + sum_w c_dw phi_dwk

With OWN c = 1 this is exactly CVB0's exclusion of one token from its document: ``phi_k = (gamma_k -
phi_k) b_k / norm``.  Here it is left out OWN = 2 times: lam_wk holds it, too, from earlier visits,
and what was remembered of those would be needed to take it out of it.  And so are some of the
word's other tokens.  They come in bursts, so that c_dw tokens say as much as sqrt(c_dw) do, and
those that are there because they repeat the first are left out to that extent: in place of c::

    1 + (sqrt(c_dw) - 1) repeats_d
    repeats_d = 1 - sum_w c_dw (N_d - 1) p_w / sum_w c_dw (c_dw - 1)

with p_w the share of the word in all topics, and never less than 0; 1 where no word repeats.  In
text nearly all repetitions are of that kind.  Where words are few, a word comes again because it is
frequent; if all its tokens were left out, no word could draw its document to a topic, and all
topics would stay alike.  In long documents most words come often, and would have no say in what
explains them if all of c were left out.  No more than half of the document (its tokens, their
prior, less what h below takes) is left out for one word: else the equation has no solution.
`python -m experiments.own_counts` compares strengths, and what else could stand in place of c.

With means of theta a document keeps a little of many topics, which then stay mixtures of what they
could tell apart.  So in the equation for phi there stands, in place of gamma_dk::

    gamma_dk^2 / (gamma_dk + h_dk),      h_dk = SHARP t / (t + HALF_SHARP) (1 - SHORT / N_d) a_dk

About gamma - h where gamma is large: exp(psi(gamma)), as mean field has it, is about gamma - 1/2,
and the mode of a Dirichlet has gamma - 1.  Topics that rest on few tokens would learn single
documents by it, hence t, the tokens for each word and topic, prior included; and h is 0 in
documents of up to SHORT tokens.  a_dk is 1 where all alphas are equal; where not::

    a_dk = 1 - few_d + few_d alpha_k sum_j alpha_j / sum_j alpha_j^2,   few_d = (1 - repeats_d)^1.5

Where words are few, topics are alike for long, and if each lost the same, the one with the largest
alpha would take all; in proportion to alpha they keep what they have.  t counts topics by their
alphas, too.  `python -m experiments.sharpness` compares strengths.
"""

from __future__ import annotations

import numpy as np

from dpsvi.kernels.fold import (
    count_evidence,
    fold,
    prefetch_words,
    start_even,
    topic_sizes,
)
from dpsvi.kernels.jit import copy, inline_kernel, template

OWN = 2.0  # how many times a word's own count is left out of its document
SHARP = 2.0  # tokens that a topic gets less of a document, where topics rest on many tokens
HALF_SHARP = 3.0  # tokens for each word and topic with which it is half of that
SHORT = 10.0  # tokens of a document
EVERY = 3  # sweeps between two times that it is reckoned anew; the first sweep is without


def scratch(columns: int, longest: int) -> int:
    """Length of ``work.scratch`` for documents of up to `longest` different words."""
    return 4 * columns + longest * (columns + 2)


@inline_kernel
def gather(rows, words, counts, c, eta, word_prior, n_topics, topic, block):
    """``block_ik = lam_wk topic_k`` of the words of a document: read again in every sweep.

    Returns ``sum_w c_dw sum_k lam_wk``.
    """
    held = block.dtype.type(0)
    for i in range(words.shape[0]):
        row, gathered, tokens = rows[words[i]], block[i], block.dtype.type(0)
        if word_prior.shape[0]:
            prior = word_prior[words[i]]
            for k in range(topic.shape[0]):
                gathered[k] = (block.dtype.type(prior[k]) + c * row[k]) * topic[k]
                tokens += row[k]
                held += counts[i] * block.dtype.type(prior[k])
        else:
            for k in range(topic.shape[0]):
                gathered[k] = (eta + c * row[k]) * topic[k]
                tokens += row[k]
            held += counts[i] * eta * block.dtype.type(n_topics)
        held += counts[i] * c * tokens
    return held


@inline_kernel
def repetition(counts, length, held, total):
    """Share of a document's repetitions that the words' shares in all topics do not explain.

    `held` is what :func:`gather` returns, `total` the sum of lam.
    """
    real = counts.dtype.type
    zero, one, found = real(0), real(1), real(0)
    for i in range(counts.shape[0]):
        found += counts[i] * max(counts[i] - one, zero)
    if found == zero:
        return one
    return max(zero, one - held * max(length - one, zero) / (real(total) * found))


@inline_kernel
def sharpness(alpha, size, n_words):
    """How many tokens less the topics get of a long document, and the mean alpha of a token.

    The first is for each unit of alpha; `size` is the sum of lam, over `n_words` words.
    """
    total, squares = 0.0, 0.0
    for k in range(alpha.shape[0]):
        total += alpha[k]
        squares += alpha[k] * alpha[k]
    mean = squares / total
    tokens = size * mean / (total * n_words)
    return SHARP * tokens / (tokens + HALF_SHARP) / mean, mean


@inline_kernel
def tokens_left_out(count, repeats):
    """How many of the `count` tokens of a word are left out; `repeats` is that of the document."""
    one = type(count)(1)
    return min(count, one) + repeats * (np.sqrt(max(count, one)) - one)


@inline_kernel
def leave_own_out(repeats, most, counts, ratio, left, block):
    """Leave each word's own count out of the document: ``block_i = b_i / (1 + own_i b_i / norm)``.

    Without the share phi_k of a token, ``phi_k = (gamma_k - phi_k) b_k / norm`` and hence
    ``phi_k = gamma_k b_k / (norm + b_k)``: only the norm of the last sweep has to be known.
    Here ``own`` is OWN times what :func:`tokens_left_out` says, but no more than `most`; `ratio` is
    count / norm, and `left` the ``own / norm`` that is in `block` already: 0 at first.
    """
    one = block.dtype.type(1)
    times, least = block.dtype.type(OWN), block.dtype.type(1e-6)
    for i in range(block.shape[0]):
        if counts[i] == 0:
            continue
        own = times * tokens_left_out(counts[i], repeats)
        row, now = block[i], min(own, most) / counts[i] * ratio[i]
        more = now - left[i]  # as 1 / block_i = 1 / b_i + own ratio_i
        left[i] = now
        for k in range(row.shape[0]):
            row[k] /= max(one + more * row[k], least)


@inline_kernel
def add_assigned(stats, ids, ratio, weight, block):
    """``stats[ids[i]] += ratio_i * weight * block_i``, where block_i is of this document alone."""
    for i in range(ids.shape[0]):
        row, b, s = stats[ids[i]], block[i], ratio[i]
        for k in range(weight.shape[0]):
            row[k] += s * weight[k] * b[k]


@inline_kernel
def explain(
    counts, alpha, prior, tol, n_sweeps, length, repeats, sharp, mean, gamma, weight, total, ratio,
    left, block,
):  # fmt: skip
    """Iterate gamma of one document; leaves weight, ratio and block of the last sweep.

    `prior` is the sum of alpha over all topics, those of the columns of `block` or more; `repeats`
    comes from :func:`repetition`, `sharp` and `mean` from :func:`sharpness`.
    """
    real = gamma.dtype.type
    tol = real(tol) * length
    less = real(sharp) * max(real(0), real(1) - real(SHORT) / length)
    few = max(real(0), real(1) - repeats)  # RACE: lam may be below 0, and repeats then above 1
    few *= np.sqrt(few)
    all_alike, by_alpha = less * (real(1) - few) * real(mean), less * few
    least = real(1e-30)  # columns of padding have no gamma
    positions, most = np.empty(counts.shape[0], np.int64), real(0)
    for i in range(counts.shape[0]):
        positions[i], left[i] = i, 0
    for sweep in range(n_sweeps):
        if sweep % EVERY == 1:
            leave_own_out(repeats, most, counts, ratio, left, block)
        lost = real(0)
        for k in range(gamma.shape[0]):
            h = all_alike + by_alpha * real(alpha[k])
            weight[k] = gamma[k] * (gamma[k] / max(gamma[k] + h, least))
            lost += gamma[k] - weight[k]
        most = real(0.5) * (length + real(prior) - lost)
        fold(block, positions, counts, weight, total, ratio)
        change = real(0)
        for k in range(gamma.shape[0]):
            new = real(alpha[k]) + weight[k] * total[k]
            change += abs(new - gamma[k])
            gamma[k] = new
        if change < tol and sweep > 0:
            break


@template
def explain_all(shared, scale, options, n_words, items, batch, work, evidence):
    """The documents of a batch, one after the other: their counts are added to ``work.stats``.

    Parameters
    ----------
    shared, scale, items, batch, work
        As for a local step; the words of the batch have their slots.  Item memory holds the gamma
        of a document's last visit, if there is any.
    options : dpsvi.kernels.fold.Options
        Columns of padding must hold rows of 0.
    n_words : int
        V; ``work.totals`` are those of so many rows.
    evidence : bool
        Whether E[psi(n_k + alpha_k) - psi(alpha_k)] is added to ``work.tally``.
    """
    rows, longest = shared.rows, work.ids.shape[0]
    n_columns, real = rows.shape[1], rows.dtype.type
    vectors = work.scratch[: 4 * n_columns].reshape((4, n_columns))
    gamma, weight, total, topic = vectors[0], vectors[1], vectors[2], vectors[3]
    # Gathered rows of one document: contiguous, they are read at full speed in every sweep.
    blocks = work.scratch[4 * n_columns : (4 + longest) * n_columns].reshape((longest, n_columns))
    ratios = work.scratch[(4 + longest) * n_columns :][: 2 * longest].reshape((2, longest))
    n_topics = topic_sizes(
        options.alpha, options.eta, options.sizes, scale, n_words, work.totals, topic
    )
    c, eta, prior, size = real(scale), real(options.eta), 0.0, 0.0
    for k in range(n_columns):
        prior += options.alpha[k]
        size += topic[k]
        topic[k] = real(1) / topic[k] if options.alpha[k] > 0 else real(0)
    sharp, mean = sharpness(options.alpha, size, n_words)
    warm = shared.item_memory.shape[0] > 0
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
        length = real(0)
        for i in range(stop - start):
            ids[i] = work.slot[words[i]]
            length += counts[i]
        if warm and shared.item_memory[d, 0] > 0:
            copy(shared.item_memory[d], gamma)
        else:
            start_even(options.alpha, length / real(n_topics), gamma)
        held = gather(
            rows, words, counts, c, eta, options.word_prior, n_topics, topic, block
        )
        repeats = repetition(counts, length, held, size)
        explain(
            counts, options.alpha, prior, options.tol, options.n_sweeps, length, repeats, sharp,
            mean, gamma, weight, total, ratio, left, block,
        )  # fmt: skip
        add_assigned(work.stats, ids, ratio, weight, block)
        if warm:
            copy(gamma, shared.item_memory[d])
        if evidence:
            count_evidence(gamma, options.alpha, 1.0, work.tally)
