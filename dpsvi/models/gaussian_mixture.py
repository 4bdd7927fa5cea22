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
from sklearn.utils.validation import check_is_fitted

from dpsvi.base import Model
from dpsvi.checks import check_choice, check_number
from dpsvi.engine_parameters import engine_parameters
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
from dpsvi.family import FamilyEstimator, count, dense_items
from dpsvi.jit import inline_kernel, kernel
from dpsvi.svi import State

_SAMPLE = 10_000  # points that the first responsibilities are found on


# --- the local step ---------------------------------------------------------------------------


@inline_kernel
def _unpack(hyper):
    """Least pivots of W^-1 (D,), origins (K, D) and prior (K, columns) out of `hyper`."""
    n_components, n = int(hyper[0]), int(hyper[1])
    first, last = 2 + n, 2 + n + n_components * n
    origins = hyper[first:last].reshape((n_components, n))
    size = n_components * (n * n + n + 3)
    prior = hyper[last : last + size].reshape((n_components, n * n + n + 3))
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

    @classmethod
    def of(cls, hyper) -> Prior:
        """The prior that the `hyper` of a model holds."""
        n = int(hyper[1])
        covariance, rest = hyper[-n * n :].reshape(n, n), hyper[: -n * n]
        alpha, kappa, nu = rest[-n - 3 : -n].tolist()
        return cls(alpha, kappa, rest[-n:], nu, covariance)


def make_model(prior: Prior, origins) -> Model:
    """The mixture as a :class:`dpsvi.base.Model`.

    Parameters
    ----------
    prior : Prior
    origins : float64 array, (K, D)
        Where each component counts from.
    """
    n_components, n = origins.shape
    shift = prior.mean - origins
    natural = np.empty((n_components, n * n + n + 3))
    natural[:, 0] = prior.weight_concentration
    natural[:, 1] = prior.mean_precision
    natural[:, 2 : n + 2] = prior.mean_precision * shift
    outer = prior.mean_precision * shift[:, :, None] * shift[:, None, :]
    natural[:, n + 2 : -1] = (prior.covariance + outer).reshape(n_components, n * n)
    natural[:, -1] = prior.degrees_of_freedom
    floor = np.diag(np.linalg.cholesky(prior.covariance)) ** 2
    hyper = [
        [n_components, n], floor, origins.ravel(), natural.ravel(),
        [prior.weight_concentration, prior.mean_precision, prior.degrees_of_freedom],
        prior.mean, prior.covariance.ravel(),
    ]  # fmt: skip
    return from_arrays((1, natural.size), natural.reshape(1, -1), np.concatenate(hyper))


def from_arrays(shape, prior, hyper) -> Model:
    """The model with these arrays of :func:`make_model`."""
    return Model(
        name="gaussian_mixture", shape=shape, prior=prior, hyper=hyper, local=local,
        scratch=partial(_scratch, int(hyper[0])),
    )  # fmt: skip


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


def read(state: State) -> Posterior:
    """The posterior that a state stands for."""
    hyper = state.model.hyper
    _, origins, prior = _unpack(hyper)
    n_components, n = origins.shape
    expected = np.empty(prior.shape)
    expect(state.shared.totals.sum(axis=0), state.scale, hyper, expected)
    return Posterior(
        weight_concentration=state.natural().reshape(prior.shape)[:, 0],
        mean_precision=expected[:, 1],
        origins=origins,
        shift=expected[:, 2 : n + 2],
        factor=expected[:, n + 2 : -1].reshape(n_components, n, n),
        degrees_of_freedom=expected[:, -1],
        expected=expected,
    )


def divergence(q: Posterior, prior: Prior) -> float:
    """KL(q || prior) of all parameters, in nats."""
    nu = q.degrees_of_freedom
    components = normal_wishart.kl(
        (q.mean_precision, q.shift, nu[:, None, None] * q.covariances, nu),
        (prior.mean_precision, prior.mean - q.origins, prior.covariance, prior.degrees_of_freedom),
    )
    alpha = q.weight_concentration
    weights = dirichlet.kl(alpha, np.full(len(alpha), prior.weight_concentration))
    return float(weights + components.sum())


