"""Mixtures of points whose coordinates may be missing, NaN: the local step, and where a fit begins.

Nothing is imputed: a diagonal component leaves out what is missing
(:mod:`dpsvi.expfam.by_dimension`), a full one conditions on what is there
(:mod:`dpsvi.expfam.conditional`).  Fits to points that miss nothing run another, faster local step.
"""

from __future__ import annotations

import numpy as np

from dpsvi.expfam import by_dimension, conditional
from dpsvi.expfam.gaussian import BLOCK, mirror
from dpsvi.families.mixtures.blocks import (
    add_unvisited,
    load_block,
    normalise,
    relative,
    to_changes,
    weigh,
)
from dpsvi.kernels.jit import inline_kernel, kernel


def has_gaps(values) -> bool:
    """Whether any of the numbers is NaN."""
    return bool(np.isnan(values.sum()))


def scratch(n_components, n):
    """Numbers in the memory of a thread; `n` is the longest item."""
    block = (2 * n + 2 + n_components) * BLOCK
    return max(block, n + n_components * (2 * n * n + n + 1))


@inline_kernel
def add_points(memory, items, batch, expected, origins, work):
    """As :func:`dpsvi.families.mixtures.mixture.add_points`, where coordinates may be missing.

    `memory` must be empty where covariances are full: statistics of an incomplete point do not
    follow from its responsibilities alone.
    """
    n_components, n = origins.shape
    n_items, n_new = items.offsets.shape[0] - 1, 0
    stats = work.stats[0].reshape(expected.shape)
    if expected.shape[1] == 5 * n + 1:
        n_rows = n + 2 + n_components
        block = work.scratch[: n_rows * BLOCK].reshape((n_rows, BLOCK))
        x, bound, total, resp = block[:n], block[n], block[n + 1], block[n + 2 :]
        for first in range(0, batch.shape[0], BLOCK):
            size = load_block(items, batch, first, x)
            by_dimension.log_densities(x, expected, origins, resp)
            normalise(resp, size, bound, total)
            if memory.shape[0] > 0:
                n_new += to_changes(memory, batch, first, size, resp)
            if items.offsets[batch[0] + 1] - items.offsets[batch[0]] > n:
                weigh(items, batch, first, size, n, resp)
            by_dimension.add_stats(x, resp, origins, stats)
        add_unvisited(memory, n_items, -n_new, stats)
    else:
        point = conditional.memory_of(work.scratch, work.ids, expected, n)
        n_there = -1
        for i in range(batch.shape[0]):
            begin, end = items.offsets[batch[i]], items.offsets[batch[i] + 1]
            x = items.value[begin : begin + n]
            n_there = conditional.visit(x, n_there, expected, origins, point)
            _normalise(point.log_p)
            weight = items.value[begin + n] if end - begin > n else 1.0
            conditional.add_stats(n_there, point, weight, stats)
        mirror(stats, n)
    work.touched[0] = 0
    return 1


@kernel
def infer(items, batch, expected, origins, resp, bound):
    """As :func:`dpsvi.families.mixtures.mixture.infer`, where coordinates may be missing."""
    n_components, n = origins.shape
    if expected.shape[1] == 5 * n + 1:
        block = np.empty((n + 2 + n_components, BLOCK))
        x, log_sum, total, r = block[:n], block[n], block[n + 1], block[n + 2 :]
        for first in range(0, batch.shape[0], BLOCK):
            size = load_block(items, batch, first, x)
            by_dimension.log_densities(x, expected, origins, r)
            normalise(r, size, log_sum, total)
            for i in range(size):
                bound[first + i] = log_sum[i]
                for k in range(resp.shape[1] if resp.shape[0] > 0 else 0):
                    resp[first + i, k] = r[k, i]
        return
    numbers = np.empty(n_components * (2 * n * n + n + 1))
    memory = conditional.memory_of(numbers, np.empty(n, np.int32), expected, n)
    n_there = -1
    for i in range(batch.shape[0]):
        begin = items.offsets[batch[i]]
        x = items.value[begin : begin + n]
        n_there = conditional.visit(x, n_there, expected, origins, memory)
        bound[i] = _normalise(memory.log_p)
        for k in range(resp.shape[1] if resp.shape[0] > 0 else 0):
            resp[i, k] = memory.log_p[k]


@inline_kernel
def _normalise(log_p):
    """Turn log-densities into responsibilities in place; returns the log of their sum."""
    top, total = log_p[0], 0.0
    for k in range(1, log_p.shape[0]):
        top = max(top, log_p[k])
    for k in range(log_p.shape[0]):
        log_p[k] = relative(log_p[k] - top)
        total += log_p[k]
    for k in range(log_p.shape[0]):
        log_p[k] /= total
    return top + np.log(total)


# --- where a fit begins -----------------------------------------------------------------------


def check_columns(X) -> None:
    """Raise ValueError for a feature of which nothing is known."""
    empty = np.flatnonzero(np.isnan(X).all(axis=0))
    if len(empty):
        raise ValueError(
            f"feature {empty[0]} of X has no value: all are NaN, and nothing can be learned of it"
        )


def stand_in(X, weight=None):
    """Points whose mean and covariance are those of what is there in X, (n, D), for priors.

    Missing coordinates are the mean, and the others further from it, so that variances are right.
    Covariances are too small, by what two features do not have in common, and positive definite.
    """
    weight = np.ones(len(X)) if weight is None else weight
    there = ~np.isnan(X)
    share = weight @ there
    mean = weight @ np.where(there, X, 0.0) / share
    return mean + np.where(there, X - mean, 0.0) * np.sqrt(weight.sum() / share)


def filled(X, rng, source):
    """X with values of `source`, drawn at random from each column, where it has gaps."""
    X = X.copy()
    for column, values in zip(X.T, source.T, strict=True):
        missing = np.isnan(column)
        column[missing] = rng.choice(values[~np.isnan(values)], missing.sum())
    return X


def refill(X, points, resp, q, rng) -> None:
    """Draw anew in X, (n, D), what is missing in `points`, given the rest and the components `q`.

    Parameters
    ----------
    X, points : float64 arrays, (n, D)
        X is overwritten.
    resp : float64 array, (n, K)
        Responsibilities.
    q : Components
    rng : numpy.random.Generator
    """
    chosen = (rng.random((len(X), 1)) > np.cumsum(resp, axis=1)[:, :-1]).sum(axis=1)
    if q.n_axes == 1:
        X[...] = np.where(np.isnan(points), q.draw(chosen, rng), points)
        return
    X[...] = points
    noise = rng.standard_normal(X.shape)
    conditional.draw_missing(X, chosen, q.standard, q.origins, noise)
