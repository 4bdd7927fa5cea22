"""Probabilistic matrix factorisation (Lim, Teh 2007; paper, 7.4) by DPSVI.

    r_ui ~ N(mu + x_u^T v_i, 1 / tau)    for the ratings there are
    x_u ~ N(0, I / alpha_x),  v_i ~ N(0, I / alpha_v),  tau ~ Ga(a_0, b_0)

Users are local: q(x_u) = N(m_u, S_u).  With Omega_u the items that u rated, and s_ui = r_ui - mu,

    S_u^-1 = alpha_x I + E[tau] sum_{i in Omega_u} E[v_i v_i^T]
    m_u = E[tau] S_u sum_{i in Omega_u} s_ui E[v_i].

Row i of the engine's matrix holds the sums over users that item i needs, and the last row those of
tau, all without their prior:

    A_i = sum_u E[x_u x_u^T],   g_i = sum_u s_ui m_u;    n = sum_u |Omega_u|,   E = sum_ui e_ui
    q(v_i) = N(L_i^-1 E[tau] g_i, L_i^-1),  L_i = alpha_v I + E[tau] A_i,
    q(tau) = Ga(a_0 + n/2, b_0 + E/2),    e_ui = E[(s_ui - x_u^T v_i)^2].

E[tau] multiplies the sums when they are read, not when they are made.  A full batch at rate 1 is
then coordinate ascent in three blocks: all x given v and tau, tau given x and the v there were, and
all v given x and the new tau.
"""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import numpy as np
import scipy.sparse
from sklearn.utils.validation import validate_data

from dpsvi.base import Model
from dpsvi.checks import check_number
from dpsvi.engine_parameters import engine_parameters
from dpsvi.expfam import gamma
from dpsvi.family import count
from dpsvi.jit import inline_kernel, kernel
from dpsvi.kernels.fold import list_words
from dpsvi.kernels.normal import all_moments, moments, n_columns
from dpsvi.recommender import Recommender, as_csr, entries
from dpsvi.svi import State

FLOAT = np.dtype(np.float64)
N_COMPONENTS, MEAN, USERS, ITEMS, SHAPE, RATE = range(6)  # positions in hyper

# --- the local step ---------------------------------------------------------------------------


@inline_kernel
def explain(items, u, places, expected, hyper, noise, natural, matrix, inverse, out):
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
    n = int(hyper[N_COMPONENTS])
    start, first = n * (n + 1) // 2, items.offsets[u]
    squares = 0.0
    for c in range(natural.shape[0]):
        natural[c] = 0.0
    for j in range(places.shape[0]):
        row, rating = expected[places[j]], items.value[first + j] - hyper[MEAN]
        squares += rating * rating
        for c in range(start):
            natural[c] += row[c]
        for c in range(start, natural.shape[0]):
            natural[c] += rating * row[c]
    log_det = moments(natural, hyper[USERS], noise, n, matrix, inverse, out)
    explained = 0.0
    for c in range(start):
        explained -= out[c] * natural[c]
    for c in range(start, natural.shape[0]):
        explained += 2.0 * out[c] * natural[c]
    return log_det, max(squares - explained, 0.0)


@inline_kernel
def expected_noise(rows, scale, hyper):
    """E[tau]."""
    last = rows[rows.shape[0] - 1]
    return (hyper[SHAPE] + 0.5 * scale * last[0]) / (hyper[RATE] + 0.5 * scale * last[1])


