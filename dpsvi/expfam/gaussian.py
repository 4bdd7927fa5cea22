"""Points under Gaussian components: expected log-densities and sufficient statistics.

Components are rows whose first entry belongs to the model and whose others are a Normal-Wishart
distribution (:mod:`dpsvi.expfam.normal_wishart`) relative to an origin of each component.  Points
are handled a block at a time, transposed, so that every inner loop runs over points: a vector loop
of fixed length whatever D is.
"""

from __future__ import annotations

from dpsvi.jit import inline_kernel

BLOCK = 64


@inline_kernel
def load_block(items, batch, first, x):
    """Copy items batch[first:first + BLOCK] into the columns of `x`; returns their number.

    A block that is not full repeats its first point; give the copies the weight 0.
    """
    size = min(BLOCK, batch.shape[0] - first)
    for i in range(BLOCK):
        start = items.offsets[batch[first + i if i < size else first]]
        for d in range(x.shape[0]):
            x[d, i] = items.value[start + d]
    return size


@inline_kernel
def log_densities(x, standard, origins, y, log_p):
    """``log_p[k] = standard[k, 0] - nu_k (x - m_k)^T W_k (x - m_k) / 2`` for a block of points.

    Parameters
    ----------
    x : float64 array, (D, BLOCK)
    standard : float64 array, (K, D * D + D + 3)
        The constant, then the Normal-Wishart distribution in standard form, of each component.
    origins : float64 array, (K, D)
    y : float64 array, (D + 1, BLOCK)
        Overwritten.
    log_p : float64 array, (K, BLOCK)
        Overwritten with the result.
    """
    n_components, n = origins.shape
    for k in range(n_components):
        row, out = standard[k], log_p[k]
        mean, factor = row[2 : n + 2], row[n + 2 : -1].reshape((n, n))
        for i in range(BLOCK):
            out[i] = row[0]
        # Forward substitution G y = x - m: the quadratic form is y^T y.
        for d in range(n):
            here = y[d]
            for i in range(BLOCK):
                here[i] = (x[d, i] - origins[k, d]) - mean[d]
            for e in range(d):
                g, solved = factor[d, e], y[e]
                for i in range(BLOCK):
                    here[i] -= g * solved[i]
            g = 1.0 / factor[d, d]
            for i in range(BLOCK):
                here[i] *= g
                out[i] -= 0.5 * here[i] * here[i]


@inline_kernel
def add_stats(x, weight, origins, y, stats, first):
    """Add a block's sums of ``r | r | r x | r x x^T | r``, r = `weight`, x from the origins.

    Component k is in row ``(first + k) % K`` of `stats`.  Of ``r x x^T`` only the lower triangle is
    added, see :func:`mirror`.  Arrays as in :func:`log_densities`; `weight` is (K, BLOCK).
    """
    n_components, n = origins.shape
    for k in range(n_components):
        r, row = weight[k], stats[(first + k) % n_components]
        mass = 0.0
        for i in range(BLOCK):
            mass += r[i]
        if mass == 0.0:
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
            for e in range(d + 1):
                other, total = y[e], 0.0
                for i in range(BLOCK):
                    total += weighted[i] * other[i]
                row[2 + n + d * n + e] += total


@inline_kernel
def mirror(stats, n):
    """Copy the lower triangle of every component's ``r x x^T`` to the upper one."""
    for k in range(stats.shape[0]):
        square = stats[k, n + 2 : -1].reshape((n, n))
        for d in range(n):
            for e in range(d):
                square[e, d] = square[d, e]
