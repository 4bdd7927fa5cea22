"""Hierarchical Poisson factorisation (Gopalan, Hofman, Blei 2015; paper, 7.4) by DPSVI.

    y_ui ~ Poisson(theta_u^T beta_i)
    theta_uk ~ Ga(a, xi_u),  xi_u ~ Ga(a', a'/b');    beta_ik ~ Ga(c, eta_i),  eta_i ~ Ga(c', c'/d')

Users are local.  The posterior of item i is ``q(beta_ik) = Ga(s_ik, E[eta_i] + t_k)`` with

    s_ik = c + sum_u y_ui phi_uik,        t_k = sum_u E[theta_uk],

both sums over users: so row i of the engine's matrix holds s_i, one row more, the last, holds t,
and that is all.  q(eta_i) needs no memory: given s_i and t it and the rates of q(beta_i) are best
at one root (:func:`dpsvi.kernels.poisson.solve_rate`), which is found whenever the row is read.  A
full batch at rate 1 thus is coordinate ascent in two blocks, all users, then all items.

The local step of a user is the same with the sides exchanged,

    phi_uik proportional to exp(E log theta_uk + E log beta_ik)        where y_ui > 0
    q(theta_uk) = Ga(a + sum_i y_ui phi_uik, E[xi_u] + b_k),    b_k = sum_i E[beta_ik].

The sum b is over *all* items, so that a step costs by the entries of its batch and, once, by the
size of the matrix.

A visit has few iterations: users who are explained to the end by components that mean nothing yet
commit to them, and the components follow.  Begun anew each time, few iterations leave users too
even for good; so a user goes on where the last visit ended (`Shared.item_memory`), and is exact
when the items are.  Workers of a cluster keep nothing, and begin evenly.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln
from sklearn.utils.validation import validate_data

from dpsvi.base import Model
from dpsvi.checks import check_number
from dpsvi.engine_parameters import engine_parameters
from dpsvi.evaluate import split_tokens
from dpsvi.expfam.digamma import exp_digamma
from dpsvi.expfam.gamma import hierarchy_kl
from dpsvi.family import count
from dpsvi.jit import as_items, kernel
from dpsvi.kernels.fold import add_outer, list_words
from dpsvi.kernels.poisson import (
    ITEMS,
    N_COMPONENTS,
    SWEEPS,
    TOL,
    USERS,
    explain,
    infer,
    solve_rate,
    start_even,
)
from dpsvi.recommender import Recommender, as_csr, entries, products
from dpsvi.svi import State

LANES = 8  # float64 numbers in the widest vector register; rows start on a cache line
FLOAT = np.dtype(np.float64)
_MOST_SWEEPS, _LEAST_TOL = 100, 1e-3  # over a user whose factors are asked for

# --- the local step ---------------------------------------------------------------------------


@kernel
def read_items(rows, scale, hyper, slot, expected, rates, shape, exposure, size):
    """One pass over all items: what the users of a step need to know of them.

    Parameters
    ----------
    slot : int32 array, (n_rows,)
        Where in `expected` the item is wanted, or -1.
    expected : float64 array, (n_slots, n_columns)
        Written: exp(E log beta) of those items.
    rates : float64 array, (n_items,)
        Written: E[eta].
    shape : float64 array, (n_columns,)
        Scratch.
    exposure, size : float64 arrays, (n_columns,)
        Written: t, and b.  Of columns that are no components 1, so that one can divide by them.
    """
    n, n_columns, n_items = int(hyper[N_COMPONENTS]), rows.shape[1], rows.shape[0] - 1
    prior, top, base = hyper[ITEMS], hyper[ITEMS + 1], hyper[ITEMS + 2]
    for k in range(n_columns):
        exposure[k] = scale * rows[n_items, k] if k < n else 1.0
        size[k] = 0.0
        shape[k] = 0.0
    for i in range(n_items):
        row = rows[i]
        for k in range(n):
            shape[k] = prior + scale * row[k]
        e = rates[i] = solve_rate(shape, exposure, top, base)
        for k in range(n_columns):
            size[k] += shape[k] / (e + exposure[k])
        if slot[i] >= 0:
            basis = expected[slot[i]]
            for k in range(n):
                basis[k] = exp_digamma(shape[k]) / (e + exposure[k])
            for k in range(n, n_columns):
                basis[k] = 0.0
    for k in range(n, n_columns):
        size[k] = 1.0


def local(shared, scale, hyper, items, batch, work):
    """See :class:`dpsvi.base.Model`; items are users."""
    n_components, n_columns = int(hyper[N_COMPONENTS]), shared.rows.shape[1]
    last, warm = shared.rows.shape[0] - 1, shared.item_memory.shape[0] > 0
    vectors = work.scratch[: 5 * n_columns].reshape((5, n_columns))
    # Indexed, not unpacked: numba does not see that unpacked rows are contiguous.
    shape, exposure, size = vectors[0], vectors[1], vectors[2]
    weight, total = vectors[3], vectors[4]
    rates = work.scratch[5 * n_columns : 5 * n_columns + last]
    ratios = work.scratch[5 * n_columns + last :]

    n = list_words(items, batch, work)
    read_items(shared.rows, scale, hyper, work.slot, work.expected, rates, shape, exposure, size)
    work.touched[n] = last
    weight[:] = 0.0
    for u in batch:
        start, stop = items.offsets[u], items.offsets[u + 1]
        ids, counts = work.ids[: stop - start], items.value[start:stop]
        ratio = ratios[: stop - start]
        for i in range(stop - start):
            ids[i] = work.slot[items.index[start + i]]
        if warm and shared.item_memory[u, 0] > 0:
            shape[:] = shared.item_memory[u]
        else:
            start_even(counts, hyper, shape)
        e = explain(work.expected, ids, counts, size, hyper, shape, weight, total, ratio)
        if warm:
            shared.item_memory[u] = shape
        add_outer(work.stats, ids, ratio, weight)
        for k in range(n_components):
            work.stats[n, k] += shape[k] / (e + size[k])
    for i in range(n):
        basis, stats = work.expected[i], work.stats[i]
        for k in range(n_columns):
            stats[k] *= basis[k]
        work.slot[work.touched[i]] = -1
    return n + 1


# --- the model --------------------------------------------------------------------------------


class Side(NamedTuple):
    """Prior of the factors of users, or of items."""

    shape: float  # a or c
    rate_shape: float  # a' or c'
    rate_mean: float  # b' or d'

    @property
    def base(self):
        """Rate of the prior of the rates, a'/b' or c'/d'."""
        return self.rate_shape / self.rate_mean

    def top(self, n_components):
        """Shape of the posterior of the rates."""
        return self.rate_shape + n_components * self.shape


DEFAULT_SIDE = Side(0.3, 0.3, 1.0)


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
    columns = -(-n_components // LANES) * LANES
    prior = np.full((n_items + 1, 1), items.shape, FLOAT)
    prior[-1] = 0.0
    hyper = pack(n_components, n_sweeps, tol, users, items)
    return from_arrays((n_items + 1, columns), prior, hyper)


def pack(n_components, n_sweeps, tol, *sides: Side):
    """The `hyper` of a model."""
    numbers = [(side.shape, side.top(n_components), side.base) for side in sides]
    return np.concatenate([[n_components, n_sweeps, tol], *numbers])


def from_arrays(shape, prior, hyper) -> Model:
    """The model with these arrays of :func:`make_model`."""
    return Model(
        name="poisson_factorization", shape=shape, prior=prior, hyper=hyper, local=local,
        scratch=partial(_scratch, shape), common_rows=shape[0], item_memory=shape[1],
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
    hyper, rows = state.model.hyper, state.shared.rows
    n_items, columns = rows.shape[0] - 1, rows.shape[1]
    n = int(hyper[N_COMPONENTS])
    basis, rates = np.empty((n_items, columns)), np.empty(n_items)
    scratch, exposure, size = np.empty((3, columns))
    slot = np.arange(n_items + 1, dtype=np.int32)
    read_items(rows, state.scale, hyper, slot, basis, rates, scratch, exposure, size)
    return Posterior(state.natural()[:-1, :n], rates, exposure, basis, size)


def users_of(items, basis, size, hyper, share=1.0):
    """Q of the factors of users, given the items.

    Parameters
    ----------
    items : Items
        A `share` of each user's counts.
    basis : float64 array, (n_items, columns)
        exp(E log beta); 0 in columns beyond the components.
    size : float64 array, (columns,)
        sum_i E[beta_i]; 1 there.
    hyper : float64 array
    share : float

    Returns
    -------
    shape, rate : float64 arrays, (n_users, K)
    log_norm : float64 array, (n_users,)
        ``sum_i y_ui log sum_k exp(E log theta_uk + E log beta_ik)``.
    """
    n, n_users = int(hyper[N_COMPONENTS]), count(items)
    hyper = hyper.copy()
    hyper[SWEEPS], hyper[TOL] = max(hyper[SWEEPS], _MOST_SWEEPS), min(hyper[TOL], _LEAST_TOL)
    shapes, exposure = np.empty((n_users, len(size))), share * size
    rates, log_norm = np.empty(n_users), np.empty(n_users)
    infer(basis, items, exposure, hyper, shapes, rates, log_norm)
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
    columns = -(-n // LANES) * LANES
    basis, size = np.zeros((len(factors), columns)), np.ones(columns)
    basis[:, :n], size[:n] = factors, factors.sum(axis=0)
    hyper = pack(n, _MOST_SWEEPS, _LEAST_TOL, prior, prior)
    items = as_items(counts.indptr, counts.indices, counts.data, FLOAT)
    first, second = halves(items)
    shape, rate, _ = users_of(first, basis, size, hyper, share=0.5)
    return log_likelihood(second, shape / rate / 2, factors) / len(second.value)


def first_rows(n_items, n_components, n_users, n_counts, rng):
    """First value of ``lam - prior``: the counts shared out among items and components.

    They are shared evenly but for noise, and users and items get factors of one size.
    """
    columns = -(-n_components // LANES) * LANES
    rows = np.zeros((n_items + 1, columns))
    each = max(n_counts, 1.0) / (n_items * n_components)
    rows[:-1, :n_components] = each * rng.uniform(0.5, 1.5, (n_items, n_components))
    size = np.sqrt(max(n_counts, 1.0) / (n_users * n_items * n_components))
    rows[-1, :n_components] = n_users * size
    return rows


# --- the estimator ----------------------------------------------------------------------------


@engine_parameters("users")
class DPSVIPoissonFactorization(Recommender):
    """Hierarchical Poisson factorisation by (asynchronous) stochastic variational inference.

    Counts or implicit feedback of users and items.  What is not stored, or 0, is a count of 0 and
    as much data as the others; it costs nothing.

    Parameters
    ----------
    n_components : int, default=10
        Number of factors K.
    user_shape, item_shape : float, default=0.3
        Shapes a and c >= 0.01 of the gamma priors of the factors; small ones make them sparse.
    user_rate_shape, item_rate_shape : float, default=0.3
        Shapes a' and c' > 0 of the gamma priors of their rates, one for each user and item.
    user_rate_mean, item_rate_mean : float, default=1.0
        Means b' and d' > 0 of these.
    max_user_iter : int, default=5
        Most inner iterations on a user in a step.  Few are faster *and* end in a better optimum,
        as users do not settle before items have.  A user goes on where the last visit ended, which
        takes 8 bytes a component; with the engines ``"mpi"`` and ``"simulated"``, which keep no
        users, every visit begins anew.  `transform` and `score` iterate longer.
    user_tol : float, default=0.01
        Mean change of the shapes of a user's factors that ends them.
    {engine}

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features_in_)
        E[beta], the factors of the items.
    item_rates_ : ndarray of shape (n_features_in_,)
        E[eta]; small for popular items.
    {fitted}

    Notes
    -----
    `score` thins the counts: each goes to either half with probability 1/2, and thinned Poisson
    counts are independent given the factors.  theta is inferred from one half, and
    ``sum_ui log Poisson(y_ui | E[theta_u]^T E[beta_i] / 2)`` of the other, zeros included, is
    divided by the number of its entries that are not 0.

    A step costs by the entries of its batch and by the size of the matrix of item factors; with
    many items and short users take a larger `batch_size`.

    Different seeds end in different optima: four of them on nyt, with K = 20 and 30 passes, scored
    from -5.327 to -5.350, nearly in the order of their bounds, by which `n_init` chooses.  There,
    with 29 steps a pass, batches of 128 did better: from -5.324 to -5.330.

    References
    ----------
    Mohamad, Alamri, Bouchachia (2022), Machine Learning, doi:10.1007/s10994-022-06243-3.
    Gopalan, Hofman, Blei (2015), Scalable recommendation with hierarchical Poisson factorization,
    UAI.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.kron(np.eye(2, dtype=int), np.ones((20, 6), dtype=int))
    >>> X[0, 5] = 0
    >>> model = DPSVIPoissonFactorization(n_components=2, random_state=0).fit(X)
    >>> items, scores = model.recommend(X[:1], n=1)
    >>> items
    array([[5]])
    """

    def __init__(
        self, n_components=10, *, user_shape=0.3, item_shape=0.3, user_rate_shape=0.3,
        item_rate_shape=0.3, user_rate_mean=1.0, item_rate_mean=1.0, max_user_iter=5,
        user_tol=1e-2,
    ):  # fmt: skip
        self.n_components = n_components
        self.user_shape = user_shape
        self.item_shape = item_shape
        self.user_rate_shape = user_rate_shape
        self.item_rate_shape = item_rate_shape
        self.user_rate_mean = user_rate_mean
        self.item_rate_mean = item_rate_mean
        self.max_user_iter = max_user_iter
        self.user_tol = user_tol

    # --- fitting ------------------------------------------------------------------------------

    _kind = "poisson_factorization"
    _model = staticmethod(from_arrays)

    def check_params(self) -> None:
        """Raise ValueError or TypeError for the first parameter that is not allowed."""
        super().check_params()
        check_number("n_components", self.n_components, low=1, high=65_535, integer=True)
        for name in ("user_shape", "item_shape"):  # exp(psi(x)) of less is no number
            check_number(name, getattr(self, name), low=0.01)
        for name in ("user_rate_shape", "item_rate_shape", "user_rate_mean", "item_rate_mean"):
            check_number(name, getattr(self, name), low=0, open_low=True)
        check_number("max_user_iter", self.max_user_iter, low=1, integer=True)
        check_number("user_tol", self.user_tol, low=0)

    def _ratings(self, X, reset):
        X = validate_data(
            self, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32],
            ensure_non_negative=True,
        )  # fmt: skip
        if reset:
            self._dtype = str(X.dtype)
        counts = as_csr(X)
        if not counts.data.all():
            counts = counts.copy()
            counts.eliminate_zeros()
        return counts

    def _start(self, items, total, rng) -> State:
        users = Side(self.user_shape, self.user_rate_shape, self.user_rate_mean)
        rated = Side(self.item_shape, self.item_rate_shape, self.item_rate_mean)
        n, n_items = self.n_components, self.n_features_in_
        model = make_model(n_items, n, users, rated, self.max_user_iter, self.user_tol)
        n_counts = items.value.sum() * (total / count(items))
        rows = first_rows(n_items, n, total, n_counts, rng)
        return State.resume(model, rows, self._n_threads, self._n_kept(items))

    # --- the fitted model ---------------------------------------------------------------------

    def _fitted(self, state) -> dict:
        q = read(state)
        return {
            "components_": q.mean.T.astype(self._dtype),
            "item_rates_": q.rates.astype(self._dtype),
        }

    def _users(self, state, items):
        q = read(state)
        shape, rate, _ = users_of(items, q.basis, q.size, state.model.hyper)
        return shape / rate

    def _bounds(self, state, items):
        q, hyper = read(state), state.model.hyper
        shape, rate, log_norm = users_of(items, q.basis, q.size, hyper)
        theta = shape / rate
        constants = np.concatenate([[0.0], np.cumsum(gammaln(items.value + 1))])[items.offsets]
        expected = log_norm - np.diff(constants) - theta @ q.size[: theta.shape[1]]
        return expected - _side_kl(shape, rate, hyper[USERS:ITEMS])

    def _divergence(self, state) -> float:
        q = read(state)
        return float(_side_kl(q.shape, q.rate, state.model.hyper[ITEMS:]).sum())

    def _split(self, items):
        return halves(items)

    def _log_likelihood(self, state, first, second) -> float:
        q = read(state)
        shape, rate, _ = users_of(first, q.basis, q.size, state.model.hyper, share=0.5)
        return log_likelihood(second, shape / rate / 2, q.mean)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags


def _side_kl(shape, rate, prior):
    """KL of the rows of one side and of their rates, given that side's part of hyper; (n,)."""
    shape0, top, base = prior
    top_rate = base + (shape / rate).sum(axis=1)
    return hierarchy_kl(shape, rate, shape0, top, top_rate, top - shape.shape[1] * shape0, base)


ESTIMATOR = DPSVIPoissonFactorization
