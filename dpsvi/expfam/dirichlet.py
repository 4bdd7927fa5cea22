"""Dirichlet distribution."""

from __future__ import annotations

import numpy as np


def draw(a, n_samples, rng):
    """Draws from Dirichlet distributions, (n_samples, ..., n), of the type of `a`.

    Parameters
    ----------
    a : float array, (..., n), > 0
        Concentrations of each.
    n_samples : int
    rng : numpy.random.Generator
    """
    drawn = np.empty((n_samples, *a.shape), a.dtype)
    for place in np.ndindex(a.shape[:-1]):  # one by one: draws are made in float64
        drawn[:, *place] = rng.dirichlet(a[place], n_samples)
    return drawn


def kl(a, a0) -> float:
    """KL(Dir(a) || Dir(a0)) in nats.

    Parameters
    ----------
    a, a0 : float arrays, (n,), > 0
        Concentrations.
    """
    from scipy.special import digamma, gammaln

    expected_log = digamma(a) - digamma(np.sum(a))
    return float(
        gammaln(np.sum(a)) - np.sum(gammaln(a)) - gammaln(np.sum(a0)) + np.sum(gammaln(a0))
        + np.sum((a - a0) * expected_log)
    )  # fmt: skip
