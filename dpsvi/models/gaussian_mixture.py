"""Bayesian Gaussian mixture with full covariances (Bishop 2006, 10.2; paper, 7.1).

    pi ~ Dir(alpha_0),    (mu_k, Lambda_k) ~ NW(m_0, kappa_0, W_0, nu_0)
    z_n ~ Cat(pi),        x_n ~ N(mu_{z_n}, Lambda_{z_n}^-1)

Row k of lam is ``alpha_k | kappa_k | h_k | Psi_k | nu_k``, of 1 + 1 + D + D^2 + 1 numbers, see
:mod:`dpsvi.expfam.normal_wishart`.  The statistics of a batch are sums over its points of
``r | r | r x | r x x^T | r``, where with the responsibilities r_nk as local parameters (44)

    ln r_nk = E ln pi_k + E ln|Lambda_k| / 2 - D/2 ln 2 pi
              - (D / kappa_k + nu_k (x_n - m_k)^T W_k (x_n - m_k)) / 2  + const.

Every component counts x from an origin o_k of its own, near its first mean and fixed for the whole
fit.  Natural parameters of different origins differ by a linear map, so all steps and averages stay
what they are, but ``W^-1 = Psi - h h^T / kappa`` then subtracts small numbers: neither data far
from zero nor an addition lost to a race can blow up a covariance.
"""

from __future__ import annotations

import math

import numpy as np

from dpsvi.base import Model
from dpsvi.expfam import dirichlet, normal_wishart
from dpsvi.expfam.digamma import digamma
from dpsvi.expfam.normal_wishart import expected_log_det, to_standard
from dpsvi.jit import inline_kernel, kernel

# Points handled together: the inner loops run over them, vector loops whatever D is.
_BLOCK = 64


@inline_kernel
def _unpack(hyper, n_rows, n_columns):
    """Least pivots of W^-1 (D,), origins (K, D) and prior (K, columns) out of `hyper`."""
    n = int(hyper[0])
    split = 1 + n + n_rows * n
    origins = hyper[1 + n : split].reshape((n_rows, n))
    return hyper[1 : 1 + n], origins, hyper[split:].reshape((n_rows, n_columns))


@kernel
def expect(rows, scale, hyper, expected):
    """Fill `expected` with rows ``E ln(pi_k ...) | kappa_k | m_k - o_k | G_k | nu_k``.

    The first entry is all of ln r_nk that does not depend on x_n; the others are the standard
    form of the component.
    """
    n_rows, n_columns = rows.shape
    floor, _, prior = _unpack(hyper, n_rows, n_columns)
    n = floor.shape[0]
    total = 0.0
    for k in range(n_rows):
        for j in range(n_columns):
            expected[k, j] = prior[k, j] + scale * rows[k, j]
        total += expected[k, 0]
    for k in range(n_rows):
        row, component = expected[k], expected[k, 1:]
        to_standard(component, floor)
        constant = n * (math.log(2.0 * math.pi) + 1.0 / component[0])
        row[0] = digamma(row[0]) - digamma(total)
        row[0] += 0.5 * (expected_log_det(component, n) - constant)


@inline_kernel
def _load(items, batch, first, x):
    """Copy up to a block of points from batch[first] on into the columns of `x`; how many."""
    size = min(_BLOCK, batch.shape[0] - first)
    for i in range(_BLOCK):
        start = items.offsets[batch[first + i if i < size else first]]
        for j in range(x.shape[0]):
            x[j, i] = items.value[start + j]
    return size


