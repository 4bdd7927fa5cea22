"""Coordinate ascent for mixtures of Gaussians, written from the equations, for reading."""

import math

import numpy as np
from scipy import special, stats

from dpsvi.families.mixtures.components import Prior


def clusters(rng, n=600, n_features=2, n_components=3, spread=6.0):
    """Points, their components, and the means and covariances they were drawn with."""
    means = spread * rng.normal(size=(n_components, n_features))
    roots = rng.normal(size=(n_components, n_features, n_features)) / math.sqrt(n_features)
    roots += 0.3 * np.eye(n_features)
    z = rng.integers(n_components, size=n)
    X = means[z] + np.einsum("nij,nj->ni", roots[z], rng.normal(size=(n, n_features)))
    return X, z, means, roots @ roots.swapaxes(1, 2)


def some_prior(n_features, rng, covariance_type="full"):
    if covariance_type == "diag":
        covariance = rng.uniform(0.5, 2.0, size=n_features)
    else:
        root = rng.normal(size=(n_features, n_features))
        covariance = root @ root.T + np.eye(n_features)
    return Prior(0.3, rng.normal(size=n_features), n_features + 1.5, covariance)


# --- components: (kappa, m, W^-1, nu), W^-1 = diag(2 b) and nu = 2 a for Normal-Gamma ----------


def full_component(X, r, prior):
    """Bishop 10.60-10.63."""
    mass = r.sum()
    mean = r @ X / mass
    scatter = sum(r_n * np.outer(x - mean, x - mean) for r_n, x in zip(r, X, strict=True))
    kappa = prior.mean_precision + mass
    m = (prior.mean_precision * prior.mean + mass * mean) / kappa
    shift = mean - prior.mean
    w_inv = prior.covariance + scatter
    w_inv = w_inv + prior.mean_precision * mass / kappa * np.outer(shift, shift)
    return kappa, m, w_inv, prior.degrees_of_freedom + mass


def diagonal_component(X, r, prior):
    """Normal-Gamma in every dimension (Bernardo and Smith 1994, 5.2), with weights r."""
    mass, kappa0 = r.sum(), prior.mean_precision
    a = prior.degrees_of_freedom / 2 + mass / 2
    m, b = [], []
    for x, m0, w0 in zip(X.T, prior.mean, prior.covariance, strict=True):
        mean = r @ x / mass
        m.append((kappa0 * m0 + mass * mean) / (kappa0 + mass))
        b.append(
            w0 / 2 + r @ (x - mean) ** 2 / 2
            + kappa0 * mass / (kappa0 + mass) * (mean - m0) ** 2 / 2
        )  # fmt: skip
    return kappa0 + mass, np.array(m), 2 * np.array(b), 2 * a


def components(X, resp, prior):
    one = diagonal_component if prior.covariance.ndim == 1 else full_component
    return [one(X, r, prior) for r in resp.T]


def expected_log_density(X, component):
    """E ln N(x_n | mu, Lambda^-1), (n,): Bishop 10.64 and 10.65; paper, 7.1."""
    kappa, m, w_inv, nu = component
    n = X.shape[1]
    if w_inv.ndim == 1:
        a, b = nu / 2, w_inv / 2
        each = (special.digamma(a) - np.log(b)) / 2 - math.log(2 * math.pi) / 2
        each = each - (1 / kappa + a / b * (X - m) ** 2) / 2
        return each.sum(axis=1)
    log_det = special.digamma((nu + 1 - np.arange(1, n + 1)) / 2).sum()
    log_det += n * math.log(2) - np.log(np.linalg.det(w_inv))
    square = [n / kappa + nu * (x - m) @ np.linalg.inv(w_inv) @ (x - m) for x in X]
    return log_det / 2 - n / 2 * math.log(2 * math.pi) - np.array(square) / 2


def local_step(X, q, log_weights):
    """Responsibilities (10.46, 10.49) and the points' terms of the bound."""
    log_p = np.array([expected_log_density(X, c) for c in q]).T + log_weights
    bound = special.logsumexp(log_p, axis=1)
    return np.exp(log_p - bound[:, None]), bound


