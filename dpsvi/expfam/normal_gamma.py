"""Normal-Gamma distributions of the means mu_d and precisions lambda_d of D dimensions.

    lambda_d ~ Gamma(nu / 2, rate w_d / 2),    mu_d | lambda_d ~ N(m_d, (kappa lambda_d)^-1)

(Bernardo and Smith 1994, 5.2): the Normal-Wishart distribution of one dimension, D times, with one
kappa and one nu, since every point adds 1 to those of all dimensions.  Two forms of the parameters,
both one vector of 2 D + 2, as in :mod:`dpsvi.expfam.normal_wishart`:

* natural: ``kappa | h = kappa m | Psi = w + kappa m^2 | nu``.
* standard: ``kappa | m | g | nu`` with ``g^2 = w / nu``, the variance that belongs to the expected
  precision ``E[lambda] = nu / w``.
"""

from __future__ import annotations

import math

import numpy as np

from dpsvi.kernels.digamma import digamma
from dpsvi.kernels.jit import kernel


@kernel
def to_standard(row, floor):
    """Turn a natural vector into a standard one, in place.

    Parameters
    ----------
    row : float64 array, (2 * D + 2,)
    floor : float64 array, (D,), > 0
        The prior's w.  Data only add to it: less is damage by additions that races lost.
    """
    n = floor.shape[0]
    kappa, mean, factor = row[0], row[1 : n + 1], row[n + 1 : -1]
    for d in range(n):
        mean[d] /= kappa
        factor[d] = math.sqrt(max(factor[d] - kappa * mean[d] * mean[d], floor[d]) / row[-1])


@kernel
def expected_log_det(row, n):
    """Sum of E[ln lambda_d] of a standard vector in `n` dimensions."""
    nu = row[-1]
    value = n * (digamma(0.5 * nu) + math.log(2.0 / nu))
    for d in range(n):
        value -= 2.0 * math.log(row[n + 1 + d])
    return value


def draw(kappa, mean, factor, nu, n_samples, rng):
    """Draws of mu, of the variances 1 / lambda and of lambda, (n_samples, D) each.

    Parameters
    ----------
    kappa, mean, factor, nu
        In standard form: numbers, and float arrays of shape (D,).
    n_samples : int
    rng : numpy.random.Generator
    """
    shape = n_samples, len(mean)
    precisions = rng.chisquare(nu, shape) / (nu * factor**2)
    variances = 1 / precisions
    means = mean + np.sqrt(variances / kappa) * rng.standard_normal(shape)
    return means, variances, precisions


def log_normaliser(w, nu):
    """Ln Z of the Gamma distributions, density ``lambda^(nu/2 - 1) ... / Z``, of all dimensions.

    `w` and `nu` are arrays of shapes (..., D) and (...).
    """
    from scipy.special import gammaln

    half = 0.5 * np.asarray(nu)[..., None]
    return (gammaln(half) - half * np.log(0.5 * w)).sum(axis=-1)


def kl(q, p):
    """KL(q || p) in nats of Normal-Gamma distributions, all dimensions together.

    Parameters
    ----------
    q, p : (kappa, m, w, nu)
        Arrays of shapes (...), (..., D), (..., D) and (...); leading axes broadcast.

    Returns
    -------
    float array, (...)
    """
    from scipy.special import digamma as psi
    from scipy.special import gammaln

    (kappa, m, w, nu), (kappa0, m0, w0, nu0) = q, p
    kappa, nu, kappa0, nu0 = (np.asarray(x)[..., None] for x in (kappa, nu, kappa0, nu0))
    normal = 0.5 * (kappa0 / kappa - 1 - np.log(kappa0 / kappa) + kappa0 * nu / w * (m - m0) ** 2)
    gamma = 0.5 * (nu - nu0) * psi(0.5 * nu) - gammaln(0.5 * nu) + gammaln(0.5 * nu0)
    gamma = gamma + 0.5 * nu0 * np.log(w / w0) + 0.5 * nu * (w0 / w - 1)
    return (normal + gamma).sum(axis=-1)
