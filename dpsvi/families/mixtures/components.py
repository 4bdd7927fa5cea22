"""Gaussian components of a model: their prior, and the posterior that their rows stand for.

Covariances are full, (D, D), or diagonal, (D,); shapes tell which.  Rows are as in
:mod:`dpsvi.expfam.gaussian` or, with diagonal covariances where coordinates may be missing, in
:mod:`dpsvi.expfam.by_dimension`: kappa and nu are then arrays (K, D).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpsvi.expfam import by_dimension, normal_gamma, normal_wishart
from dpsvi.kernels.jit import kernel


@kernel
def standardise(rows, floor):
    """Turn the components in `rows`, (K, columns), from natural to standard form, in place.

    What does not depend on x in ``E ln N(x | mu_k, Lambda_k^-1)`` is added to their first entries.
    `floor` is :meth:`Prior.floor`.
    """
    n = floor.shape[0]
    for k in range(rows.shape[0]):
        component = rows[k, 1:]
        if rows.shape[1] == 5 * n + 1:
            by_dimension.to_standard(rows[k], floor)
            continue
        if rows.shape[1] == 2 * n + 3:
            normal_gamma.to_standard(component, floor)
            log_det = normal_gamma.expected_log_det(component, n)
        else:
            normal_wishart.to_standard(component, floor)
            log_det = normal_wishart.expected_log_det(component, n)
        rows[k, 0] += 0.5 * (log_det - n * (math.log(2.0 * math.pi) + 1.0 / component[0]))


class Prior(NamedTuple):
    """Parameters of the prior of every component."""

    mean_precision: float  # kappa_0, > 0
    mean: np.ndarray  # m_0, (D,)
    degrees_of_freedom: float  # nu_0, > D - 1; diagonal: > 0
    covariance: np.ndarray  # W_0^-1, (D, D), positive definite; diagonal: w_0, (D,), > 0

    def floor(self):
        """The least pivots that W^-1 of a posterior can have, (D,)."""
        if self.covariance.ndim == 1:
            return self.covariance
        return np.diag(np.linalg.cholesky(self.covariance)) ** 2

    def natural(self, origins, first):
        """Rows (K, columns) of components that count from `origins`, (K, D), behind `first`."""
        n_components, n = origins.shape
        shift = self.mean - origins
        outer = shift * shift if self.covariance.ndim == 1 else shift[:, :, None] * shift[:, None]
        rows = np.empty((n_components, n + 3 + self.covariance.size))
        rows[:, 0], rows[:, 1], rows[:, -1] = first, self.mean_precision, self.degrees_of_freedom
        rows[:, 2 : n + 2] = self.mean_precision * shift
        psi = self.covariance + self.mean_precision * outer
        rows[:, n + 2 : -1] = psi.reshape(n_components, -1)
        return rows

    def log_evidence(self, stats):
        """Ln of the normaliser, up to a constant, of components with these statistics, (K,).

        `stats`, (K, columns) or (columns,), count from `mean`; 0 of the first number is used.
        """
        n = len(self.mean)
        rows = self.natural(self.mean[None], 0.0) + stats
        kappa, h, nu = rows[:, 1], rows[:, 2 : n + 2], rows[:, -1]
        psi = rows[:, n + 2 : -1].reshape(-1, *self.covariance.shape)
        if self.covariance.ndim == 1:
            w_inv = psi - h * h / kappa[:, None]
            value = normal_gamma.log_normaliser(w_inv, nu)
        else:
            w_inv = psi - h[:, :, None] * h[:, None] / kappa[:, None, None]
            value = normal_wishart.log_normaliser(w_inv, nu)
        return value - 0.5 * n * np.log(kappa)


class Components(NamedTuple):
    """Posterior of the components, from their rows in standard form."""

    standard: np.ndarray  # (K, columns)
    origins: np.ndarray  # o, (K, D)
    n_axes: int  # of a covariance: 2, diagonal: 1

    @property
    def _parts(self):
        """Kappa, m - o, G and nu as they lie in the rows."""
        n, rows = self.origins.shape[1], self.standard
        if by_dimension.has_own_counts(rows, n):
            return tuple(rows[:, i * n + 1 : (i + 1) * n + 1] for i in range(4))
        return rows[:, 1], rows[:, 2 : n + 2], rows[:, n + 2 : -1], rows[:, -1]

    @property
    def mean_precision(self):
        """Kappa, (K,), or (K, D)."""
        return self._parts[0]

    @property
    def shift(self):
        """Means, from the origins: m - o, (K, D)."""
        return self._parts[1]

    @property
    def means(self):
        """E[mu], (K, D)."""
        return self.origins + self.shift

    @property
    def factor(self):
        """G, lower triangular, (K, D, D); diagonal: g, (K, D)."""
        n_components, n = self.origins.shape
        return self._parts[2].reshape(n_components, *[n] * self.n_axes)

    @property
    def degrees_of_freedom(self):
        """Nu, (K,), or (K, D)."""
        return self._parts[3]

    @property
    def scale(self):
        """W^-1, (K, D, D), or w, (K, D)."""
        nu = self.degrees_of_freedom
        return nu.reshape(*nu.shape, *[1] * (self.n_axes + 1 - nu.ndim)) * self.covariances

    @property
    def covariances(self):
        """Inverses of the expected precisions, (K, D, D) or (K, D)."""
        g = self.factor
        return g**2 if self.n_axes == 1 else g @ g.swapaxes(1, 2)

    @property
    def precisions(self):
        """E[Lambda], (K, D, D) or (K, D)."""
        if self.n_axes == 1:
            return self.factor**-2
        half = np.linalg.inv(self.factor)
        return half.swapaxes(1, 2) @ half

    def distances(self, other: Components):
        """Bhattacharyya distances of N(means, covariances) from those of `other`, (K, K')."""
        apart = self.means[:, None] - other.means
        one, two = self.covariances[:, None], other.covariances
        both = (one + two) / 2
        if self.n_axes == 1:
            solved = apart / both
        else:
            solved = np.linalg.solve(both, apart[..., None])[..., 0]
        log_dets = [_log_dets(matrices, self.n_axes) for matrices in (both, one, two)]
        wider = log_dets[0] - (log_dets[1] + log_dets[2]) / 2
        return (apart * solved).sum(axis=-1) / 8 + wider / 2

    def draw(self, y, rng):
        """Points of N(means, covariances), one of each component in `y`, (n, D)."""
        noise = rng.standard_normal((len(y), self.origins.shape[1]))
        how = "nd,nd->nd" if self.n_axes == 1 else "nij,nj->ni"
        return self.means[y] + np.einsum(how, self.factor[y], noise)

    def sample(self, n_samples, rng):
        """Draws of all means, (n_samples, K, D), and of covariances and precisions with them."""
        one = normal_gamma.draw if self.n_axes == 1 else normal_wishart.draw
        standard = zip(
            self.mean_precision, self.means, self.factor, self.degrees_of_freedom, strict=True
        )
        means = np.empty((n_samples, *self.origins.shape))
        covariances, precisions = (np.empty((n_samples, *self.factor.shape)) for _ in range(2))
        for k, component in enumerate(standard):
            means[:, k], covariances[:, k], precisions[:, k] = one(*component, n_samples, rng)
        return means, covariances, precisions

    def divergence(self, prior: Prior):
        """KL from the prior in nats, of each component, (K,)."""
        kappa0, mean0, nu0, w_inv0 = prior
        own = self.mean_precision, self.shift, self.scale, self.degrees_of_freedom
        return divergence(own, (kappa0, mean0 - self.origins, w_inv0, nu0), self.n_axes)


def draw_points(means, covariances, y, rng):
    """Points of N(means[k], covariances[k]), one for each k in `y`, (n, D).

    `covariances` are (K, D, D) or, diagonal, (K, D).
    """
    noise = rng.standard_normal((len(y), means.shape[1]))
    if covariances.ndim == 2:
        return means[y] + np.sqrt(covariances)[y] * noise
    return means[y] + np.einsum("nij,nj->ni", np.linalg.cholesky(covariances)[y], noise)


def divergence(q, p, n_axes):
    """KL(q || p) in nats, (K,), of components (kappa, m, W^-1, nu).

    Kappa and nu of q, or of both, may be those of each dimension, (K, D).
    """
    if n_axes == 2:
        return normal_wishart.kl(q, p)
    if np.ndim(q[0]) < 2:
        return normal_gamma.kl(q, p)
    q, p = ((kappa, m[..., None], w[..., None], nu) for kappa, m, w, nu in (q, p))
    return normal_gamma.kl(q, p).sum(axis=1)


def _log_dets(matrices, n_axes):
    """Ln of the determinants of matrices, or of diagonals if they have one axis."""
    if n_axes == 1:
        return np.log(matrices).sum(axis=-1)
    return np.linalg.slogdet(matrices)[1]
