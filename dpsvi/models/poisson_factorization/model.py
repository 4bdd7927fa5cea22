"""Poisson factorisation as the engine sees it, what its arrays stand for, and users given items."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from dpsvi.base import Model
from dpsvi.evaluation.completion import split_tokens
from dpsvi.families.recommender import entries, products
from dpsvi.kernels.hyper import pack
from dpsvi.kernels.jit import as_items
from dpsvi.kernels.poisson import FactorPrior, Options, infer, options_of
from dpsvi.models.poisson_factorization.local import local, read_items
from dpsvi.training.items import count
from dpsvi.training.state import State

LANES = 8  # float64 numbers in the widest vector register; rows start on a cache line
FLOAT = np.dtype(np.float64)
_MOST_SWEEPS, _LEAST_TOL = 100, 1e-3  # over a user whose factors are asked for


class Side(NamedTuple):
    """Prior of the factors of users, or of items."""

    shape: float  # a or c
    rate_shape: float  # a' or c'
    rate_mean: float  # b' or d'

    def of_factors(self, n_components) -> FactorPrior:
        """The same as the kernels take it."""
        top = self.rate_shape + n_components * self.shape
        return FactorPrior(self.shape, top, self.rate_shape / self.rate_mean)


DEFAULT_SIDE = Side(0.3, 0.3, 1.0)


def n_columns(n_components: int) -> int:
    """Columns of the parameters: components, and padding."""
    return -(-n_components // LANES) * LANES


def make_model(n_items, n_components, users: Side, items: Side, n_sweeps, tol) -> Model:
    """Poisson factorisation as a :class:`dpsvi.base.Model`.

    Parameters
    ----------
    n_items, n_components : int
    users, items : Side
        Priors.
    n_sweeps : int
        Most iterations over a user in one visit.
    tol : float
        Mean change of the shapes that ends them.
    """
    prior = np.full((n_items + 1, 1), items.shape, FLOAT)
    prior[-1] = 0.0
    sides = [side.of_factors(n_components) for side in (users, items)]
    hyper = pack(Options(n_components, n_sweeps, tol, *sides))
    return from_arrays((n_items + 1, n_columns(n_components)), prior, hyper)


def from_arrays(shape, prior, hyper) -> Model:
    """The model with these arrays of :func:`make_model`; errors if they are no such arrays."""
    return Model(
        name="poisson_factorization", shape=shape, prior=prior, hyper=hyper, local=local,
        scratch=partial(_scratch, shape), common_rows=shape[0], item_memory=shape[1],
        nonnegative=True, used_columns=options_of(hyper).n_components,
    )  # fmt: skip


def _scratch(shape, longest):
    return 5 * shape[1] + shape[0] - 1 + longest


class Posterior(NamedTuple):
    """q(beta, eta) in standard parameters, and what inference of users takes from it."""

    shape: np.ndarray  # s, (n_items, K)
    rates: np.ndarray  # E[eta], (n_items,)
    exposure: np.ndarray  # t, (columns,)
    basis: np.ndarray  # exp(E log beta), (n_items, columns)
    size: np.ndarray  # b = sum_i E[beta_i], (columns,)

    @property
    def rate(self):
        """Of beta, (n_items, K)."""
        return self.rates[:, None] + self.exposure[: self.shape.shape[1]]

    @property
    def mean(self):
        """E[beta], (n_items, K)."""
        return self.shape / self.rate


def read(state: State) -> Posterior:
    """The posterior that a state stands for."""
    options, rows = options_of(state.model.hyper), state.shared.rows
    n_items, columns = rows.shape[0] - 1, rows.shape[1]
    basis, rates = np.empty((n_items, columns)), np.empty(n_items)
    scratch, exposure, size = np.empty((3, columns))
    slot = np.arange(n_items + 1, dtype=np.int32)
    read_items(rows, state.scale, options, slot, basis, rates, scratch, exposure, size)
    shape = np.maximum(state.natural(), state.model.prior)[:-1, : options.n_components]
    return Posterior(shape, rates, exposure, basis, size)


def users_of(items, basis, size, options, share=1.0):
    """Q of the factors of users, given the items.

    Parameters
    ----------
    items : Items
        A `share` of each user's counts.
    basis : float64 array, (n_items, columns)
        exp(E log beta); 0 in columns beyond the components.
    size : float64 array, (columns,)
        sum_i E[beta_i]; 1 there.
    options : Options
    share : float

    Returns
    -------
    shape, rate : float64 arrays, (n_users, K)
    log_norm : float64 array, (n_users,)
        ``sum_i y_ui log sum_k exp(E log theta_uk + E log beta_ik)``.
    """
    n, n_users = options.n_components, count(items)
    options = options._replace(
        n_sweeps=max(options.n_sweeps, _MOST_SWEEPS), tol=min(options.tol, _LEAST_TOL)
    )
    shapes, exposure = np.empty((n_users, len(size))), share * size
    rates, log_norm = np.empty(n_users), np.empty(n_users)
    infer(basis, items, exposure, options, shapes, rates, log_norm)
    return shapes[:, :n], rates[:, None] + exposure[:n], log_norm


def log_likelihood(items, users, rated) -> float:
    """``sum_ui log Poisson(y_ui | users_u^T rated_i)`` over all users and items, in nats."""
    stored = items.value @ np.log(products(items, users, rated)) - gammaln(items.value + 1).sum()
    return float(stored - users.sum(axis=0) @ rated.sum(axis=0))


def halves(items):
    """Counts thinned in two: each goes to either half with probability 1/2, by a fixed seed."""
    return [entries(items, half > 0, half) for half in split_tokens(items.value)]


def completion(counts, factors, prior=DEFAULT_SIDE) -> float:
    """Held-out score of point estimates of item factors, from whatever tool they are.

    As :meth:`DPSVIPoissonFactorization.score`, but for the uncertainty of the items.

    Parameters
    ----------
    counts : csr_array of shape (n_users, n_items)
    factors : float64 array, (n_items, K), > 0
    prior : Side
        Of users.
    """
    n = factors.shape[1]
    columns = n_columns(n)
    basis, size = np.zeros((len(factors), columns)), np.ones(columns)
    basis[:, :n], size[:n] = factors, factors.sum(axis=0)
    side = prior.of_factors(n)
    options = Options(n, _MOST_SWEEPS, _LEAST_TOL, side, side)
    items = as_items(counts.indptr, counts.indices, counts.data, FLOAT)
    first, second = halves(items)
    shape, rate, _ = users_of(first, basis, size, options, share=0.5)
    return log_likelihood(second, shape / rate / 2, factors) / len(second.value)


def first_rows(n_items, n_components, n_users, n_counts, rng):
    """First value of ``lam - prior``: the counts shared out among items and components.

    They are shared evenly but for noise, and users and items get factors of one size.
    """
    columns = n_columns(n_components)
    rows = np.zeros((n_items + 1, columns))
    each = max(n_counts, 1.0) / (n_items * n_components)
    rows[:-1, :n_components] = each * rng.uniform(0.5, 1.5, (n_items, n_components))
    size = np.sqrt(max(n_counts, 1.0) / (n_users * n_items * n_components))
    rows[-1, :n_components] = n_users * size
    return rows
