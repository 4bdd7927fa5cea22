"""Groups with a coefficient vector each, drawn from one Gaussian population (paper, 7.6).

    (mu, Lambda) ~ NW(m_0, kappa_0, W_0, nu_0),    beta_j ~ N(mu, Lambda^-1)

What the local steps of all such models share: the expectation of the population, the posterior
``q(beta_j) = N(m_j, S_j)`` of a group from its precision, and the statistics ``1 | m_j | m_j m_j^T
+ S_j | 1`` that a group adds to the Normal-Wishart parameters (:mod:`dpsvi.expfam.normal_wishart`),
as a point adds to those of a mixture component.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from dpsvi.base import Model
from dpsvi.expfam.normal_wishart import expected_log_det, to_standard
from dpsvi.kernels.jit import inline_kernel, kernel, naming_kernel


class Group(NamedTuple):
    """A group's coefficients before and after its rows are seen: parts of a thread's scratch."""

    prior_mean: np.ndarray  # m, (D,): what the population says of it
    prior_precision: np.ndarray  # E[Lambda] = nu W, (D, D)
    mean: np.ndarray  # m_j, (D,)
    covariance: np.ndarray  # S_j, (D, D)
    factor: np.ndarray  # (D, D): its precision, then the Cholesky factor of that
    gradient: np.ndarray  # (D,)
    step: np.ndarray  # (D,)


@kernel
def scratch_size(n, longest_item=0):
    """Length of the scratch that :func:`as_group` splits, however long the items are."""
    return 3 * n * n + 4 * n


@kernel
def as_group(scratch, n):
    """The first numbers of `scratch` as a :class:`Group` in n dimensions."""
    square, first = n * n, 3 * n * n
    return Group(
        scratch[first : first + n],
        scratch[:square].reshape((n, n)),
        scratch[first + n : first + 2 * n],
        scratch[square : 2 * square].reshape((n, n)),
        scratch[2 * square : first].reshape((n, n)),
        scratch[first + 2 * n : first + 3 * n],
        scratch[first + 3 * n : first + 4 * n],
    )


def from_arrays(name, local, shape, prior, hyper) -> Model:
    """A model of groups with these arrays; `hyper` is of :func:`pack`."""
    return Model(
        name=name, shape=shape, prior=prior, hyper=hyper, local=local,
        scratch=partial(scratch_size, len(unpack(hyper)[0])),
    )  # fmt: skip


def pack(natural, floor):
    """The prior and its least pivots as the `hyper` of a model; :func:`unpack` takes it apart."""
    return np.concatenate([[len(floor)], floor, natural])


@naming_kernel
def unpack(hyper):
    """Least pivots of W_0^-1, (D,), and natural parameters of the prior."""
    n = int(hyper[0])
    return hyper[1 : n + 1], hyper[n + 1 :]


@inline_kernel
def natural_of(work, scale, prior):
    """Natural parameters, from the totals of the one row that there is; parts of `work`."""
    natural = work.expected[0]
    for k in range(prior.shape[0]):
        natural[k] = prior[k] + scale * work.totals[k]
    return natural


@kernel
def read_population(natural, floor, group):
    """Fill the prior of `group`; returns ``(E ln|Lambda| - D / kappa) / 2``.

    Parameters
    ----------
    natural : float64 array, (D * D + D + 2,)
        Normal-Wishart parameters; overwritten with the standard form.
    floor : float64 array, (D,)
        As in :func:`dpsvi.expfam.normal_wishart.to_standard`.
    group : Group
    """
    n = floor.shape[0]
    to_standard(natural, floor)
    factor = natural[n + 1 : -1].reshape((n, n))
    for d in range(n):
        group.prior_mean[d] = natural[1 + d]
        for e in range(n):
            group.factor[d, e] = factor[d, e]
    invert(group.factor, group.prior_precision)
    return 0.5 * (expected_log_det(natural, n) - n / natural[0])


@inline_kernel
def rows_of(items, i, n):
    """Rows [x, y, weight] of group i, (n_j, D + 2), x with n = D numbers."""
    return items.value[items.offsets[i] : items.offsets[i + 1]].reshape((-1, n + 2))


@kernel
def start_at_prior(group):
    """Precision and gradient of a group none of whose rows were seen."""
    n = group.prior_mean.shape[0]
    for d in range(n):
        group.gradient[d] = 0.0
        for e in range(n):
            group.factor[d, e] = group.prior_precision[d, e]


@kernel
def cholesky(a):
    """Overwrite the lower triangle of a symmetric matrix with its Cholesky factor.

    Returns the logarithm of the determinant.
    """
    log_det = 0.0
    for i in range(a.shape[0]):
        for j in range(i + 1):
            value = a[i, j]
            for k in range(j):
                value -= a[i, k] * a[j, k]
            a[i, j] = value / a[j, j] if j < i else np.sqrt(value)
        log_det += 2.0 * np.log(a[i, i])
    return log_det


@kernel
def solve(factor, x):
    """Overwrite x with ``(L L^T)^-1 x``, L the lower triangle of `factor`."""
    n = factor.shape[0]
    for i in range(n):
        for k in range(i):
            x[i] -= factor[i, k] * x[k]
        x[i] /= factor[i, i]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            x[i] -= factor[k, i] * x[k]
        x[i] /= factor[i, i]


@kernel
def invert(factor, inverse):
    """Fill `inverse` with ``(L L^T)^-1``; overwrites L, the lower triangle of `factor`."""
    n = factor.shape[0]
    for i in range(n):
        for j in range(n):
            inverse[i, j] = 0.0
    for i in range(n):
        unit = 1.0 / factor[i, i]
        for j in range(i):
            value = 0.0
            for k in range(j, i):
                value += factor[i, k] * factor[k, j]
            factor[i, j] = -unit * value
        factor[i, i] = unit
        # (L L^T)^-1 = sum of the outer products of the rows of L^-1
        for j in range(i + 1):
            for k in range(j + 1):
                inverse[j, k] += factor[i, j] * factor[i, k]
    for j in range(n):
        for k in range(j):
            inverse[k, j] = inverse[j, k]


@kernel
def surprise(group):
    """``(m_j - m)^T E[Lambda] (m_j - m)``."""
    value, n = 0.0, group.mean.shape[0]
    for d in range(n):
        total = 0.0
        for e in range(n):
            total += group.prior_precision[d, e] * (group.mean[e] - group.prior_mean[e])
        value += total * (group.mean[d] - group.prior_mean[d])
    return value


@kernel
def add_group(group, stats):
    """Add the statistics of a group to those of a natural Normal-Wishart vector."""
    n = group.mean.shape[0]
    square = stats[n + 1 : -1].reshape((n, n))
    stats[0] += 1.0
    stats[-1] += 1.0
    for d in range(n):
        stats[1 + d] += group.mean[d]
        for e in range(n):
            square[d, e] += group.mean[d] * group.mean[e] + group.covariance[d, e]


@kernel
def keep_group(group, means, covariances, i):
    """Copy mean and covariance of a group to place i."""
    n = group.mean.shape[0]
    for d in range(n):  # loops: numba takes seconds to compile an assignment of slices
        means[i, d] = group.mean[d]
        for e in range(n):
            covariances[i, d, e] = group.covariance[d, e]


@kernel
def project(design, index, means, covariances, mean, variance):
    """Fill mean and variance of ``x^T beta`` for each row x of `design`, beta of group index[i]."""
    n_rows, n = design.shape
    for i in range(n_rows):
        x, m, S = design[i], means[index[i]], covariances[index[i]]
        mean[i], variance[i] = 0.0, 0.0
        for d in range(n):
            total = 0.0
            for e in range(n):
                total += S[d, e] * x[e]
            mean[i] += x[d] * m[d]
            variance[i] += x[d] * total


def least_squares(X, y, weight):
    """Coefficients of all rows together, (D,); a row's worth of pull to 0 makes them unique."""
    weighted = X * weight[:, None]
    gram = weighted.T @ X
    square = np.diag(gram) / weight.sum()
    return np.linalg.solve(gram + np.diag(np.where(square > 0, square, 1.0)), weighted.T @ y)


def first_sums(mean, variance, n_groups):
    """Statistics of groups with this mean and these variances, to start from.

    Too wide a start is soon forgotten; a narrow one would hold the groups together for long.
    """
    psi = np.outer(mean, mean) + np.diag(variance)
    return n_groups * np.concatenate([[1.0], mean, psi.ravel(), [1.0]])
