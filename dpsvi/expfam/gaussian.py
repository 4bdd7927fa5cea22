"""Points under Gaussian components: log-densities, responsibilities, sufficient statistics.

Components are rows whose first entry belongs to the model and whose others are a Normal-Wishart
distribution (:mod:`dpsvi.expfam.normal_wishart`) or, with diagonal covariances, Normal-Gamma
distributions (:mod:`dpsvi.expfam.normal_gamma`), relative to an origin of each component:
``model's number | kappa | h | Psi | nu`` of 1 + 1 + D + D^2 (full) or D (diagonal) + 1 numbers.
The length of a row tells which; for D = 1 they are the same.

Points are handled a block at a time, transposed, so that every inner loop runs over points: a
vector loop of fixed length whatever D is.
"""

from __future__ import annotations

import numpy as np

from dpsvi.kernels.jit import inline_kernel, kernel

BLOCK = 64


@inline_kernel
def log_densities(x, standard, origins, y, log_p):
    """``log_p[k] = standard[k, 0] - nu_k (x - m_k)^T W_k (x - m_k) / 2`` for a block of points.

    Parameters
    ----------
    x : float64 array, (D, BLOCK)
    standard : float64 array, (K, D * D + D + 3) or (K, 2 * D + 3)
        The constant, then the distribution in standard form, of each component.
    origins : float64 array, (K, D)
    y : float64 array, (D + 1, BLOCK)
        Overwritten.
    log_p : float64 array, (K, BLOCK)
        Overwritten with the result.
    """
    n_components, n = origins.shape
    diagonal = standard.shape[1] == 2 * n + 3
    for k in range(n_components):
        row, out = standard[k], log_p[k]
        mean, factor = row[2 : n + 2], row[n + 2 : -1]
        for i in range(BLOCK):
            out[i] = row[0]
        # Forward substitution G y = x - m: the quadratic form is y^T y.
        for d in range(n):
            here = y[d]
            for i in range(BLOCK):
                here[i] = (x[d, i] - origins[k, d]) - mean[d]
            for e in range(0 if diagonal else d):
                g, solved = factor[d * n + e], y[e]
                for i in range(BLOCK):
                    here[i] -= g * solved[i]
            g = 1.0 / factor[d if diagonal else d * n + d]
            for i in range(BLOCK):
                here[i] *= g
                out[i] -= 0.5 * here[i] * here[i]


@inline_kernel
def add_stats(x, weight, origins, y, stats):
    """Add a block's sums of ``r | r | r x | r x x^T | r``, r = `weight`, x from the origins.

    Weights may be negative.
    Of ``r x x^T`` only the lower triangle is added, see :func:`mirror`, or the diagonal.  Arrays as
    in :func:`log_densities`; `weight` is (K, BLOCK).
    """
    n_components, n = origins.shape
    diagonal = stats.shape[1] == 2 * n + 3
    for k in range(n_components):
        r, row = weight[k], stats[k]
        mass, size = 0.0, 0.0
        for i in range(BLOCK):
            mass += r[i]
            size += abs(r[i])
        if size == 0.0:
            continue
        row[0] += mass
        row[1] += mass
        row[-1] += mass
        weighted = y[n]
        for d in range(n):
            here, total = y[d], 0.0
            for i in range(BLOCK):
                here[i] = x[d, i] - origins[k, d]
                weighted[i] = r[i] * here[i]
                total += weighted[i]
            row[2 + d] += total
            for e in range(d if diagonal else 0, d + 1):
                other, total = y[e], 0.0
                for i in range(BLOCK):
                    total += weighted[i] * other[i]
                row[2 + n + (d if diagonal else d * n + e)] += total


@inline_kernel
def mirror(stats, n):
    """Copy the lower triangle of every component's ``r x x^T`` to the upper one."""
    if stats.shape[1] == 2 * n + 3:
        return
    for k in range(stats.shape[0]):
        square = stats[k, n + 2 : -1].reshape((n, n))
        for d in range(n):
            for e in range(d):
                square[e, d] = square[d, e]


def statistics(points, resp, origins, diagonal):
    """Rows (K, columns) of the sums ``r | r | r x | r x x^T | r`` of all points, x from `origins`.

    Parameters
    ----------
    points : float64 array, (n, D)
    resp : float64 array, (n, K)
    origins : float64 array, (K, D)
    diagonal : bool
        Whether rows are of the diagonal layout.
    """
    n = points.shape[1]
    rows = np.zeros((len(origins), n + 3 + (n if diagonal else n * n)))
    _add_all(*map(np.ascontiguousarray, (points, resp, origins)), rows)
    return rows


@kernel
def _add_all(points, resp, origins, rows):
    n_components, n = origins.shape
    x, y, r = np.empty((n, BLOCK)), np.empty((n + 1, BLOCK)), np.empty((n_components, BLOCK))
    for first in range(0, points.shape[0], BLOCK):
        for i in range(BLOCK):
            point = min(first + i, points.shape[0] - 1)
            for d in range(n):
                x[d, i] = points[point, d]
            for k in range(n_components):
                r[k, i] = resp[point, k] if first + i < points.shape[0] else 0.0
        add_stats(x, r, origins, y, rows)
    mirror(rows, n)


def moved(rows, shift):
    """The same components, rows (K, columns), that count from other origins.

    Parameters
    ----------
    rows : float64 array, (K, columns)
        In natural form.
    shift : float64 array, (K, D)
        The old origins, from the new ones.
    """
    n = shift.shape[1]
    new, kappa, h = rows.copy(), rows[:, 1:2], rows[:, 2 : n + 2]
    new[:, 2 : n + 2] += kappa * shift
    if rows.shape[1] == 2 * n + 3:
        new[:, n + 2 : -1] += (2 * h + kappa * shift) * shift
    else:
        cross = h[:, :, None] * shift[:, None]
        cross = cross + cross.swapaxes(1, 2) + (kappa * shift)[:, :, None] * shift[:, None]
        new[:, n + 2 : -1] += cross.reshape(len(rows), -1)
    return new


def first_statistics(points, resp, center, diagonal=False):
    """Origins (K, D) near the means of the components, and their :func:`statistics`.

    `center`, (D,), is the origin of components that are responsible for nothing.
    """
    mass = resp.sum(axis=0)
    origins = center + resp.T @ (points - center) / np.where(mass > 0, mass, 1.0)[:, None]
    return origins, statistics(points, resp, origins, diagonal)