@inline_kernel
def _responsibilities(x, size, expected, origins, y, resp, bound):
    """``resp[k, i] = r_ik`` and ``bound[i] = ln sum_k r_ik`` before normalising; 0 from `size`."""
    n_rows, n = origins.shape
    for i in range(_BLOCK):
        bound[i] = -np.inf
    for k in range(n_rows):
        row, log_r = expected[k], resp[k]
        mean, factor = row[2 : n + 2], row[n + 2 : -1].reshape((n, n))
        for i in range(_BLOCK):
            log_r[i] = row[0]
        # Solve G y = x - m: the quadratic form is y^T y.
        for d in range(n):
            out = y[d]
            for i in range(_BLOCK):
                out[i] = (x[d, i] - origins[k, d]) - mean[d]
            for e in range(d):
                g, solved = factor[d, e], y[e]
                for i in range(_BLOCK):
                    out[i] -= g * solved[i]
            g = 1.0 / factor[d, d]
            for i in range(_BLOCK):
                out[i] *= g
                log_r[i] -= 0.5 * out[i] * out[i]
        for i in range(_BLOCK):
            bound[i] = max(bound[i], log_r[i])
    total = y[0]
    for i in range(_BLOCK):
        total[i] = 0.0
    for k in range(n_rows):
        for i in range(_BLOCK):
            resp[k, i] = math.exp(resp[k, i] - bound[i])
            total[i] += resp[k, i]
    for k in range(n_rows):
        for i in range(_BLOCK):
            resp[k, i] = resp[k, i] / total[i] if i < size else 0.0
    for i in range(size):
        bound[i] += math.log(total[i])


@inline_kernel
def _add_stats(x, resp, origins, y, stats):
    """Add the statistics of a block; of r x x^T the lower triangle only."""
    n_rows, n = origins.shape
    for k in range(n_rows):
        r, row = resp[k], stats[k]
        mass = 0.0
        for i in range(_BLOCK):
            mass += r[i]
        if mass == 0.0:
            continue
        row[0] += mass
        row[1] += mass
        row[-1] += mass
        for d in range(n):
            here, weighted = y[d], y[n]
            total = 0.0
            for i in range(_BLOCK):
                here[i] = x[d, i] - origins[k, d]
                weighted[i] = r[i] * here[i]
                total += weighted[i]
            row[2 + d] += total
            for e in range(d + 1):
                other = y[e]
                total = 0.0
                for i in range(_BLOCK):
                    total += weighted[i] * other[i]
                row[2 + n + d * n + e] += total


def local(shared, scale, hyper, items, batch, work):
    """See :class:`dpsvi.base.Model`; items are points, all components are touched."""
    n_rows = shared.rows.shape[0]
    _, origins, _ = _unpack(hyper, n_rows, shared.rows.shape[1])
    n = origins.shape[1]
    block = work.scratch[: (2 * n + 2 + n_rows) * _BLOCK].reshape((2 * n + 2 + n_rows, _BLOCK))
    x, y, bound, resp = block[:n], block[n : 2 * n + 1], block[2 * n + 1], block[2 * n + 2 :]

    expect(shared.rows, scale, hyper, work.expected)
    for k in range(n_rows):
        work.touched[k] = k
        work.stats[k, :] = 0.0
    for first in range(0, batch.shape[0], _BLOCK):
        size = _load(items, batch, first, x)
        _responsibilities(x, size, work.expected, origins, y, resp, bound)
        _add_stats(x, resp, origins, y, work.stats)
    for k in range(n_rows):
        psi = work.stats[k, n + 2 : -1].reshape((n, n))
        for d in range(n):
            for e in range(d):
                psi[e, d] = psi[d, e]
    return n_rows


@kernel
def infer(items, batch, expected, origins, resp, bound):
    """Responsibilities and bounds of the items in `batch`, given :func:`expect`'s rows.

    Parameters
    ----------
    resp : float64 array, (n_batch, K) or (0, K)
        Overwritten with r_nk; left alone when it has no rows.
    bound : float64 array, (n_batch,)
        Overwritten with the local term of the ELBO, E ln p(x_n, z_n) - E ln q(z_n).
    """
    n_rows, n = origins.shape
    block = np.empty((2 * n + 2 + n_rows, _BLOCK))
    x, y, log_sum, r = block[:n], block[n : 2 * n + 1], block[2 * n + 1], block[2 * n + 2 :]
    for first in range(0, batch.shape[0], _BLOCK):
        size = _load(items, batch, first, x)
        _responsibilities(x, size, expected, origins, y, r, log_sum)
        bound[first : first + size] = log_sum[:size]
        if resp.shape[0]:
            for i in range(size):
                for k in range(n_rows):
                    resp[first + i, k] = r[k, i]
