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
from typing import Any, Unpack

import numpy as np
import scipy.sparse
from sklearn.utils.validation import validate_data

from dpsvi.errors import check_number
from dpsvi.estimators.arrays import unmasked
from dpsvi.estimators.engine_parameters import engine_parameters
from dpsvi.estimators.run_options import RestartOptions
from dpsvi.expfam import gamma
from dpsvi.families.recommender import Recommender, as_csr, as_items, entries
from dpsvi.files import io
from dpsvi.kernels.normal import n_columns
from dpsvi.models.matrix_factorization.local import Prior, infer, predict, prior_of
from dpsvi.models.matrix_factorization.model import (
    Posterior,
    draw,
    first_rows,
    from_arrays,
    make_model,
    normal_kl,
    read,
)
from dpsvi.training.items import count
from dpsvi.training.state import State


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
    `posterior_samples` draws ``"components"`` and ``"noise_variance"``, 1 / tau, whose inverse has
    the inverse of `noise_variance_` for a mean.  `mean_` is a number and cannot be drawn.

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
    >>> float(model.predict_ratings(R[:1]).round()[0, 1])
    2.0
    """

    mean_: float
    noise_variance_: float

    def __init__(
        self, n_components: int = 10, *, user_precision: float = 1.0,
        item_precision: float | None = None, noise_shape: float = 1.0,
        noise_rate: float | None = None,
        **run: Unpack[RestartOptions],
    ) -> None:  # fmt: skip
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
            self, unmasked(X), reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32],
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
            largest = np.abs(ratings).max()
            raise ValueError(f"squares of ratings overflow, the largest is {largest:g}")
        # Constant ratings, whose variance is rounding, have no scale of their own but their size.
        rounding = 16 * np.finfo(ratings.dtype).eps * abs(mean)
        variance = variance if variance > rounding**2 else max(abs(mean), 1.0) ** 2
        alpha, rate = self.item_precision, self.noise_rate
        prior = Prior(
            n, mean, self.user_precision,
            n / (self.user_precision * variance) if alpha is None else alpha,
            self.noise_shape, self.noise_shape * variance if rate is None else rate,
        )  # fmt: skip
        n_ratings = len(ratings) * (total / count(items))
        rows = first_rows(prior, self.n_features_in_, n_ratings, variance, rng)
        return State.resume(make_model(self.n_features_in_, prior), rows, self._n_threads)

    def _check_read(self, model) -> None:
        super()._check_read(model)
        io.check_equal(
            "columns of lambda", model.shape[1], n_columns(prior_of(model.hyper).n_components)
        )

    # --- the fitted model ---------------------------------------------------------------------

    @property
    def _offset(self):
        return self.mean_

    def _fitted(self, state) -> dict:
        q, prior = read(state), prior_of(state.model.hyper)
        return {
            "components_": q.expected[:, -prior.n_components :].T.astype(self._dtype),
            "mean_": float(prior.mean),
            "noise_variance_": float(1 / q.noise),
        }

    def _draw_posterior(self, n_samples, rng) -> dict:
        return draw(self._state, n_samples, rng)

    def _like(self, X):
        """Ratings, and the posterior of the users who made them: means, roots of covariances."""
        ratings, prior = self._ratings(X, reset=False), prior_of(self._state.model.hyper)
        n = prior.n_components
        items = as_items(ratings)
        moments, _, _ = self._infer(read(self._state), prior, items)
        means = moments[:, -n:]
        i, j = np.tril_indices(n)
        square = np.zeros((len(means), n, n))
        square[:, i, j] = moments[:, :-n] / np.where(i == j, 1.0, math.sqrt(2.0))
        square[:, j, i] = square[:, i, j]
        covariances = square - means[:, :, None] * means[:, None]
        return ratings, means, np.linalg.cholesky(covariances)

    def _draw_data(self, draw, like, rng):
        ratings, means, root = like
        users = means + np.einsum("uij,uj->ui", root, rng.standard_normal(means.shape))
        of = np.repeat(np.arange(len(users)), np.diff(ratings.indptr))
        value = np.einsum("nk,kn->n", users[of], draw["components"][:, ratings.indices])
        value += self.mean_ + math.sqrt(draw["noise_variance"]) * rng.standard_normal(len(value))
        return scipy.sparse.csr_array(
            (value.astype(self._dtype), ratings.indices, ratings.indptr), ratings.shape
        )

    def _infer(self, q: Posterior, prior: Prior, items):
        n_users = count(items)
        users = np.empty((n_users, q.expected.shape[1]))
        log_dets, errors = np.empty(n_users), np.empty(n_users)
        infer(items, q.expected, prior, q.noise, users, log_dets, errors)
        return users, log_dets, errors

    def _users(self, state, items):
        prior = prior_of(state.model.hyper)
        users, _, _ = self._infer(read(state), prior, items)
        return users[:, -prior.n_components :]

    def _bounds(self, state, items):
        q, prior = read(state), prior_of(state.model.hyper)
        users, log_dets, errors = self._infer(q, prior, items)
        constant = gamma.expected_log(q.noise_shape, q.noise_rate) - math.log(2 * math.pi)
        expected = 0.5 * (np.diff(items.offsets) * constant - q.noise * errors)
        return expected - normal_kl(users, log_dets, prior.user_precision, prior.n_components)

    def _divergence(self, state) -> float:
        q, prior = read(state), prior_of(state.model.hyper)
        factors = normal_kl(q.expected, q.log_dets, prior.item_precision, prior.n_components)
        noise = gamma.kl(q.noise_shape, q.noise_rate, prior.noise_shape, prior.noise_rate)
        return float(factors.sum() + noise)

    def _split(self, items):
        first = np.random.default_rng(0).random(len(items.value)) < 0.5
        return entries(items, first, items.value), entries(items, ~first, items.value)

    def _log_likelihood(self, state, first, second) -> float:
        q, prior = read(state), prior_of(state.model.hyper)
        users, _, _ = self._infer(q, prior, first)
        mean, variance = np.empty((2, len(second.value)))
        predict(second, users, q.expected, prior.n_components, mean, variance)
        variance += 1 / q.noise
        residual = second.value - prior.mean - mean
        return float(-0.5 * (np.log(2 * np.pi * variance) + residual**2 / variance).sum())

    def __sklearn_tags__(self) -> Any:
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
