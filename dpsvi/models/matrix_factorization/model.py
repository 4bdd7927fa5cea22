"""Matrix factorisation as the engine sees it: its arrays, first values, what they stand for."""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import numpy as np

from dpsvi.base import Model
from dpsvi.kernels.hyper import pack
from dpsvi.kernels.normal import all_moments, draw_all, n_columns
from dpsvi.models.matrix_factorization.local import Prior, local, prior_of
from dpsvi.training.state import State


def make_model(n_items, prior: Prior) -> Model:
    """Matrix factorisation as a :class:`dpsvi.base.Model`."""
    columns = n_columns(prior.n_components)
    return from_arrays((n_items + 1, columns), np.zeros((1, 1)), pack(prior))


def from_arrays(shape, prior, hyper) -> Model:
    """The model with these arrays of :func:`make_model`; errors if they are no such arrays."""
    return Model(
        name="matrix_factorization", shape=shape, prior=prior, hyper=hyper, local=local,
        scratch=partial(_scratch, prior_of(hyper).n_components), common_rows=1,
    )  # fmt: skip


def _scratch(n, longest):
    return 2 * n * n + 2 * n_columns(n)


class Posterior(NamedTuple):
    """q(v, tau) in expected values."""

    expected: np.ndarray  # svec(E[v v^T]) | E[v], (n_items, columns)
    log_dets: np.ndarray  # ln det L_i, (n_items,)
    noise_shape: float
    noise_rate: float

    @property
    def noise(self):
        """E[tau]."""
        return self.noise_shape / self.noise_rate


def read(state: State) -> Posterior:
    """The posterior that a state stands for."""
    prior, rows = prior_of(state.model.hyper), state.natural()
    shape, rate = prior.noise_shape + rows[-1, 0] / 2, prior.noise_rate + rows[-1, 1] / 2
    expected, log_dets = np.empty((len(rows) - 1, rows.shape[1])), np.empty(len(rows) - 1)
    n = prior.n_components
    all_moments(rows[:-1], prior.item_precision, shape / rate, n, expected, log_dets)
    return Posterior(expected, log_dets, shape, rate)


def draw(state: State, n_samples, rng) -> dict:
    """Draws of the factors, (n_samples, K, n_items), and of 1 / tau, (n_samples,)."""
    prior, rows, q = prior_of(state.model.hyper), state.natural(), read(state)
    factors = rng.standard_normal((n_samples, prior.n_components, len(rows) - 1))
    draw_all(rows[:-1], prior.item_precision, q.noise, prior.n_components, factors)
    noise = rng.gamma(q.noise_shape, 1 / q.noise_rate, n_samples)
    return {"components": factors, "noise_variance": 1 / noise}


def normal_kl(moments_, log_dets, precision, n):
    """KL(N(m, P^-1) || N(0, I / precision)) in nats, one for each row.

    Parameters
    ----------
    moments_ : float64 array, (n_rows, n_columns)
        svec(E[x x^T]) | E[x].
    log_dets : float64 array, (n_rows,)
        ln det P.
    precision : float
    n : int
    """
    diagonal = np.arange(1, n + 1) * np.arange(2, n + 2) // 2 - 1
    trace = moments_[:, diagonal].sum(axis=1)
    return 0.5 * (precision * trace - n - n * math.log(precision) + log_dets)


def first_rows(prior: Prior, n_items, n_ratings, variance, rng):
    """First value of the sums: as if users with factors from the prior had explained a tenth."""
    n = prior.n_components
    rows = np.zeros((n_items + 1, n_columns(n)))
    each = max(n_ratings, 1.0) / n_items
    spread = math.sqrt(0.1 * variance * prior.user_precision / n)
    rows[:-1, np.arange(1, n + 1) * np.arange(2, n + 2) // 2 - 1] = each / prior.user_precision
    noise = rng.normal(size=(n_items, n))
    rows[:-1, n * (n + 1) // 2 :] = each / prior.user_precision * spread * noise
    rows[-1, :2] = n_ratings, n_ratings * variance
    return rows
