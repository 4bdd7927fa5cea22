"""The local step of mixtures of Gaussian components, and the arrays that it works on.

All of lam is one row of the engine's matrix, the components of :mod:`dpsvi.expfam.gaussian` one
after the other: every point touches all of them.  What weights are made of, the model keeps in the
first number of each component, ``counts``; its statistics are N_k = sum_n r_nk.

Two choices keep covariances sound.  The column totals of one row, which every thread keeps for
itself, are the parameters, and the local step reads those: unlike the row they lose no addition to
a race, and one percent lost would spoil ``W^-1 = Psi - h h^T / kappa``.  And every component counts
x from an origin o_k of its own, near its first mean and fixed for the whole fit, so that the
difference is one of small numbers for data far from zero too; natural parameters of different
origins differ by a linear map, which leaves all steps and averages what they are.
"""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import numpy as np

from dpsvi.base import Model
from dpsvi.expfam.gaussian import BLOCK, add_stats, log_densities, mirror
from dpsvi.families.mixtures.components import Components, Prior
from dpsvi.kernels.hyper import pack
from dpsvi.kernels.jit import copy, inline_kernel, kernel


class Options(NamedTuple):
    """What a local step knows besides the components: ``Model.hyper``."""

    n_components: int  # K
    n_features: int  # D
    n_axes: int  # of a covariance: 1 if it is diagonal, else 2
    mean_precision: float  # kappa_0
    degrees_of_freedom: float  # nu_0
    mean: np.ndarray  # m_0, (D,)
    floor: np.ndarray  # (D,)
    covariance: np.ndarray  # W_0^-1, in one vector
    origins: np.ndarray  # (K, D)
    prior: np.ndarray  # of the components in natural form, (K, columns)
    weights: np.ndarray  # what else the local step has to know of the weights' prior


@inline_kernel
def options_of(hyper):
    """Name what :func:`dpsvi.kernels.hyper.pack` made of :class:`Options`."""
    n_components, n, n_axes = int(hyper[0]), int(hyper[1]), int(hyper[2])
    size = n if n_axes == 1 else n * n
    columns = size + n + 3
    rest = hyper[5 + 2 * n + size :]
    origins, rest = rest[: n_components * n], rest[n_components * n :]
    return Options(
        n_components, n, n_axes, hyper[3], hyper[4], hyper[5 : 5 + n], hyper[5 + n : 5 + 2 * n],
        hyper[5 + 2 * n : 5 + 2 * n + size], origins.reshape((n_components, n)),
        rest[: n_components * columns].reshape((n_components, columns)),
        rest[n_components * columns :],
    )  # fmt: skip


def make_model(name, local, prior: Prior, origins, first, weights) -> Model:
    """A mixture as a :class:`dpsvi.base.Model`.

    Parameters
    ----------
    name : str
    local : callable
        Calls :func:`natural`, fills the first number of each component with E ln pi_k, and goes on
        with :func:`dpsvi.families.mixtures.components.standardise` and :func:`add_points`.
    prior : Prior
    origins : float64 array, (K, D)
        Where each component counts from.
    first : float
        The prior of every `counts`.
    weights : sequence of float
        What else `local` needs to know of the weights' prior.
    """
    natural_prior = prior.natural(origins, first).reshape(1, -1)
    options = Options(
        *origins.shape, prior.covariance.ndim, prior.mean_precision, prior.degrees_of_freedom,
        prior.mean, prior.floor(), prior.covariance, origins, natural_prior, weights,
    )  # fmt: skip
    return from_arrays(name, local, natural_prior.shape, natural_prior, pack(options))


def from_arrays(name, local, shape, prior, hyper) -> Model:
    """The model with these arrays of :func:`make_model`; errors if they are no such arrays."""
    return Model(
        name=name, shape=shape, prior=prior, hyper=hyper, local=local,
        scratch=partial(_scratch, options_of.py_func(hyper).n_components),
    )  # fmt: skip


def _scratch(n_components, n):
    return (2 * n + 2 + n_components) * BLOCK


def component_prior(hyper) -> Prior:
    """The prior of the components that `hyper` holds."""
    options = options_of(hyper)
    covariance = options.covariance.reshape([options.n_features] * options.n_axes)
    return Prior(options.mean_precision, options.mean, options.degrees_of_freedom, covariance)


def posterior(state, expect) -> Components:
    """What a :class:`dpsvi.training.state.State` says of the components.

    `expect` is the model's kernel.
    """
    options = options_of(state.model.hyper)
    expected = np.empty(options.prior.shape)
    expect(state.shared.totals.sum(axis=0), state.scale, state.model.hyper, expected)
    return Components(expected, options.origins, options.n_axes)


def counts(state):
    """The first number of each component, (K,)."""
    return state.natural().reshape(options_of(state.model.hyper).n_components, -1)[:, 0]


@inline_kernel
def natural(sums, scale, prior, expected):
    """Fill `expected`, (K, columns), with lam; `sums` is (lam - prior) / scale in one vector."""
    for k in range(prior.shape[0]):
        for j in range(prior.shape[1]):
            expected[k, j] = prior[k, j] + scale * sums[k * prior.shape[1] + j]


