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

from functools import partial

import numpy as np

from dpsvi.base import Model
from dpsvi.expfam.gaussian import (
    BLOCK,
    add_stats,
    load_block,
    log_densities,
    mirror,
    normalise,
)
from dpsvi.families.mixtures.components import Components, Prior
from dpsvi.kernels.jit import inline_kernel, kernel

_HEAD = 5  # K, D, axes of a covariance, kappa_0, nu_0


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
    head = [*origins.shape, prior.covariance.ndim, prior.mean_precision, prior.degrees_of_freedom]
    hyper = [
        head, prior.mean, prior.floor(), prior.covariance.ravel(), origins.ravel(),
        natural_prior.ravel(), weights,
    ]  # fmt: skip
    return from_arrays(name, local, natural_prior.shape, natural_prior, np.concatenate(hyper))


def from_arrays(name, local, shape, prior, hyper) -> Model:
    """The model with these arrays of :func:`make_model`."""
    return Model(
        name=name, shape=shape, prior=prior, hyper=hyper, local=local,
        scratch=partial(_scratch, int(hyper[0])),
    )  # fmt: skip


def _scratch(n_components, n):
    return (2 * n + 2 + n_components) * BLOCK


@inline_kernel
def unpack(hyper):
    """Floor (D,), origins (K, D), prior (K, columns) and what is left, of the weights' prior."""
    n_components, n = int(hyper[0]), int(hyper[1])
    size = n if hyper[2] == 1.0 else n * n
    columns = size + n + 3
    start = _HEAD + 2 * n + size
    end = start + n_components * n
    floor = hyper[_HEAD + n : _HEAD + 2 * n]
    origins = hyper[start:end].reshape((n_components, n))
    prior = hyper[end : end + n_components * columns].reshape((n_components, columns))
    return floor, origins, prior, hyper[end + n_components * columns :]


def component_prior(hyper) -> Prior:
    """The prior of the components that `hyper` holds."""
    n, n_axes = int(hyper[1]), int(hyper[2])
    start = _HEAD + 2 * n
    covariance = hyper[start : start + n**n_axes].reshape([n] * n_axes)
    return Prior(float(hyper[3]), hyper[_HEAD : _HEAD + n], float(hyper[4]), covariance)


def posterior(state, expect) -> Components:
    """What a :class:`dpsvi.training.state.State` says of the components.

    `expect` is the model's kernel.
    """
    hyper = state.model.hyper
    _, origins, prior, _ = unpack(hyper)
    expected = np.empty(prior.shape)
    expect(state.shared.totals.sum(axis=0), state.scale, hyper, expected)
    return Components(expected, origins, int(hyper[2]))


def counts(state):
    """The first number of each component, (K,)."""
    return state.natural().reshape(int(state.model.hyper[0]), -1)[:, 0]


@inline_kernel
def natural(sums, scale, prior, expected):
    """Fill `expected`, (K, columns), with lam; `sums` is (lam - prior) / scale in one vector."""
    for k in range(prior.shape[0]):
        for j in range(prior.shape[1]):
            expected[k, j] = prior[k, j] + scale * sums[k * prior.shape[1] + j]


@inline_kernel
def add_points(items, batch, expected, origins, work):
    """Add the statistics of the points in `batch` to ``work.stats``: (44) and its sums.

    `expected`, (K, columns), holds the components in standard form behind what does not depend on
    x_n in ln r_nk.  Returns the number of rows touched.
    """
    n_components, n = origins.shape
    stats = work.stats[0].reshape(expected.shape)
    block = work.scratch.reshape((2 * n + 2 + n_components, BLOCK))
    x, y, bound, resp = block[:n], block[n : 2 * n + 1], block[2 * n + 1], block[2 * n + 2 :]
    for first in range(0, batch.shape[0], BLOCK):
        size = load_block(items, batch, first, x)
        log_densities(x, expected, origins, y, resp)
        normalise(resp, size, bound, y[0])
        add_stats(x, resp, origins, y, stats)
    mirror(stats, n)
    work.touched[0] = 0
    return 1


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
        bound[first : first + size] = log_sum[:size]
        if resp.shape[0] > 0:
            for i in range(size):
                for k in range(n_components):
                    resp[first + i, k] = r[k, i]
