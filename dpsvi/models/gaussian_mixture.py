"""Bayesian Gaussian mixture with full covariances (Bishop 2006, 10.2; paper, 7.1) by DPSVI.

    pi ~ Dir(alpha_0),    (mu_k, Lambda_k) ~ NW(m_0, kappa_0, W_0, nu_0)
    z_n ~ Cat(pi),        x_n ~ N(mu_{z_n}, Lambda_{z_n}^-1)

The natural parameters of component k are ``alpha_k | kappa_k | h_k | Psi_k | nu_k``, of 1 + 1 + D
+ D^2 + 1 numbers, see :mod:`dpsvi.expfam.normal_wishart`.  The statistics of a batch are sums over
its points of ``r | r | r x | r x x^T | r``, with the responsibilities r_nk as local parameters (44)

    ln r_nk = E ln pi_k + E ln|Lambda_k| / 2 - D/2 ln 2 pi
              - (D / kappa_k + nu_k (x_n - m_k)^T W_k (x_n - m_k)) / 2  + const.

Two choices keep covariances sound.  A point touches all components, so all of lam is *one* row of
the engine's matrix.  Its column totals, which every thread keeps for itself, then are the
parameters, and the local step reads those: unlike the row they lose no addition to a race, and
one percent lost would spoil ``W^-1 = Psi - h h^T / kappa``.  And every component counts x from an
origin o_k of its own, near its first mean and fixed for the whole fit, so that the difference is
one of small numbers for data far from zero too; natural parameters of different origins differ by
a linear map, which leaves all steps and averages what they are.
"""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import numpy as np
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from dpsvi import io
from dpsvi.base import Items, Model
from dpsvi.checks import check_choice, check_number
from dpsvi.estimator import Monitor, SVIEstimator, unchanged_on_error, with_callbacks
from dpsvi.expfam import dirichlet, normal_wishart
from dpsvi.expfam.digamma import digamma
from dpsvi.expfam.gaussian import (
    BLOCK,
    add_stats,
    default_covariance,
    first_statistics,
    load_block,
    log_densities,
    mirror,
    normalise,
)
from dpsvi.expfam.normal_wishart import expected_log_det, to_standard
from dpsvi.jit import as_items, inline_kernel, kernel
from dpsvi.svi import State

FLOAT = np.dtype(np.float64)
_SAMPLE = 10_000  # points that the first responsibilities are found on


# --- the local step ---------------------------------------------------------------------------


@inline_kernel
def _unpack(hyper):
    """Least pivots of W^-1 (D,), origins (K, D) and prior (K, columns) out of `hyper`."""
    n_components, n = int(hyper[0]), int(hyper[1])
    first, last = 2 + n, 2 + n + n_components * n
    origins = hyper[first:last].reshape((n_components, n))
    prior = hyper[last:].reshape((n_components, n * n + n + 3))
    return hyper[2:first], origins, prior


@kernel
def expect(sums, scale, hyper, expected):
    """Fill `expected`, (K, columns), with all that the local step needs of the parameters.

    A row is a component in standard form, behind the part of ln r_nk that does not depend on x_n.
    `sums` is (lam - prior) / scale in one vector.
    """
    floor, origins, prior = _unpack(hyper)
    n_components, n = origins.shape
    total = 0.0
    for k in range(n_components):
        for j in range(prior.shape[1]):
            expected[k, j] = prior[k, j] + scale * sums[k * prior.shape[1] + j]
        total += expected[k, 0]
    for k in range(n_components):
        row, component = expected[k], expected[k, 1:]
        to_standard(component, floor)
        constant = n * (math.log(2.0 * math.pi) + 1.0 / component[0])
        row[0] = digamma(row[0]) - digamma(total)
        row[0] += 0.5 * (expected_log_det(component, n) - constant)


