"""Document inference with the topics held fixed: for `transform`, for fold-in, for the bound."""

from __future__ import annotations

import numpy as np

from dpsvi.kernels.fold import fold
from dpsvi.kernels.jit import copy, inline_kernel, kernel
from dpsvi.kernels.special import exp_digamma_row

LONGEST = np.float32(16)  # steps at once, at most


@inline_kernel
def leap(before, step, bend, least, gamma):
    """Go on along the last two sweeps: squared extrapolation (Varadhan, Roland 2008, S3).

    The first sweep changed `before` by `step`, the second one by ``step + bend``.  EM goes the
    same way for many sweeps, a little less far each time; the sweep that follows corrects this one.
    """
    straight, bent = np.float32(0), np.float32(0)
    for k in range(gamma.shape[0]):
        straight += step[k] * step[k]
        bent += bend[k] * bend[k]
    if straight <= bent:
        return
    far = min(np.sqrt(straight / bent), LONGEST) if bent > 0 else np.float32(1)
    for k in range(gamma.shape[0]):
        x = before[k] + np.float32(2) * far * step[k] + far * far * bend[k]
        gamma[k] = max(x, least[k])


@kernel
def infer(basis, alpha, items, first, last, digamma, tol, n_sweeps, gamma):
    """Iterate gamma of documents [first, last) to convergence; each document on its own.

    Parameters
    ----------
    basis : float32 array, (n_words, n_columns)
        Weight of each word in each topic; 0 in padding columns.
    alpha : float32 array, (n_columns,)
        0 marks padding.
    items : Items
    first, last : int
    digamma : bool
        Topic weights are exp(psi(gamma)) (mean field) or gamma itself (collapsed).  The latter is
        EM for a concave function, and every third sweep leaps ahead; mean field has several
        solutions, and a leap would lead to others.  So would a first sweep with the weights of a
        small, uneven prior, exp(-1 / alpha_k), which differ beyond all that words could say: in
        the first sweep of mean field all topics weigh the same.
    tol : float
        Stop when the mean change of gamma over the topics is smaller.
    n_sweeps : int
    gamma : float32 array, (n_items, n_columns)
        Written.
    """
    n_columns = alpha.shape[0]
    weight, total = np.zeros_like(alpha), np.empty_like(alpha)
    before, step, bend = np.empty_like(alpha), np.empty_like(alpha), np.empty_like(alpha)
    zero = np.float32(0)
    n_topics = 0
    for k in range(n_columns):
        n_topics += alpha[k] > 0
    longest = 0
    for d in range(first, last):
        longest = max(longest, items.offsets[d + 1] - items.offsets[d])
    ratios = np.empty(longest, np.float32)
    blocks = np.empty((longest, n_columns), np.float32)
    positions = np.empty(longest, np.int64)
    for i in range(longest):
        positions[i] = i
    for d in range(first, last):
        start, stop = items.offsets[d], items.offsets[d + 1]
        words, counts = items.index[start:stop], items.value[start:stop]
        ratio, block = ratios[: stop - start], blocks[: stop - start]
        own = gamma[d]
        length = zero
        for i in range(stop - start):
            length += counts[i]
            row, gathered = basis[words[i]], block[i]
            for k in range(n_columns):
                gathered[k] = row[k]
        for k in range(n_columns):
            own[k] = alpha[k] + length / np.float32(n_topics) if alpha[k] > 0 else zero
        if length == 0:
            continue
        for sweep in range(n_sweeps):
            if digamma and sweep == 0:
                for k in range(n_columns):
                    weight[k] = np.float32(1) if alpha[k] > 0 else zero
            elif digamma:
                exp_digamma_row(own, n_topics, weight)
            else:
                copy(own, weight)
            fold(block, positions[: stop - start], counts, weight, total, ratio)
            change = zero
            for k in range(n_columns):
                new = alpha[k] + weight[k] * total[k]
                change += abs(new - own[k])
                if sweep % 3 == 0:
                    before[k], step[k] = own[k], new - own[k]
                else:
                    bend[k] = new - own[k] - step[k]
                own[k] = new
            if change < tol * np.float32(n_topics) and (sweep > 0 or not digamma):
                break
            if sweep % 3 == 1 and sweep + 1 < n_sweeps and not digamma:
                leap(before, step, bend, alpha, own)


@kernel
def score(basis, theta, items, first, last, log_likelihood):
    """``log_likelihood[d] = sum_w c_dw log sum_k theta_dk basis_wk``, d in [first, last)."""
    for d in range(first, last):
        log_likelihood[d] = 0.0
        for j in range(items.offsets[d], items.offsets[d + 1]):
            if items.value[j] > 0:
                row = basis[items.index[j]]
                p = np.float32(0)
                for k in range(row.shape[0]):
                    p += theta[d, k] * row[k]
                log_likelihood[d] += items.value[j] * np.log(np.float64(p))
