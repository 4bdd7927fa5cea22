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
when the items are.  Nodes of a cluster without a master keep nothing, and begin evenly.
"""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
import scipy.sparse
from scipy.special import gammaln
from sklearn.utils import gen_batches
from sklearn.utils.validation import validate_data

from dpsvi.errors import check_number
from dpsvi.estimators.arrays import unmasked
from dpsvi.estimators.engine_parameters import engine_parameters
from dpsvi.estimators.incremental import Incremental
from dpsvi.estimators.run_options import RestartOptions
from dpsvi.expfam.gamma import hierarchy_kl
from dpsvi.families.recommender import Recommender, as_csr
from dpsvi.files import io
from dpsvi.kernels.hyper import pack
from dpsvi.kernels.poisson import options_of
from dpsvi.models.poisson_factorization.model import (
    Side,
    first_rows,
    from_arrays,
    halves,
    log_likelihood,
    make_model,
    n_columns,
    read,
    users_of,
)
from dpsvi.models.poisson_factorization.remembered import remembering
from dpsvi.training.items import count
from dpsvi.training.state import State

_USERS_AT_ONCE = 256  # whose counts of all items are in memory while they are drawn


@engine_parameters("users")
class DPSVIPoissonFactorization(Incremental, Recommender):
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
        takes 8 bytes a component; workers keep users of their own, whatever `sharding` says, and
        nodes without a master keep none: there every visit begins anew.  `transform` and `score`
        iterate longer.
    user_tol : float, default=0.01
        Mean change of the shapes of a user's factors that ends them.
    incremental : bool, default=False
        In the last half of the passes statistics of a user replace those of the last visit, and
        nothing decays: coordinate ascent in steps of a batch.  Remembered are the shares of the
        factors in each count, in 16 bits (2 K bytes a count), and 16 K bytes a user.  By
        ``python -m experiments.incremental`` scores are higher, but for 64 workers.  See
        :mod:`dpsvi.estimators.incremental`, and the Notes on several processes there.  Streams have
        no such passes.
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
    `posterior_samples` draws ``"components"`` and ``"item_rates"``.

    `score` thins the counts: each goes to either half with probability 1/2, and thinned Poisson
    counts are independent given the factors.  theta is inferred from one half, and
    ``sum_ui log Poisson(y_ui | E[theta_u]^T E[beta_i] / 2)`` of the other, zeros included, is
    divided by the number of its entries that are not 0.

    A step costs by the entries of its batch and by the size of the matrix of item factors; with
    many items and short users take a larger `batch_size`.

    Different seeds end in different optima, of which `n_init` keeps that with the highest bound:
    three on nyt, with K = 20, 30 passes and batches of 128, scored from -5.3267 to -5.3297
    (``python -m experiments.family --only poisson_factorization --corpus docword.nyt.txt.gz
    --repeats 3``).

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

    item_rates_: np.ndarray

    def __init__(
        self, n_components: int = 10, *, user_shape: float = 0.3, item_shape: float = 0.3,
        user_rate_shape: float = 0.3, item_rate_shape: float = 0.3, user_rate_mean: float = 1.0,
        item_rate_mean: float = 1.0, max_user_iter: int = 5, user_tol: float = 1e-2,
        incremental: bool = False,
        **run: Unpack[RestartOptions],
    ) -> None:  # fmt: skip
        self.n_components = n_components
        self.user_shape = user_shape
        self.item_shape = item_shape
        self.user_rate_shape = user_rate_shape
        self.item_rate_shape = item_rate_shape
        self.user_rate_mean = user_rate_mean
        self.item_rate_mean = item_rate_mean
        self.max_user_iter = max_user_iter
        self.user_tol = user_tol
        self.incremental = incremental

    # --- fitting ------------------------------------------------------------------------------

    _kind = "poisson_factorization"
    _settings = ("max_user_iter", "user_tol")
    _free = ("incremental",)
    _warmup = ({"incremental": True},)
    _model = staticmethod(from_arrays)
    _remembering = staticmethod(remembering)

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
        self._check_incremental()

    def _ratings(self, X, reset):
        X = validate_data(
            self, unmasked(X), reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32],
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

    def _again(self, items) -> State:
        state = super()._again(items)
        options = options_of(state.model.hyper)
        options = options._replace(n_sweeps=self.max_user_iter, tol=self.user_tol)
        state.model = state.model._replace(hyper=pack(options))
        return state

    def _remember(self, items) -> None:
        before = self._state.shared.item_memory
        super()._remember(items)
        if before.shape[1] == self._state.model.shape[1]:  # users go on where they are
            self._state.shared.item_memory[: len(before), : before.shape[1]] = before

    def _check_read(self, model) -> None:
        super()._check_read(model)
        needed = n_columns(options_of(model.hyper).n_components)
        io.check_equal("columns of lambda", model.shape[1], needed)

    # --- the fitted model ---------------------------------------------------------------------

    def _fitted(self, state) -> dict:
        q = read(state)
        return {
            "components_": q.mean.T.astype(self._dtype),
            "item_rates_": q.rates.astype(self._dtype),
        }

    def _draw_posterior(self, n_samples, rng) -> dict:
        q, options = read(self._state), options_of(self._state.model.hyper)
        factors = rng.standard_gamma(q.shape.T, (n_samples, *q.shape.T.shape))
        factors /= q.rate.T
        top = options.items.top  # E[eta] = top / rate
        return {
            "components": factors,
            "item_rates": rng.gamma(top, q.rates / top, (n_samples, len(q.rates))),
        }

    def _like(self, X):
        """Shapes and rates of q of the users, both (n_users, K)."""
        q, items = read(self._state), self._read(X, reset=False)
        return users_of(items, q.basis, q.size, options_of(self._state.model.hyper))[:2]

    def _draw_data(self, draw, like, rng):
        shape, rate = like
        users, parts = rng.standard_gamma(shape) / rate, []
        for some in gen_batches(len(users), _USERS_AT_ONCE):
            parts.append(scipy.sparse.csr_array(rng.poisson(users[some] @ draw["components"])))
        return scipy.sparse.csr_array(scipy.sparse.vstack(parts)).astype(self._dtype)

    def _users(self, state, items):
        q = read(state)
        shape, rate, _ = users_of(items, q.basis, q.size, options_of(state.model.hyper))
        return shape / rate

    def _bounds(self, state, items):
        q, options = read(state), options_of(state.model.hyper)
        shape, rate, log_norm = users_of(items, q.basis, q.size, options)
        theta = shape / rate
        constants = np.concatenate([[0.0], np.cumsum(gammaln(items.value + 1))])[items.offsets]
        expected = log_norm - np.diff(constants) - theta @ q.size[: theta.shape[1]]
        return expected - _side_kl(shape, rate, options.users)

    def _divergence(self, state) -> float:
        q = read(state)
        return float(_side_kl(q.shape, q.rate, options_of(state.model.hyper).items).sum())

    def _split(self, items):
        return halves(items)

    def _log_likelihood(self, state, first, second) -> float:
        q = read(state)
        options = options_of(state.model.hyper)
        shape, rate, _ = users_of(first, q.basis, q.size, options, share=0.5)
        return log_likelihood(second, shape / rate / 2, q.mean)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags


def _side_kl(shape, rate, prior):
    """KL of the rows of one side and of their rates, given their prior; (n,)."""
    shape0, top, base = prior
    top_rate = base + (shape / rate).sum(axis=1)
    return hierarchy_kl(shape, rate, shape0, top, top_rate, top - shape.shape[1] * shape0, base)


ESTIMATOR = DPSVIPoissonFactorization
