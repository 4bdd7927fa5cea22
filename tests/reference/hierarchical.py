"""The population of a hierarchical regression (paper, 7.6), written for reading."""

import math

import numpy as np
from scipy import stats
from scipy.special import digamma, multigammaln


def posterior(estimator):
    """(kappa, m, W^-1, nu) of the population in terms of the features as they were given."""
    state = estimator._state
    kappa, m, w_inv, nu = estimator._population(state.natural()[0], state.model.hyper)
    m = m.copy()
    matrix = np.eye(len(m))
    if estimator.fit_intercept:
        m[0] += estimator._y_mean
        matrix[0, 1:] = -estimator._shift
    return kappa, matrix @ m, matrix @ w_inv @ matrix.T, nu


def log_det(w_inv, nu):
    """E ln|Lambda|."""
    d = len(w_inv)
    value = sum(digamma((nu + 1 - i) / 2) for i in range(1, d + 1))
    return value + d * math.log(2) - math.log(np.linalg.det(w_inv))


def coefficient_bound(q, mean, S):
    """E ln p(beta_j | mu, Lambda) - E ln q(beta_j), term by term as in 7.6."""
    kappa, m, w_inv, nu = q
    W, d = np.linalg.inv(w_inv), len(m)
    square = np.trace(nu * W @ (S + np.outer(mean, mean))) - 2 * nu * mean @ W @ m
    square += d / kappa + nu * m @ W @ m
    entropy = math.log(np.linalg.det(2 * math.pi * math.e * S)) / 2
    return log_det(w_inv, nu) / 2 - d / 2 * math.log(2 * math.pi) - square / 2 + entropy


def global_step(prior, means, covariances):
    """The Normal-Wishart distribution given q(beta_j) of all groups (Bishop 2006, 10.60-10.63)."""
    kappa0, m0, w_inv0, nu0 = prior
    n = len(means)
    kappa = kappa0 + n
    m = (kappa0 * m0 + sum(means)) / kappa
    w_inv = w_inv0 + kappa0 * np.outer(m0 - m, m0 - m)
    for mean, S in zip(means, covariances, strict=True):
        w_inv = w_inv + S + np.outer(mean - m, mean - m)
    return kappa, m, w_inv, nu0 + n


def normal_wishart_kl(q, p):
    """KL as in the table of 7."""
    (kappa, m, w_inv, nu), (kappa0, m0, w_inv0, nu0) = q, p
    W, d = np.linalg.inv(w_inv), len(m)

    def log_z(w_inv, nu):
        log_det_w = -math.log(np.linalg.det(w_inv))
        return nu / 2 * log_det_w + nu * d / 2 * math.log(2) + multigammaln(nu / 2, d)

    normal = d * (kappa0 / kappa - 1 - math.log(kappa0 / kappa))
    normal += kappa0 * nu * (m - m0) @ W @ (m - m0)
    wishart = log_z(w_inv0, nu0) - log_z(w_inv, nu) + (nu - nu0) / 2 * log_det(w_inv, nu)
    return normal / 2 + wishart - nu * d / 2 + nu / 2 * np.trace(w_inv0 @ W)


def draw_population(q, n, rng):
    """Draws of mu (n, D) and Lambda (n, D, D)."""
    kappa, m, w_inv, nu = q
    precision = stats.wishart(nu, np.linalg.inv(w_inv)).rvs(n, random_state=rng)
    root = np.linalg.cholesky(kappa * precision).swapaxes(1, 2)
    return m + np.linalg.solve(root, rng.normal(size=(n, len(m), 1)))[..., 0], precision


def log_ratio(beta, mean, S, mu, precision):
    """ln N(beta | mu, Lambda^-1) - ln N(beta | mean, S) of draws."""
    square = np.einsum("ni,nij,nj->n", beta - mu, precision, beta - mu)
    log_p = (np.linalg.slogdet(precision)[1] - square - len(mean) * math.log(2 * math.pi)) / 2
    return log_p - stats.multivariate_normal(mean, S).logpdf(beta)


def assert_mean(sample, value):
    """The mean of the sample is `value` within 5 standard errors, which are small."""
    error = sample.std() / math.sqrt(len(sample))
    assert error < 0.05 and abs(sample.mean() - value) < 5 * error


def finite_differences(bound, lam):
    """Gradient of ``bound(change)`` at 0, with steps relative to `lam`."""
    gradient = np.empty(len(lam))
    for k in range(len(lam)):
        change = np.zeros(len(lam))
        change[k] = 1e-5 * max(1.0, abs(lam[k]))
        gradient[k] = (bound(change) - bound(-change)) / (2 * change[k])
    return gradient


def normal_wishart_fisher(natural, d):
    """Fisher matrix in (kappa, kappa m, Psi, nu): derivatives of the expected statistics.

    With the sufficient statistics -mu' Lambda mu / 2, Lambda mu, -Lambda / 2 and ln|Lambda| / 2 it
    is the Jacobian of their expectations, here by finite differences.
    """

    def expectations(row):
        kappa, m, nu = row[0], row[1 : d + 1] / row[0], row[-1]
        psi = row[d + 1 : -1].reshape(d, d)
        w_inv = (psi + psi.T) / 2 - kappa * np.outer(m, m)
        mean = nu * np.linalg.inv(w_inv)
        square = d / kappa + m @ mean @ m
        return np.array([-square / 2, *(mean @ m), *(-mean / 2).ravel(), log_det(w_inv, nu) / 2])

    fisher = np.empty((len(natural), len(natural)))
    for k in range(len(natural)):
        change = np.zeros(len(natural))
        change[k] = 1e-5 * max(1.0, abs(natural[k]))
        difference = expectations(natural + change) - expectations(natural - change)
        fisher[:, k] = difference / (2 * change[k])
    return fisher