@inline_kernel
def load_block(items, batch, first, x):
    """Copy items batch[first:first + BLOCK] into the columns of `x`; returns their number.

    A block that is not full repeats its first point; give the copies the weight 0.
    """
    size = min(BLOCK, batch.shape[0] - first)
    for i in range(BLOCK):
        start = items.offsets[batch[first + i if i < size else first]]
        for d in range(x.shape[0]):
            x[d, i] = items.value[start + d]
    return size


@inline_kernel
def normalise(log_p, size, bound, total):
    """Turn a block of log-densities into responsibilities in place, 0 from point `size` on.

    `bound`, (BLOCK,), gets ``ln sum_k exp(log_p[k])``; `total`, (BLOCK,), is scratch.
    """
    n_components = log_p.shape[0]
    for i in range(BLOCK):
        bound[i] = log_p[0, i]
        total[i] = 0.0
    for k in range(1, n_components):
        for i in range(BLOCK):
            bound[i] = max(bound[i], log_p[k, i])
    for k in range(n_components):
        for i in range(BLOCK):
            log_p[k, i] = math.exp(log_p[k, i] - bound[i])
            total[i] += log_p[k, i]
    for k in range(n_components):
        for i in range(BLOCK):
            log_p[k, i] = log_p[k, i] / total[i] if i < size else 0.0
    for i in range(BLOCK):
        bound[i] += math.log(total[i])


@kernel
def weigh(items, batch, first, size, n, resp):
    """Multiply responsibilities, (K, BLOCK), by the weights of the points of a block.

    Points are items of `n` numbers; the number behind these is the weight of the point.
    """
    for i in range(size):
        weight = items.value[items.offsets[batch[first + i]] + n]
        for k in range(resp.shape[0]):
            resp[k, i] *= weight


@inline_kernel
def add_points(memory, items, batch, expected, origins, work):
    """Add the statistics of the points in `batch` to ``work.stats``: (44) and its sums.

    `expected`, (K, columns), holds the components in standard form behind what does not depend on
    x_n in ln r_nk.  A point that has one number more counts as often as that says.  Returns the
    number of rows touched.

    Where `memory` has rows the statistics are changes (:mod:`dpsvi.estimators.incremental`): it
    keeps r_n of every point, and behind these what stands for a point that was not visited yet.
    """
    n_components, n = origins.shape
    n_items, n_new = items.offsets.shape[0] - 1, 0
    stats = work.stats[0].reshape(expected.shape)
    n_rows = 2 * n + 2 + n_components
    block = work.scratch[: n_rows * BLOCK].reshape((n_rows, BLOCK))  # room for weights is behind
    x, y, bound, resp = block[:n], block[n : 2 * n + 1], block[2 * n + 1], block[2 * n + 2 :]
    weighted = items.offsets[batch[0] + 1] - items.offsets[batch[0]] > n
    for first in range(0, batch.shape[0], BLOCK):
        size = load_block(items, batch, first, x)
        log_densities(x, expected, origins, y, resp)
        normalise(resp, size, bound, y[0])
        if memory.shape[0] > 0:
            n_new += _change(memory, batch, first, size, resp)
        if weighted:
            weigh(items, batch, first, size, n, resp)
        add_stats(x, resp, origins, y, stats)
    mirror(stats, n)
    if n_new > 0:
        share = memory[n_items:].reshape(stats.shape)
        for k in range(n_components):
            for j in range(stats.shape[1]):
                stats[k, j] -= n_new * share[k, j]
    work.touched[0] = 0
    return 1


@inline_kernel
def _change(memory, batch, first, size, resp):
    """Turn responsibilities into their changes since the last visit; how many had none is returned.

    They sum to 1, so that a point without any is one that was not visited yet.
    """
    n_new = 0
    for i in range(size):
        old, known = memory[batch[first + i]], 0.0
        for k in range(resp.shape[0]):
            new = resp[k, i]
            resp[k, i] = new - old[k]
            known += old[k]
            old[k] = new
        n_new += known == 0.0
    return n_new


@kernel
def infer(items, batch, expected, origins, resp, bound):
    """Responsibilities and bounds of the items in `batch`, `expected` as in :func:`add_points`.

    Parameters
    ----------
    resp : float64 array, (n_batch, K) or (0, K)
        Overwritten with r_nk; left alone when it has no rows.
    bound : float64 array, (n_batch,)
        Overwritten with the item's term of the ELBO, ``E ln p(x_n, z_n) - E ln q(z_n)``.
    """
    n_components, n = origins.shape
    block = np.empty((2 * n + 2 + n_components, BLOCK))
    x, y, log_sum, r = block[:n], block[n : 2 * n + 1], block[2 * n + 1], block[2 * n + 2 :]
    for first in range(0, batch.shape[0], BLOCK):
        size = load_block(items, batch, first, x)
        log_densities(x, expected, origins, y, r)
        normalise(r, size, log_sum, y[0])
        copy(log_sum[:size], bound[first:])
        if resp.shape[0] > 0:
            for i in range(size):
                for k in range(n_components):
                    resp[first + i, k] = r[k, i]