def local(shared, scale, hyper, items, batch, work):
    """See :class:`dpsvi.base.Model`; items are points, the one row is always touched."""
    _, origins, prior = _unpack(hyper)
    n_components, n = origins.shape
    expected, stats = work.expected[0].reshape(prior.shape), work.stats[0].reshape(prior.shape)
    block = work.scratch.reshape((2 * n + 2 + n_components, BLOCK))
    x, y, bound, resp = block[:n], block[n : 2 * n + 1], block[2 * n + 1], block[2 * n + 2 :]

    expect(work.totals, scale, hyper, expected)
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
    """Responsibilities and bounds of the items in `batch`, given what :func:`expect` filled.

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


# --- the model --------------------------------------------------------------------------------


class Prior(NamedTuple):
    """Parameters of the prior."""

    weight_concentration: float  # alpha_0, > 0
    mean_precision: float  # kappa_0, > 0
    mean: np.ndarray  # m_0, (D,)
    degrees_of_freedom: float  # nu_0, > D - 1
    covariance: np.ndarray  # W_0^-1, (D, D), positive definite


def make_model(prior: Prior, origins, first_rows) -> Model:
    """The mixture as a :class:`dpsvi.base.Model`.

    Parameters
    ----------
    prior : Prior
    origins : float64 array, (K, D)
        Where each component counts from.
    first_rows : float64 array, (K, D * D + D + 3)
        First value of lam less the prior, sums over points:
        :func:`dpsvi.expfam.gaussian.first_statistics`.
    """
    n_components, n = origins.shape
    shift = prior.mean - origins
    natural = np.empty(first_rows.shape)
    natural[:, 0] = prior.weight_concentration
    natural[:, 1] = prior.mean_precision
    natural[:, 2 : n + 2] = prior.mean_precision * shift
    outer = prior.mean_precision * shift[:, :, None] * shift[:, None, :]
    natural[:, n + 2 : -1] = (prior.covariance + outer).reshape(n_components, n * n)
    natural[:, -1] = prior.degrees_of_freedom
    floor = np.diag(np.linalg.cholesky(prior.covariance)) ** 2
    return Model(
        name="gaussian_mixture",
        shape=(1, natural.size),
        prior=natural.reshape(1, -1),
        hyper=np.concatenate([[n_components, n], floor, origins.ravel(), natural.ravel()]),
        init=partial(_first_rows, first_rows),
        local=local,
        scratch=partial(_scratch, n_components),
    )


def _first_rows(rows, rng):
    return rows.reshape(1, -1).copy()


def _scratch(n_components, n):
    return (2 * n + 2 + n_components) * BLOCK


def first_responsibilities(points, n_components, init_params, rng):
    """Responsibilities to start from, (n, K): 0 or 1 by k-means, or random.

    With fewer distinct points than components k-means leaves some components empty.
    """
    if init_params == "random":
        resp = rng.random((len(points), n_components))
        return resp / resp.sum(axis=1, keepdims=True)
    from sklearn.cluster import KMeans

    n_clusters = min(n_components, len(np.unique(points, axis=0)))
    seed = int(rng.integers(np.iinfo(np.int32).max))
    labels = KMeans(n_clusters, n_init=1, random_state=seed).fit(points).labels_
    return np.eye(n_components)[labels]


class Posterior(NamedTuple):
    """q(pi, mu, Lambda) in standard parameters."""

    weight_concentration: np.ndarray  # alpha, (K,)
    mean_precision: np.ndarray  # kappa, (K,)
    origins: np.ndarray  # o, (K, D)
    shift: np.ndarray  # m - o, (K, D)
    factor: np.ndarray  # G, (K, D, D), lower triangular
    degrees_of_freedom: np.ndarray  # nu, (K,)
    expected: np.ndarray  # what `infer` takes, (K, D * D + D + 3)

    @property
    def covariances(self):
        """Inverses of the expected precisions, (K, D, D)."""
        return self.factor @ self.factor.swapaxes(1, 2)


def natural_parameters(state: State):
    """Return lam, (K, D * D + D + 3), with nothing lost to races: from the totals, not the row."""
    _, _, prior = _unpack(state.model.hyper)
    return prior + state.scale * state.shared.totals.sum(axis=0).reshape(prior.shape)


def read(state: State) -> Posterior:
    """The posterior that a state stands for."""
    hyper = state.model.hyper
    _, origins, prior = _unpack(hyper)
    n_components, n = origins.shape
    expected = np.empty(prior.shape)
    expect(state.shared.totals.sum(axis=0), state.scale, hyper, expected)
    return Posterior(
        weight_concentration=natural_parameters(state)[:, 0],
        mean_precision=expected[:, 1],
        origins=origins,
        shift=expected[:, 2 : n + 2],
        factor=expected[:, n + 2 : -1].reshape(n_components, n, n),
        degrees_of_freedom=expected[:, -1],
        expected=expected,
    )


def lower_bound(q: Posterior, prior: Prior, local_bounds, total) -> float:
    """ELBO (43) in nats: `total` times the mean of the items' terms, less KL(q || prior)."""
    nu = q.degrees_of_freedom
    components = normal_wishart.kl(
        (q.mean_precision, q.shift, nu[:, None, None] * q.covariances, nu),
        (prior.mean_precision, prior.mean - q.origins, prior.covariance, prior.degrees_of_freedom),
    )
    alpha = q.weight_concentration
    weights = dirichlet.kl(alpha, np.full(len(alpha), prior.weight_concentration))
    return float(total * np.mean(local_bounds) - weights - components.sum())


