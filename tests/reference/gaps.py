"""Points with missing coordinates under Gaussian components, from the equations, for reading."""

import math

import numpy as np
from scipy import special

from reference.mixtures import expected_log_density


def with_gaps(X, share, rng):
    """X without a share of its numbers, chosen at random."""
    return np.where(rng.random(X.shape) < share, np.nan, X)


def full_point(x, component):
    """(log-density, E[x], Cov[x]) of a point under a component, by its expected precision.

    The integral of ``exp(E ln N(x | mu, Lambda^-1))`` over what is missing, and the moments of x
    under what is integrated.
    """
    kappa, m, w_inv, nu = component
    n, precision, gone = len(x), nu * np.linalg.inv(w_inv), np.isnan(x)
    P = precision[np.ix_(gone, gone)]
    cross, here = precision[np.ix_(gone, ~gone)], (x - m)[~gone]
    mean, cov = x.copy(), np.zeros((n, n))
    mean[gone] = m[gone] - np.linalg.solve(P, cross @ here)
    cov[np.ix_(gone, gone)] = np.linalg.inv(P)
    at_mean = expected_log_density(mean[None], component)[0]
    return at_mean + gone.sum() / 2 * math.log(2 * math.pi) - np.linalg.slogdet(P)[1] / 2, mean, cov


def diagonal_log_density(x, component):
    """The same without moments, of a component with a kappa and a nu for each dimension."""
    kappa, m, w, nu = component
    there = ~np.isnan(x)
    each = special.digamma(nu / 2) - np.log(w / 2) - math.log(2 * math.pi) - 1 / kappa
    return ((each - nu / w * (x - m) ** 2) / 2)[there].sum()


def responsibilities(log_p):
    """r and the bounds of the points, from ln r + const, (n, K)."""
    bound = special.logsumexp(log_p, axis=1)
    return np.exp(log_p - bound[:, None]), bound


def full_components(X, resp, q, prior):
    """New components (kappa, m, W^-1, nu), from points as they are expected under `q`."""
    new = []
    for r, component in zip(resp.T, q, strict=True):
        kappa, nu = prior.mean_precision + r.sum(), prior.degrees_of_freedom + r.sum()
        h = prior.mean_precision * prior.mean
        psi = prior.covariance + prior.mean_precision * np.outer(prior.mean, prior.mean)
        for weight, x in zip(r, X, strict=True):
            _, mean, cov = full_point(x, component)
            h = h + weight * mean
            psi = psi + weight * (np.outer(mean, mean) + cov)
        m = h / kappa
        new.append((kappa, m, psi - kappa * np.outer(m, m), nu))
    return new


def diagonal_components(X, resp, prior):
    """New components, from the coordinates that are there."""
    new = []
    for r in resp.T:
        kappa, m, w, nu = [], [], [], []
        for x, m0, w0 in zip(X.T, prior.mean, prior.covariance, strict=True):
            seen = r[~np.isnan(x)]
            x = x[~np.isnan(x)]
            kappa.append(prior.mean_precision + seen.sum())
            nu.append(prior.degrees_of_freedom + seen.sum())
            m.append((prior.mean_precision * m0 + seen @ x) / kappa[-1])
            w.append(w0 + prior.mean_precision * (m0 - m[-1]) ** 2 + seen @ (x - m[-1]) ** 2)
        new.append(tuple(map(np.array, (kappa, m, w, nu))))
    return new
