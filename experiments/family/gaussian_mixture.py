"""Gaussian mixtures: dpsvi beside scikit-learn's BayesianGaussianMixture.

The score is the mean log-density of held-out points under the mixture of N(mean, covariance) that
each tool reports, in nats.
"""

from __future__ import annotations

import time

import numpy as np

from experiments.family.recorder import point, recorded


def draw(rng, n, n_features=16, n_components=20):
    """Points of overlapping components of unequal size and shape."""
    means = 2.5 * rng.normal(size=(n_components, n_features))
    roots = rng.normal(size=(n_components, n_features, n_features)) / np.sqrt(n_features)
    roots += 0.5 * np.eye(n_features)
    z = rng.choice(n_components, size=n, p=rng.dirichlet(np.full(n_components, 3.0)))
    return means[z] + np.einsum("nij,nj->ni", roots[z], rng.normal(size=(n, n_features)))


def log_density(fitted, X) -> float:
    """Mean over X of ``ln sum_k w_k N(x | m_k, C_k)``."""
    from scipy.special import logsumexp
    from scipy.stats import multivariate_normal

    logs = [
        np.log(max(w, 1e-300)) + multivariate_normal.logpdf(X, m, c, allow_singular=True)
        for w, m, c in zip(fitted.weights_, fitted.means_, fitted.covariances_, strict=True)
    ]
    return float(logsumexp(logs, axis=0).mean())


def run(seed: int, quick: bool, corpus=None) -> list[dict]:
    """Two sizes; scikit-learn with its defaults but for the number of iterations."""
    sizes = (5_000,) if quick else (100_000, 1_000_000)
    return [row for n in sizes for row in _problem(n, seed, quick)]


def _problem(n, seed, quick):
    from sklearn.mixture import BayesianGaussianMixture

    from dpsvi import DPSVIGaussianMixture

    rng = np.random.default_rng(seed)
    n_components = 20
    X = draw(rng, n + 10_000, n_components=n_components)
    test, X = X[:10_000], X[10_000:]
    problem = f"{n:,} points, 16 features, K = 20"
    rows = recorded(
        DPSVIGaussianMixture(
            n_components, n_jobs=2, max_iter=10, evaluate_every=0.5, random_state=seed
        ),
        lambda fitted: log_density(fitted, test), problem, "2 threads", X=X,
    )  # fmt: skip
    few = (2,) if quick else (2, 5, 10, 20, 50, 100)
    for max_iter in few if n <= 100_000 else few[:4]:
        theirs = BayesianGaussianMixture(
            n_components=n_components, max_iter=max_iter, random_state=seed,
            weight_concentration_prior_type="dirichlet_distribution",
        )  # fmt: skip
        started = time.perf_counter()
        theirs.fit(X)
        seconds = time.perf_counter() - started
        rows.append(point(problem, "scikit-learn", "BayesianGaussianMixture", seconds,
                          log_density(theirs, test)))  # fmt: skip
        if theirs.converged_:
            break
    return rows
