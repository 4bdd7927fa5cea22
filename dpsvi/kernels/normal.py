"""Moments of a normal vector from its natural parameters, symmetric matrices as vectors.

``svec(A)`` holds the lower triangle of A row by row, what is off the diagonal times sqrt(2), so
that ``svec(A) @ svec(B) = tr(A B)``.  A vector of K (K + 3) / 2 numbers, svec(E[x x^T]) | E[x], is
all that linear-Gaussian models with a product of two such x, like matrix factorisation, need.
"""

from __future__ import annotations

import math

import numpy as np

from dpsvi.kernels.jit import inline_kernel, kernel

_ROOT2 = math.sqrt(2.0)


@inline_kernel
def n_columns(n):
    """Numbers in svec(x x^T) | x for x of length n."""
    return n * (n + 3) // 2


@inline_kernel
def moments(natural, precision, weight, n, matrix, inverse, out):
    """svec(E[x x^T]) | E[x] under N(P^-1 h, P^-1); returns ln det P.

    Parameters
    ----------
    natural : float64 array, (n (n + 3) / 2,)
        svec(A) | g, with ``P = precision I + weight A`` and ``h = weight g``; A is positive
        semidefinite.
    precision, weight : float, > 0
    n : int
        Length of x.
    matrix, inverse : float64 arrays, (n, n)
        Scratch.
    out : float64 array, (n (n + 3) / 2,)
        Written.
    """
    start = n * (n + 1) // 2
    log_det = 0.0
    # The Cholesky factor L of P and, row by row, its inverse.
    for i in range(n):
        row, place = matrix[i], i * (i + 1) // 2
        for j in range(i):
            other = matrix[j]
            total = weight / _ROOT2 * natural[place + j]
            for k in range(j):
                total -= row[k] * other[k]
            row[j] = total / other[j]
        pivot = precision + weight * natural[place + i]
        for k in range(i):
            pivot -= row[k] * row[k]
        # In exact arithmetic no pivot of P is below that of its part precision * I.
        row[i] = math.sqrt(max(pivot, precision))
        log_det += 2.0 * math.log(row[i])
        for j in range(i):
            inverse[i, j] = 0.0
        for k in range(i):
            for j in range(k + 1):
                inverse[i, j] -= row[k] * inverse[k, j]
        for j in range(i):
            inverse[i, j] /= row[i]
        inverse[i, i] = 1.0 / row[i]
    # P^-1 = L^-T L^-1, and its product with h.
    for c in range(out.shape[0]):
        out[c] = 0.0
    mean = out[start:]
    for i in range(n):
        row = inverse[i]
        product = 0.0
        for j in range(i + 1):
            product += row[j] * natural[start + j]
        product *= weight
        for j in range(i + 1):
            mean[j] += product * row[j]
            part = out[j * (j + 1) // 2 :]
            for k in range(j):
                part[k] += _ROOT2 * row[j] * row[k]
            part[j] += row[j] * row[j]
    for j in range(n):
        part = out[j * (j + 1) // 2 :]
        for k in range(j):
            part[k] += _ROOT2 * mean[j] * mean[k]
        part[j] += mean[j] * mean[j]
    return log_det


@kernel
def draw_all(natural, precision, weight, n, drawn):
    """Turn standard normal numbers into draws of every x, whose moments :func:`moments` gives.

    Parameters
    ----------
    natural, precision, weight, n
        As in :func:`all_moments`.
    drawn : float64 array, (n_samples, n, n_rows)
        Overwritten.
    """
    matrix, inverse, out = np.empty((n, n)), np.empty((n, n)), np.empty(natural.shape[1])
    mean = out[n * (n + 1) // 2 :]
    for r in range(natural.shape[0]):
        moments(natural[r], precision, weight, n, matrix, inverse, out)
        for s in range(drawn.shape[0]):
            # The covariance is L^-T L^-1: entry j needs the noise from j on only.
            for j in range(n):
                value = mean[j]
                for i in range(j, n):
                    value += inverse[i, j] * drawn[s, i, r]
                drawn[s, j, r] = value


@kernel
def all_moments(natural, precision, weight, n, out, log_dets):
    """:func:`moments` of every row of `natural`; `out` and `log_dets` are written."""
    matrix, inverse = np.empty((n, n)), np.empty((n, n))
    for i in range(natural.shape[0]):
        log_dets[i] = moments(natural[i], precision, weight, n, matrix, inverse, out[i])
