"""Gaussian mixtures: dpsvi beside scikit-learn's BayesianGaussianMixture.

The score is the mean log-density of held-out points under the mixture of N(mean, covariance) that
each tool reports, in nats.  First responsibilities of ours are from k-means, as scikit-learn's are,
or from twice as many clusters of k-means that were merged (the default).
"""

from __future__ import annotations

import time

import numpy as np

from experiments.family.recorder import point, recorded

N_COMPONENTS = 20
ITERATIONS = (2, 5, 10, 20, 50, 100)  # of scikit-learn, which has no callback


def draw(rng, n, n_features=16, n_components=N_COMPONENTS):
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


def digits(seed):
    """Handwritten digits of scikit-learn: their 16 largest principal components; some held out."""
    from sklearn.datasets import load_digits
    from sklearn.decomposition import PCA

    X = np.random.default_rng(seed).permutation(load_digits().data)
    test, X = X[:500], X[500:]
    components = PCA(16, random_state=seed).fit(X)
    return components.transform(X), components.transform(test)


def run(seed: int, quick: bool, corpus=None) -> list[dict]:
    """Digits and two sizes of synthetic data; defaults but for the number of iterations."""
    rows = _problem("digits", *digits(seed), seed, 30, 2 if quick else 100)
    for n, most in ((5_000, 2),) if quick else ((100_000, 100), (1_000_000, 20)):
        X = draw(np.random.default_rng(seed), n + 10_000)
        rows += _problem("synthetic", X[10_000:], X[:10_000], seed, 10, most)
    return rows


def _problem(name, X, test, seed, passes, most):
    from sklearn.mixture import BayesianGaussianMixture

    from dpsvi import DPSVIGaussianMixture

    problem = f"{name}, {len(X):,} points, {X.shape[1]} features, K = {N_COMPONENTS}"
    rows, ways = [], {"merge": {}, "kmeans": {"init_params": "kmeans"}}
    if len(X) < 10_000:  # coordinate ascent is no trouble
        ways["merge, full batches"] = {"batch_size": len(X), "learning_rate": 1.0, "max_iter": 100}
    for way, params in ways.items():
        ours = DPSVIGaussianMixture(
            N_COMPONENTS, n_jobs=2, max_iter=passes, evaluate_every=0.5, random_state=seed
        )
        rows += recorded(
            ours.set_params(**params), lambda fitted: log_density(fitted, test), problem,
            f"2 threads, {way}", X=X,
        )  # fmt: skip
    for max_iter in (i for i in ITERATIONS if i <= most):
        theirs = BayesianGaussianMixture(
            n_components=N_COMPONENTS, max_iter=max_iter, random_state=seed,
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
