"""Diagonal components of points whose coordinates may be missing, NaN.

A coordinate that is missing says nothing of its dimension, and under a diagonal covariance nothing
of the others: it is left out, which integrates it out exactly.  So every dimension has seen
points of its own, and Normal-Gamma distributions (:mod:`dpsvi.expfam.normal_gamma`) need a kappa
and a nu for each.  Rows are ``model's number | kappa | h | Psi | nu | c``, 1 + 5 D numbers, where c
is 0 in natural form, and in standard form the part of ``E ln N(x_d | mu_d, 1 / lambda_d)`` that
does not depend on x_d.  No other rows are as long, whatever D is.
"""

from __future__ import annotations

import math

import numpy as np

from dpsvi.expfam.gaussian import BLOCK
from dpsvi.kernels.digamma import digamma
from dpsvi.kernels.jit import inline_kernel, kernel


def has_own_counts(rows, n):
    """Whether `rows`, (K, columns), of `n` dimensions are of this layout."""
    return rows.shape[1] == 5 * n + 1


@kernel
def to_standard(row, floor):
    """Turn a natural row into a standard one, in place, but for the model's number.

    `floor` is that of :func:`dpsvi.expfam.normal_gamma.to_standard`.
    """
    n = floor.shape[0]
    for d in range(n):
        kappa, nu = row[1 + d], row[1 + 3 * n + d]
        mean = row[1 + n + d] / kappa
        variance = max(row[1 + 2 * n + d] - kappa * mean * mean, floor[d]) / nu
        row[1 + n + d], row[1 + 2 * n + d] = mean, math.sqrt(variance)
        log_precision = digamma(0.5 * nu) + math.log(2.0 / nu) - math.log(variance)
        row[1 + 4 * n + d] = 0.5 * (log_precision - math.log(2.0 * math.pi) - 1.0 / kappa)


@inline_kernel
def log_densities(x, standard, origins, log_p):
    """As :func:`dpsvi.expfam.gaussian.log_densities`, of the coordinates that are there."""
    n_components, n = origins.shape
    for k in range(n_components):
        row, out = standard[k], log_p[k]
        for i in range(BLOCK):
            out[i] = row[0]
        for d in range(n):
            mean, scale, constant = row[1 + n + d], 1.0 / row[1 + 2 * n + d], row[1 + 4 * n + d]
            for i in range(BLOCK):
                here = ((x[d, i] - origins[k, d]) - mean) * scale
                out[i] += constant - 0.5 * here * here if x[d, i] == x[d, i] else 0.0


@inline_kernel
def add_stats(x, weight, origins, stats):
    """As :func:`dpsvi.expfam.gaussian.add_stats`, of the coordinates that are there."""
    n_components, n = origins.shape
    for k in range(n_components):
        r, row = weight[k], stats[k]
        for i in range(BLOCK):
            row[0] += r[i]
        for d in range(n):
            mass, total, square = 0.0, 0.0, 0.0
            for i in range(BLOCK):
                there = x[d, i] == x[d, i]
                here = x[d, i] - origins[k, d] if there else 0.0
                mass += r[i] if there else 0.0
                total += r[i] * here
                square += r[i] * here * here
            row[1 + d] += mass
            row[1 + n + d] += total
            row[1 + 2 * n + d] += square
            row[1 + 3 * n + d] += mass


def statistics(points, resp, origins):
    """Rows (K, 5 D + 1) of the sums over all points, x counted from `origins`.

    Parameters
    ----------
    points : float64 array, (n, D)
        NaN where a coordinate is missing.
    resp : float64 array, (n, K)
    origins : float64 array, (K, D)
    """
    there, center = ~np.isnan(points), origins.mean(axis=0)
    shifted = np.where(there, points - center, 0.0)
    mass = resp.T @ there
    parts = [mass, resp.T @ shifted, resp.T @ shifted**2, mass, np.zeros_like(mass)]
    return moved(np.hstack([resp.sum(axis=0)[:, None], *parts]), center - origins)


def moved(rows, shift):
    """As :func:`dpsvi.expfam.gaussian.moved`."""
    n = shift.shape[1]
    new, kappa, h = rows.copy(), rows[:, 1 : n + 1], rows[:, n + 1 : 2 * n + 1]
    new[:, n + 1 : 2 * n + 1] += kappa * shift
    new[:, 2 * n + 1 : 3 * n + 1] += (2 * h + kappa * shift) * shift
    return new


def spread(rows, n):
    """Natural rows of the layout with one kappa and one nu, (K, 2 D + 3), in this layout."""
    kappa, nu = (np.repeat(column, n, axis=1) for column in (rows[:, 1:2], rows[:, -1:]))
    return np.hstack([rows[:, :1], kappa, rows[:, 2:-1], nu, np.zeros_like(nu)])


def spread_standard(standard, n):
    """The same for rows in standard form."""
    rows = spread(standard, n)
    nu = standard[:, -1:]
    log_precision = np.array([[digamma(0.5 * v)] for v in nu[:, 0]]) + np.log(2.0 / nu)
    log_precision = log_precision - 2 * np.log(standard[:, n + 2 : -1])
    rows[:, 4 * n + 1 :] = 0.5 * (log_precision - math.log(2 * math.pi) - 1 / standard[:, 1:2])
    rows[:, 0] -= rows[:, 4 * n + 1 :].sum(axis=1)
    return rows