def local(shared, scale, hyper, items, batch, work):
    """See :class:`dpsvi.base.Model`; items are users."""
    rows = shared.rows
    n, columns = int(hyper[N_COMPONENTS]), rows.shape[1]
    start = n * (n + 1) // 2
    matrix = work.scratch[: n * n].reshape((n, n))
    inverse = work.scratch[n * n : 2 * n * n].reshape((n, n))
    natural = work.scratch[2 * n * n : 2 * n * n + columns]
    user = work.scratch[2 * n * n + columns : 2 * n * n + 2 * columns]

    n_touched = list_words(items, batch, work)
    work.touched[n_touched] = rows.shape[0] - 1
    noise = expected_noise(rows, scale, hyper)
    for i in range(n_touched):
        row = rows[work.touched[i]]
        moments(row, hyper[ITEMS], noise * scale, n, matrix, inverse, work.expected[i])
    for u in batch:
        first, last = items.offsets[u], items.offsets[u + 1]
        places = work.ids[: last - first]
        for j in range(last - first):
            places[j] = work.slot[items.index[first + j]]
        _, errors = explain(
            items, u, places, work.expected, hyper, noise, natural, matrix, inverse, user
        )
        work.stats[n_touched, 0] += last - first
        work.stats[n_touched, 1] += errors
        for j in range(last - first):
            stats, rating = work.stats[places[j]], items.value[first + j] - hyper[MEAN]
            for c in range(start):
                stats[c] += user[c]
            for c in range(start, columns):
                stats[c] += rating * user[c]
    for i in range(n_touched):
        work.slot[work.touched[i]] = -1
    return n_touched + 1


