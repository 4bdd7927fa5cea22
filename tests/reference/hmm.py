"""The hidden Markov model written for reading: all paths, log-space messages, whole updates."""

import itertools
import math

import numpy as np
from scipy import special


def all_paths(log_start, log_trans, log_emit):
    """Every path of a chain and the logarithm of its weight."""
    n_steps, n_states = log_emit.shape
    paths = np.array(list(itertools.product(range(n_states), repeat=n_steps)))
    weight = log_start[paths[:, 0]] + log_emit[np.arange(n_steps), paths].sum(axis=1)
    return paths, weight + log_trans[paths[:, :-1], paths[:, 1:]].sum(axis=1)


def enumerate_chain(log_start, log_trans, log_emit):
    """(ln Z, gamma, sum of xi, best path, ln of its weight) from all paths."""
    n_steps, n_states = log_emit.shape
    paths, weight = all_paths(log_start, log_trans, log_emit)
    log_z = special.logsumexp(weight)
    gamma, pairs = np.zeros((n_steps, n_states)), np.zeros((n_states, n_states))
    for path, p in zip(paths, np.exp(weight - log_z), strict=True):
        gamma[np.arange(n_steps), path] += p
        np.add.at(pairs, (path[:-1], path[1:]), p)
    return log_z, gamma, pairs, paths[weight.argmax()], weight.max()


def messages(log_start, log_trans, log_emit):
    """(ln Z, gamma, xi (T - 1, K, K)) by forward-backward in log space."""
    alpha, beta = np.empty_like(log_emit), np.zeros_like(log_emit)
    alpha[0] = log_start + log_emit[0]
    for t in range(1, len(alpha)):
        alpha[t] = special.logsumexp(alpha[t - 1][:, None] + log_trans, axis=0) + log_emit[t]
    for t in range(len(beta) - 2, -1, -1):
        beta[t] = special.logsumexp(log_trans + log_emit[t + 1] + beta[t + 1], axis=1)
    log_z = special.logsumexp(alpha[-1])
    xi = alpha[:-1, :, None] + log_trans + (log_emit[1:] + beta[1:])[:, None, :]
    gamma = np.exp(alpha + beta - log_z)  # normalised again: ln Z of long chains is a large number
    xi = np.exp(xi - log_z)
    gamma /= gamma.sum(axis=1, keepdims=True)
    return log_z, gamma, xi / xi.sum(axis=(1, 2), keepdims=True)


def expected_log(concentration):
    """E ln p of Dirichlet distributions in the last axis."""
    total = concentration.sum(axis=-1, keepdims=True)
    return special.digamma(concentration) - special.digamma(total)


class GaussianEmissions:
    """(kappa, m, W^-1, nu) of every state; W^-1 is a vector for diagonal covariances."""

    def __init__(self, kappa, mean, scale, nu):
        self.prior = kappa, mean, scale, nu

    def global_step(self, X, gamma):
        """Bishop 10.60-10.63."""
        kappa0, m0, scale0, nu0 = self.prior
        self.q = []
        for r in gamma.T:
            kappa, nu = kappa0 + r.sum(), nu0 + r.sum()
            m = (kappa0 * m0 + r @ X) / kappa
            scale = kappa0 * np.outer(m0, m0) + (r * X.T) @ X - kappa * np.outer(m, m)
            scale = scale0 + (np.diag(scale) if scale0.ndim == 1 else scale)
            self.q.append((kappa, m, scale, nu))

    def expected_log_density(self, X):
        """E ln p(x | k), (n, K)."""
        n = X.shape[1]
        columns = []
        for kappa, m, scale, nu in self.q:
            if scale.ndim == 1:
                log_det = n * special.digamma(nu / 2) - np.log(scale / 2).sum()
                square = ((X - m) ** 2 / scale).sum(axis=1)
            else:
                log_det = special.digamma((nu - np.arange(n)) / 2).sum() + n * math.log(2)
                log_det -= np.linalg.slogdet(scale)[1]
                square = np.einsum("ni,ij,nj->n", X - m, np.linalg.inv(scale), X - m)
            columns.append(
                log_det / 2 - n / 2 * math.log(2 * math.pi) - (n / kappa + nu * square) / 2
            )
        return np.array(columns).T


class CategoricalEmissions:
    """Concentrations of the symbols, (K, V)."""

    def __init__(self, prior):
        self.prior = prior

    def global_step(self, X, gamma):
        symbols = np.eye(self.prior.shape[1])[X[:, 0].astype(int)]
        self.q = self.prior + gamma.T @ symbols

    def expected_log_density(self, X):
        return expected_log(self.q)[:, X[:, 0].astype(int)].T


class CoordinateAscent:
    """Full-batch variational inference, Beal (2003), 3.4."""

    def __init__(self, X, lengths, start, trans, emissions):
        self.X, self.ends = X, np.cumsum(lengths)
        self.prior, self.emissions = (start, trans), emissions

    def global_step(self, gamma, first, pairs):
        """From posteriors (n, K), their sum over first steps (K,) and expected transitions."""
        self.start, self.trans = self.prior[0] + first, self.prior[1] + pairs
        self.emissions.global_step(self.X, gamma)

    def local_step(self):
        """(gamma, first, pairs) and ln Z~ of each sequence."""
        log_emit = self.emissions.expected_log_density(self.X)
        log_start, log_trans = expected_log(self.start), expected_log(self.trans)
        first, pairs = np.zeros_like(self.start), np.zeros_like(self.trans)
        gammas, bounds = [], []
        for part in np.split(log_emit, self.ends[:-1]):
            log_z, gamma, xi = messages(log_start, log_trans, part)
            gammas.append(gamma)
            bounds.append(log_z)
            first, pairs = first + gamma[0], pairs + xi.sum(axis=0)
        return (np.concatenate(gammas), first, pairs), np.array(bounds)