def point_items(X) -> Items:
    """The rows of X as dense items; a float64 array in C order is not copied."""
    offsets = np.arange(len(X) + 1, dtype=np.int64) * X.shape[1]
    return as_items(offsets, np.empty(0, np.int32), np.ravel(X), FLOAT)


# --- the estimator ----------------------------------------------------------------------------


class DPSVIGaussianMixture(DensityMixin, SVIEstimator):
    """Bayesian Gaussian mixture, fitted by (asynchronous) stochastic variational inference.

    The model is that of scikit-learn's ``BayesianGaussianMixture`` with
    ``covariance_type="full"`` and ``weight_concentration_prior_type="dirichlet_distribution"``,
    and so is the meaning of all methods and attributes of the same name.

    Parameters
    ----------
    n_components : int, default=1
        Number of components K; components that are not needed end with small weights.
    weight_concentration_prior : float or None, default=None
        alpha_0 > 0 of the Dirichlet prior of the weights.  None is ``1 / n_components``.
    mean_precision_prior : float or None, default=None
        kappa_0 > 0: the prior of the means weighs as much as so many points.  None is 1.
    mean_prior : array of shape (n_features,) or None, default=None
        m_0.  None is the mean of the data; for `partial_fit`, of its first data.
    degrees_of_freedom_prior : float or None, default=None
        nu_0 > n_features - 1 of the Wishart prior of the precisions.  None is `n_features`.
    covariance_prior : array of shape (n_features, n_features) or None, default=None
        W_0^-1, positive definite.  None is the covariance of the data (for `partial_fit`, of its
        first data) with a millionth of each variance added, that of constant features taken as 1.
    init_params : {"kmeans", "random"}, default="kmeans"
        First responsibilities, on at most 10,000 points (10 a component if that is more).
    engine : str, default="threads"
        ``"serial"``, ``"threads"``: lock-free threads in this process, or ``"mpi"``: several
        processes with such threads, started by ``mpiexec -n 5 python -m mpi4py script.py``.
    n_jobs : int or None, default=None
        Threads p; None is 1, -1 all cores.  With more than one, results vary from run to run
        within the noise of seeds; one thread is reproducible.
    local_steps : int or None, default=None
        B: threads meet after each p * B steps.  None: only at the end of a pass; for ``"mpi"``
        128 at most, fewer where that is a large part of a pass.
    batch_size : int, default=256
        Points in a step, S.
    max_iter : int, default=30
        Passes over the data.
    learning_decay, learning_offset : float, default=0.6, 10.0
        kappa in (0.5, 1] and tau_0 > 0 of ``rho_t = (t + tau_0) ** -kappa``.
    learning_rate : float in (0, 1] or None, default=None
        Constant rate instead.  1 and a batch of all points is coordinate ascent.
    lr_rule : {"constant", "per_sample", "per_T"}, default="constant"
        How the rate is carried over to p threads and B local steps, rule (13).
    total_samples : float or None, default=None
        N for `partial_fit`; None: the points seen so far.
    early_stopping : bool, default=False
        Stop when the held-out score has not improved by `tol` (relative) in
        `n_iter_no_change` evaluations.
    validation_size : float in (0, 1), int or None, default=None
        Share or number of points held out to follow the score.
    evaluate_every : float, default=1.0
        Passes between evaluations; may be below 1.
    tol : float, default=1e-3
    n_iter_no_change : int, default=2
    warm_start : bool, default=False
        `fit` goes on from the last solution, prior included.
    random_state : int, RandomState instance or None, default=None
    verbose : int, default=0
        1 shows progress on stderr.
    callbacks : sequence of callables or None, default=None
        Each gets a :class:`dpsvi.base.Event` at each evaluation; a true answer ends the fit.
    cluster : dpsvi.Cluster or None, default=None
        Options of ``engine="mpi"``; None: the defaults of :class:`dpsvi.cluster.Cluster`.
    checkpoint_dir : path or None, default=None
        Folder whose ``checkpoints/`` `fit` writes to and :meth:`resume` reads from.
    checkpoint_seconds : float, default=60.0
        Between two checkpoints.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        E[pi].
    means_ : ndarray of shape (n_components, n_features_in_)
    covariances_, precisions_ : ndarrays of shape (n_components, n_features_in_, n_features_in_)
        E[Lambda] is `precisions_`, its inverse `covariances_`.
    weight_concentration_, mean_precision_, degrees_of_freedom_ : ndarrays of shape (n_components,)
        alpha, kappa and nu of the posterior.
    lower_bound_ : float
        ELBO of the training data in nats, all constants included (scikit-learn drops them).  After
        `partial_fit` an estimate from the last data.
    history_ : list of dict
        ``step, docs, seconds, rate`` of every evaluation, and with `validation_size`
        ``score``, as the method :meth:`score`.
    n_iter_, n_batch_iter_ : int
        Passes and steps done.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Inference is in float64; for float32 data the fitted arrays, responsibilities and scores are
    float32.

    References
    ----------
    Mohamad, Alamri, Bouchachia (2022), Machine Learning, doi:10.1007/s10994-022-06243-3.
    Bishop (2006), Pattern Recognition and Machine Learning, 10.2.
    Hoffman, Blei, Wang, Paisley (2013), JMLR 14.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> X[:250] += 10
    >>> mixture = DPSVIGaussianMixture(n_components=2, random_state=0).fit(X)
    >>> mixture.weights_.round(2)
    array([0.5, 0.5])
    >>> sorted(mixture.means_[:, 0].round().astype(int).tolist())
    [0, 10]
    """

    def __init__(
        self, n_components=1, *, weight_concentration_prior=None, mean_precision_prior=None,
        mean_prior=None, degrees_of_freedom_prior=None, covariance_prior=None,
        init_params="kmeans", engine="threads", n_jobs=None, local_steps=None, batch_size=256,
        max_iter=30, learning_decay=0.6, learning_offset=10.0, learning_rate=None,
        lr_rule="constant", total_samples=None, early_stopping=False, validation_size=None,
        evaluate_every=1.0, tol=1e-3, n_iter_no_change=2, warm_start=False, random_state=None,
        verbose=0, callbacks=None, cluster=None, checkpoint_dir=None, checkpoint_seconds=60.0,
    ):  # fmt: skip
        self.n_components = n_components
        self.weight_concentration_prior = weight_concentration_prior
        self.mean_precision_prior = mean_precision_prior
        self.mean_prior = mean_prior
        self.degrees_of_freedom_prior = degrees_of_freedom_prior
        self.covariance_prior = covariance_prior
        self.init_params = init_params
        self.engine = engine
        self.n_jobs = n_jobs
        self.local_steps = local_steps
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.learning_decay = learning_decay
        self.learning_offset = learning_offset
        self.learning_rate = learning_rate
        self.lr_rule = lr_rule
        self.total_samples = total_samples
        self.early_stopping = early_stopping
        self.validation_size = validation_size
        self.evaluate_every = evaluate_every
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks
        self.cluster = cluster
        self.checkpoint_dir = checkpoint_dir
        self.checkpoint_seconds = checkpoint_seconds

    # --- fitting ------------------------------------------------------------------------------

    @unchanged_on_error
    @with_callbacks
    def fit(self, X, y=None):
        """Learn the mixture from X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        self.check_params()
        X = self._as_points(X, reset=not (self.warm_start and hasattr(self, "_state")))
        rng = self._generator()
        chosen, held_out = self._hold_out(len(X), rng)
        train = X[chosen] if len(held_out) else X
        monitor = Monitor(self, X[held_out] if len(held_out) else None, X, y)
        if self.warm_start and hasattr(self, "_state"):
            self._state = self._again(self._state)
        else:
            self._state = self._start(train, len(train), rng)
        items = point_items(train)
        self._train(self._state, items, self.max_iter, rng, monitor, checkpoints=True)
        self.n_iter_ = max(1, -(-self._state.items // len(train)))
        self._finish(items, len(train))
        monitor.close(self._state)
        return self

    @unchanged_on_error
    @with_callbacks
    def partial_fit(self, X, y=None):
        """Go on learning with one pass over X, the next points of a stream.

        The first call also sets the priors that are None and the first components, so let it
        have enough points to tell both.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        self.check_params()
        first = not hasattr(self, "_state")
        X = self._as_points(X, reset=first)
        rng = self._generator()
        seen = len(X) + (0 if first else self._state.items)
        total = max(seen, self.total_samples or 0)
        self._state = self._start(X, total, rng) if first else self._again(self._state)
        monitor, items = Monitor(self, None, X, y), point_items(X)
        self._train(self._state, items, 1, rng, monitor, total=total)
        self.n_iter_ = getattr(self, "n_iter_", 0) + 1
        self._finish(items, total)
        monitor.close(self._state)
        return self

    def check_params(self) -> None:
        """Raise ValueError or TypeError for the first parameter that is not allowed."""
        self._check_engine_params()
        check_number("n_components", self.n_components, low=1, high=65_535, integer=True)
        check_choice("init_params", self.init_params, ["kmeans", "random"])
        for name in ("weight_concentration_prior", "mean_precision_prior"):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name), low=0, open_low=True)

    def _as_points(self, X, reset: bool):
        X = validate_data(self, X, reset=reset, dtype=[np.float64, np.float32], order="C")
        if reset:
            self._dtype = X.dtype
        return X

    def _resolve_prior(self, X) -> Prior:
        """The prior as asked for; what is None comes from X."""
        n = X.shape[1]
        nu = n if self.degrees_of_freedom_prior is None else self.degrees_of_freedom_prior
        check_number("degrees_of_freedom_prior", nu, low=n - 1, open_low=True)
        if self.covariance_prior is None:
            covariance = default_covariance(X)
            if not np.isfinite(covariance).all():
                raise ValueError(f"the squares of X overflow, its largest value is {X.max():g}")
        else:
            covariance = self._array("covariance_prior", (n, n))
            symmetric = np.allclose(covariance, covariance.T, rtol=1e-6, atol=0)
            if not symmetric or np.linalg.eigvalsh(covariance)[0] <= 0:
                raise ValueError("covariance_prior must be symmetric and positive definite")
        alpha, kappa = self.weight_concentration_prior, self.mean_precision_prior
        return Prior(
            1.0 / self.n_components if alpha is None else float(alpha),
            1.0 if kappa is None else float(kappa),
            X.mean(axis=0, dtype=FLOAT) if self.mean_prior is None
            else self._array("mean_prior", (n,)),
            float(nu),
            covariance,
        )  # fmt: skip

    def _array(self, name, shape):
        array = np.array(getattr(self, name), dtype=FLOAT)
        if array.shape != shape or not np.isfinite(array).all():
            raise ValueError(f"{name} must be finite and of shape {shape}, got {array!r}")
        return array

    def _start(self, X, total, rng) -> State:
        self._prior = self._resolve_prior(X)
        size = min(len(X), max(_SAMPLE, 10 * self.n_components))
        sample = X[np.sort(rng.choice(len(X), size, replace=False))].astype(FLOAT)
        resp = first_responsibilities(sample, self.n_components, self.init_params, rng)
        origins, stats = first_statistics(sample, resp, self._prior.mean)
        model = make_model(self._prior, origins, stats * (total / size))
        return State.start(model, rng, self._n_threads)

    def _again(self, state) -> State:
        """The same parameters and clock for other data."""
        n_components = int(state.model.hyper[0])
        if self.n_components != n_components:
            raise ValueError(
                f"n_components was {n_components} when the fit started, got {self.n_components!r}"
            )
        state.renormalise()
        return State.resume(
            state.model, state.shared.rows, self._n_threads, step=state.step, items=state.items
        )

    def _finish(self, items, total) -> None:
        vars(self).update(self._attributes(self._state))
        self.n_batch_iter_ = self._state.step
        q = read(self._state)
        self.lower_bound_ = lower_bound(q, self._prior, self._infer(items, q)[1], total)

    # --- the fitted model ---------------------------------------------------------------------

    def _attributes(self, state) -> dict:
        q = read(state)
        half = np.linalg.inv(q.factor)
        arrays = {
            "weights_": q.weight_concentration / q.weight_concentration.sum(),
            "means_": q.origins + q.shift,
            "covariances_": q.covariances,
            "precisions_": half.swapaxes(1, 2) @ half,
            "weight_concentration_": q.weight_concentration,
            "mean_precision_": q.mean_precision,
            "degrees_of_freedom_": q.degrees_of_freedom,
        }
        kept = ("n_features_in_", "feature_names_in_", "_prior", "_n_threads", "_dtype")
        return (
            {"_state": state}
            | {name: array.astype(self._dtype) for name, array in arrays.items()}
            | {name: vars(self)[name] for name in kept if name in vars(self)}
        )

    def _infer(self, items, q, keep=False):
        """Responsibilities, unless `keep` is false, and bounds of items."""
        n = len(items.offsets) - 1
        resp, bound = np.empty((n if keep else 0, len(q.shift))), np.empty(n)
        infer(items, np.arange(n, dtype=np.int32), q.expected, q.origins, resp, bound)
        return resp, bound

    def _explain(self, X, keep=False):
        check_is_fitted(self, "_state")
        X = self._as_points(X, reset=False)
        resp, bound = self._infer(point_items(X), read(self._state), keep)
        return resp.astype(X.dtype, copy=False), bound.astype(X.dtype, copy=False)

    def predict_proba(self, X):
        """Responsibilities of the components for each point, of shape (n_samples, K)."""
        return self._explain(X, keep=True)[0]

    def predict(self, X):
        """The component with the highest responsibility for each point, (n_samples,)."""
        return self.predict_proba(X).argmax(axis=1)

    def score_samples(self, X):
        """Expected log-likelihood of each point in nats, (n_samples,).

        ``ln sum_k exp(E ln pi_k + E ln N(x | mu_k, Lambda_k^-1))``, a lower bound of the log of
        the predictive density and, in scikit-learn's estimator too, the point's term of the ELBO.
        """
        return self._explain(X)[1]

    def score(self, X, y=None) -> float:
        """Mean of :meth:`score_samples`."""
        return float(self.score_samples(X).mean(dtype=FLOAT))

    def sample(self, n_samples=1):
        """Draw points from the mixture of N(means_, covariances_).

        Parameters
        ----------
        n_samples : int, >= 1

        Returns
        -------
        X : ndarray of shape (n_samples, n_features_in_)
        y : ndarray of shape (n_samples,)
            Component of each, ascending.
        """
        check_is_fitted(self, "_state")
        check_number("n_samples", n_samples, low=1, integer=True)
        rng, q = self._generator(), read(self._state)
        weights = q.weight_concentration / q.weight_concentration.sum()
        y = np.sort(rng.choice(len(weights), size=n_samples, p=weights))
        noise = rng.standard_normal((n_samples, q.shift.shape[1]))
        X = q.origins[y] + q.shift[y] + np.einsum("nij,nj->ni", q.factor[y], noise)
        return X, y

    def _held_out_score(self, state, X) -> dict:
        return {"score": float(self._infer(point_items(X), read(state))[1].mean())}

    def save(self, path) -> None:
        """Write ``model.safetensors`` and ``model.json`` into the folder `path`."""
        check_is_fitted(self, "_state")
        state, prior = self._state, self._prior
        io.save_model(
            path,
            kind="gaussian_mixture",
            arrays={
                "lambda": natural_parameters(state), "origins": read(state).origins,
                "mean_prior": prior.mean, "covariance_prior": prior.covariance,
            },
            meta={
                "params": io.plain_params(self), "step": state.step, "items": state.items,
                "weight_concentration_prior": prior.weight_concentration,
                "mean_precision_prior": prior.mean_precision,
                "degrees_of_freedom_prior": prior.degrees_of_freedom,
                "n_iter": self.n_iter_, "lower_bound": self.lower_bound_,
                "dtype": str(self._dtype),
                "feature_names": list(getattr(self, "feature_names_in_", ())),
            },
        )  # fmt: skip

    @classmethod
    def load(cls, path) -> DPSVIGaussianMixture:
        """Read what :meth:`save` wrote; `partial_fit` and `warm_start` go on from it."""
        arrays, meta = io.load_model(path, kind="gaussian_mixture")
        with io.reading(path):
            self = cls(**meta["params"])
            self.check_params()
            self._prior = Prior(
                meta["weight_concentration_prior"], meta["mean_precision_prior"],
                arrays["mean_prior"], meta["degrees_of_freedom_prior"], arrays["covariance_prior"],
            )  # fmt: skip
            model = make_model(self._prior, arrays["origins"], np.zeros_like(arrays["lambda"]))
            rows = arrays["lambda"].reshape(1, -1) - model.prior
            clock = {"step": meta["step"], "items": meta["items"]}
            state = State.resume(model, rows, self._n_threads, **clock)
            self.n_features_in_, self._dtype = arrays["origins"].shape[1], np.dtype(meta["dtype"])
            if meta["feature_names"]:
                self.feature_names_in_ = np.array(meta["feature_names"], dtype=object)
            vars(self).update(self._attributes(state))
            self.n_iter_, self.n_batch_iter_ = meta["n_iter"], meta["step"]
            self.lower_bound_, self.history_ = meta["lower_bound"], []
        return self


ESTIMATOR = DPSVIGaussianMixture
