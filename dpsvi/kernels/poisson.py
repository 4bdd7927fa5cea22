"""Rows of gamma variables with a random rate, and users explained by items (Gopalan et al. 2015).

Both sides of hierarchical Poisson factorisation have the same form.  A row x_k, k = 1 ... K, of
user or item factors has

    rate ~ Ga(c', c' / d'),   x_k ~ Ga(c, rate),   q(x_k) = Ga(s_k, e + t_k),   e = E[rate],

where the exposure t_k is the sum of factor k over the other side, and
``q(rate) = Ga(c' + K c, c' / d' + sum_k E[x_k])``.  Given the shapes s, the best q(rate) and the
best rates of q(x) depend on each other through one number, e, so both are had by solving for it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpsvi.kernels.digamma import exp_digamma
from dpsvi.kernels.fold import fold
from dpsvi.kernels.jit import inline_kernel, kernel, naming_kernel

# Newton's method squares the error of e, so a step of this relative size is the last one.
_CLOSE = 1e-6


class FactorPrior(NamedTuple):
    """Prior of the factors of users, or of items, as the kernels take it."""

    shape: float  # c
    top: float  # c' + K c, shape of the posterior of the rates
    base: float  # c' / d', rate of the prior of the rates


class Options(NamedTuple):
    """What a local step knows besides the items: ``Model.hyper``."""

    n_components: int
    n_sweeps: int  # most iterations over a user
    tol: float  # mean change of the shapes that ends them
    users: FactorPrior
    items: FactorPrior


@naming_kernel
def options_of(hyper):
    """Name what :func:`dpsvi.kernels.hyper.pack` made of :class:`Options`."""
    users = FactorPrior(hyper[3], hyper[4], hyper[5])
    items = FactorPrior(hyper[6], hyper[7], hyper[8])
    return Options(int(hyper[0]), int(hyper[1]), hyper[2], users, items)


@inline_kernel
def solve_rate(shape, exposure, total, base):
    """The e of a row: ``e (base + sum_k s_k / (e + t_k)) = total``, here c' + K c and c' / d'.

    The left side rises from 0 and is concave in e, so the root is unique and Newton's method
    climbs to it from any point below; ``total / (base + sum_k s_k / t_k)`` is one.
    """
    slope = 0.0
    for k in range(shape.shape[0]):
        slope += shape[k] / exposure[k]
    e = total / (base + slope)
    step = e
    while step > _CLOSE * e:
        mean = 0.0
        slope = 0.0
        for k in range(shape.shape[0]):
            inverse = 1.0 / (e + exposure[k])
            part = shape[k] * inverse
            mean += part
            slope += part * inverse
        step = (total - e * (base + mean)) / (base + mean - e * slope)
        e += step
    return e


@inline_kernel
def start_even(counts, options, shape):
    """Shapes of a user whose counts belong to all components alike."""
    n = options.n_components
    count = 0.0
    for i in range(counts.shape[0]):
        count += counts[i]
    for k in range(shape.shape[0]):
        shape[k] = options.users.shape + count / n if k < n else 0.0


@inline_kernel
def explain(basis, ids, counts, exposure, options, shape, weight, total, ratio):
    """Iterate the factors of one user from `shape` on; returns e, its ``E[rate]``.

    Leaves `weight`, exp(E log theta), and the `ratio` of each count to ``sum_k weight_k basis_k``
    as they were in the last sweep, from which `shape` was made.  Columns beyond the K components
    hold 0, their `exposure` is 1.
    """
    n = options.n_components
    prior, top, base = options.users
    e = solve_rate(shape, exposure, top, base)
    for _ in range(options.n_sweeps):
        for k in range(n):
            weight[k] = exp_digamma(shape[k]) / (e + exposure[k])
        fold(basis, ids, counts, weight, total, ratio)
        change = 0.0
        for k in range(n):
            new = prior + weight[k] * total[k]
            change += abs(new - shape[k])
            shape[k] = new
        e = solve_rate(shape, exposure, top, base)
        if change < options.tol * n:
            break
    return e


@kernel
def infer(basis, items, exposure, options, shapes, rates, log_norm):
    """Factors of all users with the items held fixed; each on its own.

    Parameters
    ----------
    basis : float64 array, (n_rows, n_columns)
        exp(E log beta).
    items : Items
    exposure : float64 array, (n_columns,)
        sum_i E[beta_ik], times the share of a user's counts that are in `items`.
    options : Options
    shapes, rates : float64 arrays, (n_users, n_columns), (n_users,)
        Written: q(theta_uk) = Ga(shapes_uk, rates_u + exposure_k).
    log_norm : float64 array, (n_users,)
        Written: ``sum_i y_ui log sum_k exp(E log theta_uk + E log beta_ik)``.
    """
    n, n_columns = options.n_components, shapes.shape[1]
    longest = 0
    for u in range(shapes.shape[0]):
        longest = max(longest, items.offsets[u + 1] - items.offsets[u])
    weight, total, ratios = np.zeros(n_columns), np.empty(n_columns), np.empty(longest)
    columns = np.empty(longest, np.int32)
    for u in range(shapes.shape[0]):
        start, stop = items.offsets[u], items.offsets[u + 1]
        ids, counts = columns[: stop - start], items.value[start:stop]
        ratio = ratios[: stop - start]
        # A copy: what cannot be written is another type, for which all were compiled once more.
        for i in range(stop - start):
            ids[i] = items.index[start + i]
        start_even(counts, options, shapes[u])
        rates[u] = explain(
            basis, ids, counts, exposure, options, shapes[u], weight, total, ratio
        )
        for k in range(n):
            weight[k] = exp_digamma(shapes[u, k]) / (rates[u] + exposure[k])
        fold(basis, ids, counts, weight, total, ratio)
        log_norm[u] = 0.0
        for i in range(stop - start):
            log_norm[u] += counts[i] * np.log(counts[i] / ratio[i])
