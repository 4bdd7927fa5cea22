"""Normal-Wishart distribution of a mean mu and a precision matrix Lambda of D dimensions.

    Lambda ~ Wishart(W, nu),    mu | Lambda ~ N(m, (kappa Lambda)^-1)

(Bishop 2006, B.79 and 10.40).  Two forms of its parameters, both one vector of D^2 + D + 2:

* natural: ``kappa | h = kappa m | Psi = W^-1 + kappa m m^T | nu``.  Conditioning on data adds to
  each of them, therefore averages of natural vectors are natural vectors too.
* standard: ``kappa | m | G | nu`` with G lower triangular and ``G G^T = (nu W)^-1``, the
  covariance that belongs to the expected precision ``E[Lambda] = nu W``.
"""

from __future__ import annotations

import math

import numpy as np

from dpsvi.expfam.digamma import digamma
from dpsvi.jit import kernel


@kernel
def to_standard(row, floor):
    """Turn a natural vector into a standard one, in place.

    Parameters
    ----------
    row : float64 array, (D * D + D + 2,)
    floor : float64 array, (D,), > 0
        Least pivots of W^-1: those of the prior.  Data only add to W^-1, in the order of positive
        definite matrices, and the pivots of a sum are no smaller than those of a term.

    Notes
    -----
    Lost writes of lock-free threads can leave Psi neither symmetric nor above h h^T / kappa.  The
    mean of both triangles is used, and a pivot d_j that is too small is raised to at least
    ``max_i c_ij^2 / a_ii``, as in the modified Cholesky factorisation of Gill, Murray and Wright
    (1981, 4.4.2.2): entries of the factor stay below sqrt(a_ii).  Nothing is changed if the matrix
    is positive definite, since then ``c_ij^2 < d_j c_ii <= d_j a_ii``.
    """
    n = floor.shape[0]
    kappa, nu, mean = row[0], row[-1], row[1 : n + 1]
    a = row[n + 1 : -1].reshape((n, n))
    for i in range(n):
        mean[i] /= kappa
    for i in range(n):
        for j in range(i):
            a[i, j] = 0.5 * (a[i, j] + a[j, i]) - kappa * mean[i] * mean[j]
            a[j, i] = 0.0
        a[i, i] = max(a[i, i] - kappa * mean[i] * mean[i], floor[i])
    for j in range(n):
        # Column j minus what the columns before it explain; c_ij until divided by the pivot.
        pivot = a[j, j]
        for k in range(j):
            pivot -= a[j, k] * a[j, k]
        pivot = max(pivot, floor[j])
        for i in range(j + 1, n):
            for k in range(j):
                a[i, j] -= a[i, k] * a[j, k]
            pivot = max(pivot, a[i, j] * a[i, j] / a[i, i])
        a[j, j] = math.sqrt(pivot)
        for i in range(j + 1, n):
            a[i, j] /= a[j, j]
    for i in range(n):
        for j in range(i + 1):
            a[i, j] /= math.sqrt(nu)


@kernel
def expected_log_det(row, n):
    """E[ln |Lambda|] of a standard vector in `n` dimensions (Bishop 2006, B.81)."""
    nu = row[-1]
    value = n * math.log(2.0 / nu)
    for d in range(n):
        value += digamma(0.5 * (nu - d)) - 2.0 * math.log(row[n + 1 + d * (n + 1)])
    return value


def log_normaliser(w_inv, nu):
    """Ln Z of the Wishart distribution, where its density is ``|Lambda|^((nu-D-1)/2) ... / Z``."""
    from scipy.special import multigammaln

    n = w_inv.shape[-1]
    log_det = np.linalg.slogdet(w_inv)[1]
    return 0.5 * nu * (n * math.log(2.0) - log_det) + multigammaln(0.5 * np.asarray(nu), n)


def kl(q, p):
    """KL(q || p) in nats of Normal-Wishart distributions.

    Parameters
    ----------
    q, p : (kappa, m, w_inv, nu)
        Arrays of shapes (...), (..., D), (..., D, D) and (...), w_inv = W^-1; leading axes
        broadcast.

    Returns
    -------
    float array, (...)
    """
    from scipy.special import digamma as psi

    (kappa, m, w_inv, nu), (kappa0, m0, w_inv0, nu0) = q, p
    n = m.shape[-1]
    shift = m - m0
    spread = np.einsum("...i,...i", shift, np.linalg.solve(w_inv, shift[..., None])[..., 0])
    ratio = np.trace(np.linalg.solve(w_inv, w_inv0), axis1=-2, axis2=-1)
    log_det = psi(0.5 * (np.asarray(nu)[..., None] - np.arange(n))).sum(axis=-1)
    log_det = log_det + n * math.log(2.0) - np.linalg.slogdet(w_inv)[1]
    normal = 0.5 * (n * (kappa0 / kappa - 1 - np.log(kappa0 / kappa)) + kappa0 * nu * spread)
    wishart = log_normaliser(w_inv0, nu0) - log_normaliser(w_inv, nu)
    return normal + wishart + 0.5 * ((nu - nu0) * log_det - nu * n + nu * ratio)