# --- the estimator ----------------------------------------------------------------------------


@engine_parameters("points")
class DPSVIGaussianMixture(DensityMixin, FamilyEstimator):
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
    {engine}

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
        init_params="kmeans",
    ):  # fmt: skip
        self.n_components = n_components
        self.weight_concentration_prior = weight_concentration_prior
        self.mean_precision_prior = mean_precision_prior
        self.mean_prior = mean_prior
        self.degrees_of_freedom_prior = degrees_of_freedom_prior
        self.covariance_prior = covariance_prior
        self.init_params = init_params

    # --- fitting ------------------------------------------------------------------------------

    _kind = "gaussian_mixture"
    _sizes = ("n_components",)
    _model = staticmethod(from_arrays)

    def check_params(self) -> None:
        """Raise ValueError or TypeError for the first parameter that is not allowed."""
        super().check_params()
        check_number("n_components", self.n_components, low=1, high=65_535, integer=True)
        check_choice("init_params", self.init_params, ["kmeans", "random"])
        self._check_positive("weight_concentration_prior", "mean_precision_prior")

    def _read(self, X, y=None, *, reset):
        return dense_items(self._points(X, reset))

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
            X.mean(axis=0) if self.mean_prior is None else self._array("mean_prior", (n,)),
            float(nu),
            covariance,
        )

    def _start(self, items, total, rng) -> State:
        X = items.value.reshape(-1, self.n_features_in_)
        prior = self._resolve_prior(X)
        size = min(len(X), max(_SAMPLE, 10 * self.n_components))
        sample = X[np.sort(rng.choice(len(X), size, replace=False))]
        resp = first_responsibilities(sample, self.n_components, self.init_params, rng)
        origins, stats = first_statistics(sample, resp, prior.mean)
        rows = (stats * (total / size)).reshape(1, -1)
        return State.resume(make_model(prior, origins), rows, self._n_threads)

    # --- the fitted model ---------------------------------------------------------------------

    def _fitted(self, state) -> dict:
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
        return {name: array.astype(self._dtype) for name, array in arrays.items()}

    def _bounds(self, state, items, resp=None):
        q, n = read(state), count(items)
        bound, resp = np.empty(n), np.empty((0, 0)) if resp is None else resp
        infer(items, np.arange(n, dtype=np.int32), q.expected, q.origins, resp, bound)
        return bound

    def _divergence(self, state) -> float:
        return divergence(read(state), Prior.of(state.model.hyper))

    def predict_proba(self, X):
        """Responsibilities of the components for each point, of shape (n_samples, K)."""
        check_is_fitted(self, "_state")
        items = self._read(X, reset=False)
        resp = np.empty((count(items), self.n_components))
        self._bounds(self._state, items, resp)
        return resp.astype(self._dtype, copy=False)

    def predict(self, X):
        """The component with the highest responsibility for each point, (n_samples,)."""
        return self.predict_proba(X).argmax(axis=1)

    def score_samples(self, X):
        """Expected log-likelihood of each point in nats, (n_samples,).

        ``ln sum_k exp(E ln pi_k + E ln N(x | mu_k, Lambda_k^-1))``, a lower bound of the log of
        the predictive density and, in scikit-learn's estimator too, the point's term of the ELBO.
        """
        check_is_fitted(self, "_state")
        bounds = self._bounds(self._state, self._read(X, reset=False))
        return bounds.astype(self._dtype, copy=False)

    def score(self, X, y=None) -> float:
        """Mean of :meth:`score_samples`."""
        return float(self.score_samples(X).mean(dtype=np.float64))

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


ESTIMATOR = DPSVIGaussianMixture
