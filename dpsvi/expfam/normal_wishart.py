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

from dpsvi.kernels.digamma import digamma
from dpsvi.kernels.jit import inline_kernel, kernel


@kernel
def to_standard(row, floor):
    """Turn a natural vector into a standard one, in place.

    Parameters
    ----------
    row : float64 array, (D * D + D + 2,)
    floor : float64 array, (D,), > 0
        Pivots (squared diagonal of the Cholesky factor) of the prior's W^-1.  Data only add
        positive semi-definite matrices to it, and the pivots of a sum are no smaller than those of
        a term: smaller ones are damage.

    Notes
    -----
    Writes that lock-free threads lose can leave Psi asymmetric or below ``h h^T / kappa``.  The
    mean of both triangles is used, and a damaged W^-1 has its off-diagonal entries shrunk until
    the pivots are right.  That repairs eigenvalues without making any of them tiny: a floor alone
    would turn noise into directions of enormous precision, where components starve.
    """
    n = floor.shape[0]
    kappa, mean, a = row[0], row[1 : n + 1], row[n + 1 : -1].reshape((n, n))
    for i in range(n):
        mean[i] /= kappa
    diagonal = np.empty(n)
    for i in range(n):
        diagonal[i] = max(a[i, i] - kappa * mean[i] * mean[i], floor[i])
        for j in range(i):
            a[j, i] = 0.5 * (a[i, j] + a[j, i]) - kappa * mean[i] * mean[j]
    share = 1.0
    while not _factor(a, diagonal, share, floor) and share > 0.0:  # at 0 only NaN is refused
        share -= 0.25
    unit = 1.0 / math.sqrt(row[-1])
    for i in range(n):
        for j in range(n):
            a[i, j] = a[i, j] * unit if j <= i else 0.0


@inline_kernel
def _factor(a, diagonal, share, floor):
    """Cholesky factor of a matrix in the lower triangle of `a`; False when a pivot is too small.

    The matrix has the given diagonal and `share` times the upper triangle of `a`.
    """
    for i in range(a.shape[0]):
        pivot = diagonal[i]
        for j in range(i):
            value = share * a[j, i]
            for k in range(j):
                value -= a[i, k] * a[j, k]
            a[i, j] = value / a[j, j]
            pivot -= a[i, j] * a[i, j]
        # Half: the pivots of a component without data equal the floor but for rounding.
        if not pivot > 0.5 * floor[i]:
            return False
        a[i, i] = math.sqrt(pivot)
    return True


@kernel
def expected_log_det(row, n):
    """E[ln |Lambda|] of a standard vector in `n` dimensions (Bishop 2006, B.81)."""
    nu = row[-1]
    value = n * math.log(2.0 / nu)
    for d in range(n):
        value += digamma(0.5 * (nu - d)) - 2.0 * math.log(row[n + 1 + d * (n + 1)])
    return value


def draw(kappa, mean, factor, nu, n_samples, rng):
    """Draws of mu, (n_samples, D), Lambda^-1 and Lambda, both (n_samples, D, D).

    Parameters
    ----------
    kappa, mean, factor, nu
        In standard form: numbers, and float arrays of shapes (D,) and (D, D).
    n_samples : int
    rng : numpy.random.Generator

    Notes
    -----
    Bartlett's decomposition: ``Lambda = B A A^T B^T`` for any B with ``B B^T = W`` and a lower
    triangular A of independent standard normal numbers, with the roots of chi-squared ones with
    nu, nu - 1, ... degrees of freedom on its diagonal.
    """
    n = len(mean)
    a = np.tril(rng.standard_normal((n_samples, n, n)), -1)
    a[:, range(n), range(n)] = np.sqrt(rng.chisquare(nu - np.arange(n), (n_samples, n)))
    half = a.swapaxes(1, 2) @ np.linalg.inv(factor) / math.sqrt(nu)
    root = math.sqrt(nu) * factor @ np.linalg.inv(a).swapaxes(1, 2)  # half^-1
    noise = rng.standard_normal((n_samples, n, 1)) / math.sqrt(kappa)
    means = mean + (root @ noise)[..., 0]
    return means, root @ root.swapaxes(1, 2), half.swapaxes(1, 2) @ half


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
    # Of as many axes: numpy 1 takes (D, D) beside (K, D, D) for vectors.
    ratio = np.trace(np.linalg.solve(*np.broadcast_arrays(w_inv, w_inv0)), axis1=-2, axis2=-1)
    log_det = psi(0.5 * (np.asarray(nu)[..., None] - np.arange(n))).sum(axis=-1)
    log_det = log_det + n * math.log(2.0) - np.linalg.slogdet(w_inv)[1]
    normal = 0.5 * (n * (kappa0 / kappa - 1 - np.log(kappa0 / kappa)) + kappa0 * nu * spread)
    wishart = log_normaliser(w_inv0, nu0) - log_normaliser(w_inv, nu)
    return normal + wishart + 0.5 * ((nu - nu0) * log_det - nu * n + nu * ratio)
