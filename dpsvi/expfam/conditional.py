"""Full-covariance components of points whose coordinates may be missing, NaN.

Given z_n = k the missing coordinates m have a posterior of their own beside r_nk, as in the EM
algorithm of Ghahramani and Jordan (1994) but under q: with S = (nu W)^-1 and o the coordinates that
are there

    q(x_m | k) = N(m_m + S_mo S_oo^-1 (x_o - m_o),  C),    C = S_mm - S_mo S_oo^-1 S_om,

and ln r_nk has ``M/2 ln 2 pi + ln|C| / 2 - (x_o - m_o)^T S_oo^-1 (x_o - m_o) / 2`` in place of the
quadratic form of x, M being how many are missing.  Statistics are those of x with these means in
place, and C is added to ``x x^T``.  All of it comes out of the Cholesky factor of S with what is
there put first: rows of missing coordinates give the means, and the last block is the factor of C.

Points are handled one by one, since each may miss other coordinates; a factor is used again by
the next point that misses the same.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpsvi.kernels.jit import inline_kernel, kernel


class Memory(NamedTuple):
    """What one thread needs."""

    order: np.ndarray  # int32, (D,): coordinates, those that are there first
    square: np.ndarray  # (K, D, D): S of every component
    root: np.ndarray  # (K, D, D): its Cholesky factor in that order
    filled: np.ndarray  # (K, D): the point, counted from the origins, missing ones as expected
    log_p: np.ndarray  # (K,): log-densities, then responsibilities


@inline_kernel
def memory_of(vector, order, standard, n):
    """The :class:`Memory` in a vector of K (2 D^2 + D + 1) numbers, ready for these components.

    `standard` is as in :func:`dpsvi.expfam.gaussian.log_densities`.
    """
    n_components, square = standard.shape[0], standard.shape[0] * n * n
    rest = vector[2 * square :]
    memory = Memory(
        order[:n],
        vector[:square].reshape((n_components, n, n)),
        vector[square : 2 * square].reshape((n_components, n, n)),
        rest[: n_components * n].reshape((n_components, n)),
        rest[n_components * n : n_components * (n + 1)],
    )
    for d in range(n):
        order[d] = -1
    for k in range(n_components):
        g = standard[k, n + 2 : -1]
        for d in range(n):
            for e in range(d + 1):
                value = 0.0
                for j in range(e + 1):
                    value += g[d * n + j] * g[e * n + j]
                memory.square[k, d, e] = value
                memory.square[k, e, d] = value
    return memory


@kernel
def arrange(x, order):
    """Put the coordinates of `x` that are there first in `order`.

    Returns how many there are, and whether `order` was the same before.
    """
    same, place, n_there = True, 0, 0
    for missing in range(2):
        for d in range(order.shape[0]):
            if (x[d] != x[d]) == (missing == 1):
                same = same and order[place] == d
                order[place] = d
                place += 1
        if missing == 0:
            n_there = place
    return n_there, same


@kernel
def factorise(square, order, root):
    """Cholesky factor of a matrix, (D, D), whose rows and columns are taken in this order."""
    for i in range(order.shape[0]):
        pivot = square[order[i], order[i]]
        least = 1e-14 * pivot
        for j in range(i):
            value = square[order[i], order[j]]
            for e in range(j):
                value -= root[i, e] * root[j, e]
            root[i, j] = value / root[j, j]
            pivot -= root[i, j] * root[i, j]
        root[i, i] = math.sqrt(max(pivot, least))


@kernel
def expect_missing(x, n_there, standard, origin, root, order, filled):
    """Fill in a point, and return its log-density under one component.

    Parameters
    ----------
    x : float64 array, (D,)
    n_there : int
        Coordinates that are not missing, the first ones of `order`.
    standard : float64 array, (D * D + D + 3,)
        The component.
    origin : float64 array, (D,)
    root : float64 array, (D, D)
        As :func:`factorise` leaves it.
    order : int32 array, (D,)
    filled : float64 array, (D,)
        Overwritten.
    """
    n = order.shape[0]
    value = standard[0] + 0.5 * (n - n_there) * math.log(2.0 * math.pi)
    # `filled` holds y = root^-1 (x - m) in that order until all of it is known
    for i in range(n_there):
        d = order[i]
        here = (x[d] - origin[d]) - standard[2 + d]
        for j in range(i):
            here -= root[i, j] * filled[order[j]]
        here /= root[i, i]
        filled[d] = here
        value -= 0.5 * here * here
    for i in range(n_there, n):
        d = order[i]
        value += math.log(root[i, i])
        filled[d] = standard[2 + d]
        for j in range(n_there):
            filled[d] += root[i, j] * filled[order[j]]
    for i in range(n_there):
        d = order[i]
        filled[d] = x[d] - origin[d]
    return value


@kernel
def visit(x, seen_before, standard, origins, memory):
    """Log-densities of a point under all components, and what it is expected to be under each.

    `seen_before` is what the last call with this memory returned, -1 at first.  Returns the number
    of coordinates that are there.
    """
    n_there, same = arrange(x, memory.order)
    for k in range(origins.shape[0]):
        if not (same and n_there == seen_before):
            factorise(memory.square[k], memory.order, memory.root[k])
        memory.log_p[k] = expect_missing(
            x, n_there, standard[k], origins[k], memory.root[k], memory.order, memory.filled[k]
        )
    return n_there


@kernel
def add_stats(n_there, memory, weight, stats):
    """Add the statistics of the point that was visited; `weight` is how often it counts.

    ``memory.log_p`` holds its responsibilities.  Of ``x x^T`` the lower triangle is added.
    """
    order, n = memory.order, memory.order.shape[0]
    for k in range(stats.shape[0]):
        r, row, here = weight * memory.log_p[k], stats[k], memory.filled[k]
        if r == 0.0:
            continue
        row[0] += r
        row[1] += r
        row[-1] += r
        for d in range(n):
            row[2 + d] += r * here[d]
            for e in range(d + 1):
                row[2 + n + d * n + e] += r * here[d] * here[e]
        for i in range(n_there, n):
            for j in range(n_there, i + 1):
                value = 0.0
                for e in range(n_there, j + 1):
                    value += memory.root[k, i, e] * memory.root[k, j, e]
                row[2 + n + order[i] * n + order[j]] += r * value


@kernel
def draw_missing(points, chosen, standard, origins, noise):
    """Replace what is NaN in `points`, (n, D), by draws given the rest and a component of each.

    Parameters
    ----------
    points : float64 array, (n, D)
        Overwritten.
    chosen : int64 array, (n,)
    standard, origins
        As in :func:`dpsvi.expfam.gaussian.log_densities`.
    noise : float64 array, (n, D)
        Standard normal.
    """
    n = points.shape[1]
    numbers = np.empty(standard.shape[0] * (2 * n * n + n + 1))
    memory = memory_of(numbers, np.empty(n, np.int32), standard, n)
    for i in range(points.shape[0]):
        k = chosen[i]
        n_there, _ = arrange(points[i], memory.order)
        if n_there == n:
            continue
        root = memory.root[k]
        factorise(memory.square[k], memory.order, root)
        expect_missing(
            points[i], n_there, standard[k], origins[k], root, memory.order, memory.filled[k]
        )
        for j in range(n_there, n):
            d = memory.order[j]
            points[i, d] = origins[k, d] + memory.filled[k, d]
            for e in range(n_there, j + 1):
                points[i, d] += root[j, e] * noise[i, e]