@kernel
def infer(items, expected, hyper, noise, users, log_dets, errors):
    """Factors of all users with the items held fixed; each on its own.

    Parameters
    ----------
    items : Items
    expected : float64 array, (n_items, n_columns)
        svec(E[v v^T]) | E[v].
    hyper : float64 array
    noise : float
        E[tau].
    users : float64 array, (n_users, n_columns)
        Written: svec(E[x x^T]) | E[x].
    log_dets, errors : float64 arrays, (n_users,)
        Written: ln det S_u^-1 and sum_i e_ui.
    """
    n = int(hyper[N_COMPONENTS])
    matrix, inverse, natural = np.empty((n, n)), np.empty((n, n)), np.empty(users.shape[1])
    for u in range(users.shape[0]):
        places = items.index[items.offsets[u] : items.offsets[u + 1]]
        log_dets[u], errors[u] = explain(
            items, u, places, expected, hyper, noise, natural, matrix, inverse, users[u]
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


# --- the model --------------------------------------------------------------------------------


class Prior(NamedTuple):
    """What does not change while the model is fitted."""

    n_components: int
    mean: float  # mu
    user_precision: float  # alpha_x
    item_precision: float  # alpha_v
    noise_shape: float  # a_0
    noise_rate: float  # b_0


def make_model(n_items, prior: Prior) -> Model:
    """Matrix factorisation as a :class:`dpsvi.base.Model`."""
    columns = n_columns(prior.n_components)
    return from_arrays((n_items + 1, columns), np.zeros((1, 1)), np.array(prior, dtype=FLOAT))


def from_arrays(shape, prior, hyper) -> Model:
    """The model with these arrays of :func:`make_model`."""
    return Model(
        name="matrix_factorization", shape=shape, prior=prior, hyper=hyper, local=local,
        scratch=partial(_scratch, int(hyper[N_COMPONENTS])), common_rows=1,
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
    prior, rows = Prior(*state.model.hyper), state.natural()
    shape, rate = prior.noise_shape + rows[-1, 0] / 2, prior.noise_rate + rows[-1, 1] / 2
    expected, log_dets = np.empty((len(rows) - 1, rows.shape[1])), np.empty(len(rows) - 1)
    n = int(prior.n_components)
    all_moments(rows[:-1], prior.item_precision, shape / rate, n, expected, log_dets)
    return Posterior(expected, log_dets, shape, rate)


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
    n = int(prior.n_components)
    rows = np.zeros((n_items + 1, n_columns(n)))
    each = max(n_ratings, 1.0) / n_items
    spread = math.sqrt(0.1 * variance * prior.user_precision / n)
    rows[:-1, np.arange(1, n + 1) * np.arange(2, n + 2) // 2 - 1] = each / prior.user_precision
    noise = rng.normal(size=(n_items, n))
    rows[:-1, n * (n + 1) // 2 :] = each / prior.user_precision * spread * noise
    rows[-1, :2] = n_ratings, n_ratings * variance
    return rows


# --- the estimator ----------------------------------------------------------------------------


@engine_parameters("users")
class DPSVIMatrixFactorization(Recommender):
    """Probabilistic matrix factorisation by (asynchronous) stochastic variational inference.

    Real-valued ratings with normal noise of unknown size.  In a sparse matrix every *stored* value
    is a rating, 0 included, and what is not stored is unknown; in a dense one NaN is unknown.

    Parameters
    ----------
    n_components : int, default=10
        Number of factors K.
    user_precision : float, default=1.0
        alpha_x > 0 of the prior of the users' factors.
    item_precision : float or None, default=None
        alpha_v > 0 of that of the items.  None: such that in the prior the variance of x^T v is
        that of the ratings; for `partial_fit`, of its first data.
    noise_shape : float, default=1.0
        a_0 > 0 of the prior of tau.
    noise_rate : float or None, default=None
        b_0 > 0.  None: `noise_shape` times the variance of the ratings.
    {engine}

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features_in_)
        E[v], the factors of the items.
    mean_ : float
        mu, the mean of the ratings, of its first data for `partial_fit`.
    noise_variance_ : float
        1 / E[tau].
    {fitted}

    Notes
    -----
    `score` puts each rating into either half with probability 1/2.  x is inferred from one half;
    the mean of ``log N(r_ui | mu + E[x_u^T v_i], 1 / E[tau] + Var[x_u^T v_i])`` over the other is
    the score.

    A step costs by the ratings of its batch, times K^2, and by its users and items, times K^3.

    References
    ----------
    Mohamad, Alamri, Bouchachia (2022), Machine Learning, doi:10.1007/s10994-022-06243-3.
    Lim, Teh (2007), KDD Cup and Workshop.  Salakhutdinov, Mnih (2008), NIPS 20.

    Examples
    --------
    >>> import numpy as np
    >>> R = np.outer([1.0, -1.0, 2.0] * 20, [1.0, 2.0, -1.0, 0.5])
    >>> R[0, 1] = np.nan
    >>> model = DPSVIMatrixFactorization(n_components=1, random_state=0).fit(R)
    >>> model.predict_ratings(R[:1]).round()[0, 1]
    np.float64(2.0)
    """

    def __init__(
        self, n_components=10, *, user_precision=1.0, item_precision=None, noise_shape=1.0,
        noise_rate=None,
    ):  # fmt: skip
        self.n_components = n_components
        self.user_precision = user_precision
        self.item_precision = item_precision
        self.noise_shape = noise_shape
        self.noise_rate = noise_rate

    # --- fitting ------------------------------------------------------------------------------

    _kind = "matrix_factorization"
    _model = staticmethod(from_arrays)

    def check_params(self) -> None:
        """Raise ValueError or TypeError for the first parameter that is not allowed."""
        super().check_params()
        check_number("n_components", self.n_components, low=1, high=1000, integer=True)
        for name in ("user_precision", "noise_shape"):
            check_number(name, getattr(self, name), low=0, open_low=True)
        self._check_positive("item_precision", "noise_rate")

    def _ratings(self, X, reset):
        X = validate_data(
            self, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32],
            ensure_all_finite="allow-nan",
        )  # fmt: skip
        if reset:
            self._dtype = str(X.dtype)
        return rated(X)

    def _start(self, items, total, rng) -> State:
        n, ratings = self.n_components, items.value
        with np.errstate(over="ignore"):
            mean, variance = (ratings.mean(), ratings.var()) if len(ratings) else (0.0, 1.0)
        if not math.isfinite(variance):
            raise ValueError(f"squares of ratings overflow, the largest is {ratings.max():g}")
        # Constant ratings have no scale of their own but their size.
        variance = variance if variance > 1e-12 * mean**2 else max(abs(mean), 1.0) ** 2
        alpha, rate = self.item_precision, self.noise_rate
        prior = Prior(
            n, mean, self.user_precision,
            n / (self.user_precision * variance) if alpha is None else alpha,
            self.noise_shape, self.noise_shape * variance if rate is None else rate,
        )  # fmt: skip
        n_ratings = len(ratings) * (total / count(items))
        rows = first_rows(prior, self.n_features_in_, n_ratings, variance, rng)
        return State.resume(make_model(self.n_features_in_, prior), rows, self._n_threads)

    # --- the fitted model ---------------------------------------------------------------------

    @property
    def _offset(self):
        return self.mean_

    def _fitted(self, state) -> dict:
        q, n = read(state), int(state.model.hyper[N_COMPONENTS])
        return {
            "components_": q.expected[:, -n:].T.astype(self._dtype),
            "mean_": float(state.model.hyper[MEAN]),
            "noise_variance_": float(1 / q.noise),
        }

    def _infer(self, q: Posterior, hyper, items):
        n_users = count(items)
        users = np.empty((n_users, q.expected.shape[1]))
        log_dets, errors = np.empty(n_users), np.empty(n_users)
        infer(items, q.expected, hyper, q.noise, users, log_dets, errors)
        return users, log_dets, errors

    def _users(self, state, items):
        users, _, _ = self._infer(read(state), state.model.hyper, items)
        return users[:, -int(state.model.hyper[N_COMPONENTS]) :]

    def _bounds(self, state, items):
        q, hyper = read(state), state.model.hyper
        users, log_dets, errors = self._infer(q, hyper, items)
        constant = gamma.expected_log(q.noise_shape, q.noise_rate) - math.log(2 * math.pi)
        expected = 0.5 * (np.diff(items.offsets) * constant - q.noise * errors)
        return expected - normal_kl(users, log_dets, hyper[USERS], int(hyper[N_COMPONENTS]))

    def _divergence(self, state) -> float:
        q, prior = read(state), Prior(*state.model.hyper)
        n = int(prior.n_components)
        factors = normal_kl(q.expected, q.log_dets, prior.item_precision, n)
        noise = gamma.kl(q.noise_shape, q.noise_rate, prior.noise_shape, prior.noise_rate)
        return float(factors.sum() + noise)

    def _split(self, items):
        first = np.random.default_rng(0).random(len(items.value)) < 0.5
        return entries(items, first, items.value), entries(items, ~first, items.value)

    def _log_likelihood(self, state, first, second) -> float:
        q, hyper = read(state), state.model.hyper
        users, _, _ = self._infer(q, hyper, first)
        mean, variance = np.empty((2, len(second.value)))
        predict(second, users, q.expected, int(hyper[N_COMPONENTS]), mean, variance)
        variance += 1 / q.noise
        residual = second.value - hyper[MEAN] - mean
        return float(-0.5 * (np.log(2 * np.pi * variance) + residual**2 / variance).sum())

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def rated(X):
    """What is known of X as csr_array: stored values, or all of a dense matrix, but no NaN."""
    if not scipy.sparse.issparse(X):
        known = ~np.isnan(X)
        offsets = np.concatenate([[0], known.sum(axis=1).cumsum()])
        return scipy.sparse.csr_array((X[known], np.nonzero(known)[1], offsets), X.shape)
    ratings = as_csr(X)
    known = ~np.isnan(ratings.data)
    if known.all():
        return ratings
    offsets = np.concatenate([[0], np.cumsum(known)])[ratings.indptr]
    return scipy.sparse.csr_array((ratings.data[known], ratings.indices[known], offsets), X.shape)


ESTIMATOR = DPSVIMatrixFactorization
