"""Distributions of single numbers of a posterior, by scipy.stats."""

import numpy as np
from scipy import stats


def dirichlet(a):
    """Of each entry of ``Dir(a)``, (..., n)."""
    return stats.beta(a, a.sum(axis=-1, keepdims=True) - a)


def sticks(weights, order):
    """The shares V_k that weights, (n_samples, K), of sticks in this order are made of."""
    ordered = weights[:, order]
    before = np.cumsum(ordered, axis=1) - ordered
    return ordered / (1 - before)


def normal_wishart(kappa, mean, w_inv, nu):
    """Of each entry of mu, (..., D), and of the diagonal of Lambda^-1, (..., D).

    `w_inv` is (..., D, D); the distributions are Student's t and the inverse gamma distribution.
    """
    n = mean.shape[-1]
    kappa, nu = (np.asarray(x)[..., None] for x in (kappa, nu))
    diagonal = np.diagonal(w_inv, axis1=-2, axis2=-1)
    df = nu - n + 1
    return (
        stats.t(df, loc=mean, scale=np.sqrt(diagonal / (kappa * df))),
        stats.invgamma(df / 2, scale=diagonal / 2),
    )


def normal_gamma(kappa, mean, w, nu):
    """The same of normal-gamma distributions, `w` being (..., D)."""
    kappa, nu = (np.asarray(x)[..., None] for x in (kappa, nu))
    return (
        stats.t(nu, loc=mean, scale=np.sqrt(w / (kappa * nu))),
        stats.invgamma(nu / 2, scale=w / 2),
    )


def distance(means, covariances, center):
    """``(mu - m)^T Lambda (mu - m)`` of draws: kappa times it is chi-squared, D degrees."""
    shift = means - center
    if covariances.ndim == means.ndim:
        return (shift**2 / covariances).sum(axis=-1)
    return np.einsum("...d,...d", shift, np.linalg.solve(covariances, shift[..., None])[..., 0])