# --- weights ----------------------------------------------------------------------------------


def dirichlet_log_weights(alpha):
    """Bishop 10.66."""
    return special.digamma(alpha) - special.digamma(np.sum(alpha))


def dp_sticks(sizes, prior):
    """a, b of the sticks and (shape, rate) of omega, None if given: one update after the other.

    Blei and Jordan (2006), 4 and appendix; the sticks are in the order of `sizes`.
    """
    sizes = np.asarray(sizes)
    a = 1 + sizes
    behind = np.array([sizes[k + 1 :].sum() for k in range(len(a))])
    if len(prior) == 1:
        return a, prior[0] + behind, None
    shape, rate = prior[0] + len(a), prior[1]
    for _ in range(20_000):
        b = shape / rate + behind
        before, rate = rate, prior[1] - np.sum(special.digamma(b) - special.digamma(a + b))
        if abs(rate - before) < 1e-15 * rate:
            break
    return a, shape / rate + behind, (shape, rate)


def dp_log_weights(a, b):
    both = special.digamma(a + b)
    left = np.append(0.0, np.cumsum(special.digamma(b) - both))
    return special.digamma(a) - both + left[:-1]


# --- draws from q, and the log of q / p of each -------------------------------------------------


def assert_mean(sample, value, precise=0.05):
    error = sample.std() / math.sqrt(len(sample))
    assert error < precise * abs(value)
    assert abs(sample.mean() - value) < 4 * error


def draw_wishart(nu, w_inv, n, rng):
    """n draws by Bartlett's decomposition; scipy makes them one by one."""
    d = len(w_inv)
    root = np.tril(rng.normal(size=(n, d, d)), -1)
    root[:, range(d), range(d)] = np.sqrt(rng.chisquare(nu - np.arange(d), size=(n, d)))
    root = np.linalg.cholesky(np.linalg.inv(w_inv)) @ root
    return root @ root.swapaxes(1, 2)


def log_wishart(precision, nu, w_inv):
    """Log densities of many matrices (Bishop B.78)."""
    d = len(w_inv)
    logs = (nu - d - 1) * np.linalg.slogdet(precision)[1] + nu * np.linalg.slogdet(w_inv)[1]
    logs -= np.einsum("ij,nji->n", w_inv, precision) + nu * d * math.log(2)
    return logs / 2 - special.multigammaln(nu / 2, d)


def draw_component(q, p, n, rng):
    """(mu, Lambda) of n draws from a (kappa, m, W^-1, nu), and their ln q / p."""
    kappa, m, w_inv, nu = q
    if w_inv.ndim == 1:
        precision = rng.gamma(nu / 2, 2 / w_inv, size=(n, len(m)))
        mu = m + rng.normal(size=precision.shape) / np.sqrt(kappa * precision)
    else:
        precision = draw_wishart(nu, w_inv, n, rng)
        root = np.linalg.cholesky(precision).swapaxes(1, 2)
        mu = m + np.linalg.solve(root, rng.normal(size=(n, len(m), 1)))[..., 0] / math.sqrt(kappa)
    log_ratio = np.zeros(n)
    for sign, (kappa, m, w_inv, nu) in ((1, q), (-1, p)):
        if w_inv.ndim == 1:
            gamma = stats.gamma(nu / 2, scale=2 / w_inv).logpdf(precision)
            normal = stats.norm(m, 1 / np.sqrt(kappa * precision)).logpdf(mu)
            log_ratio += sign * (gamma + normal).sum(axis=1)
        else:
            square = np.einsum("ni,nij,nj->n", mu - m, precision, mu - m)
            log_ratio += sign * log_wishart(precision, nu, w_inv)
            # ln|Lambda| and 2 pi cancel
            log_ratio += sign * (len(m) / 2 * math.log(kappa) - kappa / 2 * square)
    return mu, precision, log_ratio
