"""The local step of matrix factorisation: the factors of users, given those of the items.

The equations are those of :mod:`dpsvi.models.matrix_factorization.estimator`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpsvi.kernels.fold import list_words
from dpsvi.kernels.jit import inline_kernel, kernel, naming_kernel
from dpsvi.kernels.normal import moments


class Prior(NamedTuple):
    """What does not change while the model is fitted: ``Model.hyper``."""

    n_components: int
    mean: float  # mu
    user_precision: float  # alpha_x
    item_precision: float  # alpha_v
    noise_shape: float  # a_0
    noise_rate: float  # b_0


@naming_kernel
def prior_of(hyper):
    """Name what :func:`dpsvi.kernels.hyper.pack` made of :class:`Prior`."""
    return Prior(int(hyper[0]), hyper[1], hyper[2], hyper[3], hyper[4], hyper[5])


@inline_kernel
def explain(items, u, places, expected, prior, noise, natural, matrix, inverse, out):
    """Factors of one user; returns ``ln det S_u^-1`` and the sum of e_ui.

    Parameters
    ----------
    places : int32 array
        Row of `expected`, svec(E[v v^T]) | E[v], for each of the user's ratings.
    noise : float
        E[tau].
    natural, matrix, inverse : float64 arrays
        Scratch, as :func:`dpsvi.kernels.normal.moments`.
    out : float64 array, (n_columns,)
        Written: svec(E[x x^T]) | E[x].
    """
    n = prior.n_components
    start, first = n * (n + 1) // 2, items.offsets[u]
    squares = 0.0
    for c in range(natural.shape[0]):
        natural[c] = 0.0
    for j in range(places.shape[0]):
        row, rating = expected[places[j]], items.value[first + j] - prior.mean
        squares += rating * rating
        for c in range(start):
            natural[c] += row[c]
        for c in range(start, natural.shape[0]):
            natural[c] += rating * row[c]
    log_det = moments(natural, prior.user_precision, noise, n, matrix, inverse, out)
    explained = 0.0
    for c in range(start):
        explained -= out[c] * natural[c]
    for c in range(start, natural.shape[0]):
        explained += 2.0 * out[c] * natural[c]
    return log_det, max(squares - explained, 0.0)


@inline_kernel
def expected_noise(rows, scale, prior):
    """E[tau]."""
    last = rows[rows.shape[0] - 1]
    shape = prior.noise_shape + 0.5 * scale * last[0]
    return shape / (prior.noise_rate + 0.5 * scale * last[1])


def local(shared, scale, hyper, items, batch, work):
    """See :class:`dpsvi.base.Model`; items are users."""
    rows, prior = shared.rows, prior_of(hyper)
    n, columns = prior.n_components, rows.shape[1]
    start = n * (n + 1) // 2
    matrix = work.scratch[: n * n].reshape((n, n))
    inverse = work.scratch[n * n : 2 * n * n].reshape((n, n))
    natural = work.scratch[2 * n * n : 2 * n * n + columns]
    user = work.scratch[2 * n * n + columns : 2 * n * n + 2 * columns]

    n_touched = list_words(items, batch, work)
    work.touched[n_touched] = rows.shape[0] - 1
    noise = expected_noise(rows, scale, prior)
    for i in range(n_touched):
        row = rows[work.touched[i]]
        moments(row, prior.item_precision, noise * scale, n, matrix, inverse, work.expected[i])
    for u in batch:
        first, last = items.offsets[u], items.offsets[u + 1]
        places = work.ids[: last - first]
        for j in range(last - first):
            places[j] = work.slot[items.index[first + j]]
        _, errors = explain(
            items, u, places, work.expected, prior, noise, natural, matrix, inverse, user
        )
        work.stats[n_touched, 0] += last - first
        work.stats[n_touched, 1] += errors
        for j in range(last - first):
            stats, rating = work.stats[places[j]], items.value[first + j] - prior.mean
            for c in range(start):
                stats[c] += user[c]
            for c in range(start, columns):
                stats[c] += rating * user[c]
    for i in range(n_touched):
        work.slot[work.touched[i]] = -1
    return n_touched + 1


@kernel
def infer(items, expected, prior, noise, users, log_dets, errors):
    """Factors of all users with the items held fixed; each on its own.

    Parameters
    ----------
    items : Items
    expected : float64 array, (n_items, n_columns)
        svec(E[v v^T]) | E[v].
    prior : Prior
    noise : float
        E[tau].
    users : float64 array, (n_users, n_columns)
        Written: svec(E[x x^T]) | E[x].
    log_dets, errors : float64 arrays, (n_users,)
        Written: ln det S_u^-1 and sum_i e_ui.
    """
    n = prior.n_components
    matrix, inverse, natural = np.empty((n, n)), np.empty((n, n)), np.empty(users.shape[1])
    for u in range(users.shape[0]):
        places = items.index[items.offsets[u] : items.offsets[u + 1]]
        log_dets[u], errors[u] = explain(
            items, u, places, expected, prior, noise, natural, matrix, inverse, users[u]
        )


@kernel
def predict(items, users, expected, n, mean, variance):
    """Mean and variance of x_u^T v_i for every rating; both are written.

    ``Var[x^T v] = tr(E[x x^T] E[v v^T]) - (E[x]^T E[v])^2``.
    """
    start = n * (n + 1) // 2
    for u in range(users.shape[0]):
        for j in range(items.offsets[u], items.offsets[u + 1]):
            row = expected[items.index[j]]
            square = 0.0
            product = 0.0
            for c in range(start):
                square += users[u, c] * row[c]
            for c in range(start, row.shape[0]):
                product += users[u, c] * row[c]
            mean[j] = product
            variance[j] = max(square - product * product, 0.0)
