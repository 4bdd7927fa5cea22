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
from typing import NamedTuple

import numpy as np

from dpsvi.base import Model
from dpsvi.expfam import by_dimension
from dpsvi.expfam.gaussian import BLOCK, add_stats, log_densities, mirror
from dpsvi.families.mixtures import incomplete
from dpsvi.families.mixtures.blocks import add_unvisited, load_block, normalise, to_changes, weigh
from dpsvi.families.mixtures.components import Components, Prior
from dpsvi.kernels.hyper import pack
from dpsvi.kernels.jit import copy, inline_kernel, kernel, naming_kernel


class Options(NamedTuple):
    """What a local step knows besides the components: ``Model.hyper``."""

    n_components: int  # K
    n_features: int  # D
    n_axes: int  # of a covariance: 1 if it is diagonal, else 2; 0: rows as in `by_dimension`
    mean_precision: float  # kappa_0
    degrees_of_freedom: float  # nu_0
    mean: np.ndarray  # m_0, (D,)
    floor: np.ndarray  # (D,)
    covariance: np.ndarray  # W_0^-1, in one vector
    origins: np.ndarray  # (K, D)
    prior: np.ndarray  # of the components in natural form, (K, columns)
    weights: np.ndarray  # what else the local step has to know of the weights' prior


@naming_kernel
def options_of(hyper):
    """Name what :func:`dpsvi.kernels.hyper.pack` made of :class:`Options`."""
    n_components, n, n_axes = int(hyper[0]), int(hyper[1]), int(hyper[2])
    size = n if n_axes < 2 else n * n
    columns = size + n + 3 if n_axes > 0 else 5 * n + 1
    rest = hyper[5 + 2 * n + size :]
    origins, rest = rest[: n_components * n], rest[n_components * n :]
    return Options(
        n_components, n, max(n_axes, 1), hyper[3], hyper[4], hyper[5 : 5 + n],
        hyper[5 + n : 5 + 2 * n], hyper[5 + 2 * n : 5 + 2 * n + size],
        origins.reshape((n_components, n)),
        rest[: n_components * columns].reshape((n_components, columns)),
        rest[n_components * columns :],
    )  # fmt: skip


def make_model(name, steps, prior: Prior, origins, first, weights, gaps=False) -> Model:
    """A mixture as a :class:`dpsvi.base.Model`.

    Parameters
    ----------
    name : str
    steps : (callable, callable)
        Local steps of points, and of points with gaps: each calls :func:`natural`, fills the first
        number of each component with E ln pi_k, and goes on with
        :func:`dpsvi.families.mixtures.components.standardise` and :func:`add_points`, that of
        :mod:`dpsvi.families.mixtures.incomplete` for the second.
    prior : Prior
    origins : float64 array, (K, D)
        Where each component counts from.
    first : float
        The prior of every `counts`.
    weights : sequence of float
        What else `local` needs to know of the weights' prior.
    gaps : bool
        Whether coordinates of points may be missing.
    """
    rows, n_axes = prior.natural(origins, first), prior.covariance.ndim
    if gaps and n_axes == 1:
        rows, n_axes = by_dimension.spread(rows, origins.shape[1]), 0
    options = Options(
        *origins.shape, n_axes, prior.mean_precision, prior.degrees_of_freedom,
        prior.mean, prior.floor(), prior.covariance, origins, rows, weights,
    )  # fmt: skip
    return from_arrays(name, steps, (1, rows.size), rows.reshape(1, -1), pack(options), gaps)


def from_arrays(name, steps, shape, prior, hyper, gaps=False) -> Model:
    """The model with these arrays of :func:`make_model`; errors if they are no such arrays."""
    options = options_of(hyper)
    gaps = gaps or by_dimension.has_own_counts(options.prior, options.n_features)
    scratch = incomplete.scratch if gaps else _scratch
    return Model(
        name=name, shape=shape, prior=prior, hyper=hyper, local=steps[gaps],
        scratch=partial(scratch, options.n_components),
    )  # fmt: skip


def _scratch(n_components, n):
    return (2 * n + 2 + n_components) * BLOCK


def with_gaps(model: Model, learned, from_arrays):
    """The model for points with gaps, and ``lam - prior`` of `learned` as it counts there.

    `from_arrays` is :func:`from_arrays` with a name and steps.
    """
    options = options_of(model.hyper)
    n_components, n = options.origins.shape
    prior, hyper = model.prior, model.hyper
    if options.n_axes == 1 and not by_dimension.has_own_counts(options.prior, n):
        prior, learned = (
            by_dimension.spread(rows.reshape(n_components, -1), n).reshape(1, -1)
            for rows in (prior, learned)
        )
        hyper = pack(options._replace(n_axes=0, prior=prior))
    return from_arrays(prior.shape, prior, hyper, True), learned


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
            n_new += to_changes(memory, batch, first, size, resp)
        if weighted:
            weigh(items, batch, first, size, n, resp)
        add_stats(x, resp, origins, y, stats)
    mirror(stats, n)
    add_unvisited(memory, n_items, -n_new, stats)
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
        copy(log_sum[:size], bound[first:])
        if resp.shape[0] > 0:
            for i in range(size):
                for k in range(n_components):
                    resp[first + i, k] = r[k, i]
