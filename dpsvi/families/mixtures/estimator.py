"""What the estimators of mixtures of Gaussian components share, whatever their weights are."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from dpsvi.errors import check_choice, check_number
from dpsvi.estimators.arrays import ArrayEstimator
from dpsvi.estimators.fitting import fit_method
from dpsvi.estimators.incremental import Incremental
from dpsvi.estimators.scikit_learn import DensityMixin
from dpsvi.expfam import by_dimension
from dpsvi.expfam.gaussian import first_statistics, moved
from dpsvi.families.mixtures import incomplete
from dpsvi.families.mixtures.clusters import first_responsibilities
from dpsvi.families.mixtures.components import draw_points
from dpsvi.families.mixtures.merging import merge_until_stable
from dpsvi.families.mixtures.mixture import (
    component_prior,
    infer,
    options_of,
    posterior,
    with_gaps,
)
from dpsvi.families.mixtures.prior_parameters import resolve_prior
from dpsvi.families.mixtures.restructuring import sweep
from dpsvi.families.mixtures.trials import Moving, mass_of
from dpsvi.training.items import count, dense_items, points_and_weights
from dpsvi.training.state import State

_SAMPLE = 10_000  # points that the first responsibilities are found on

_PARAMETERS = """\
    mean_precision_prior : float or None, default=None
        kappa_0 > 0: the prior of the means weighs as much as so many points.  None is 1.
    mean_prior : array of shape (n_features,) or None, default=None
        m_0.  None is the mean of the data; for `partial_fit`, of its first data.
    degrees_of_freedom_prior : float or None, default=None
        nu_0 of the Wishart prior of the precisions, > n_features - 1; diagonal: nu_0 > 0, twice
        the shape of their Gamma prior.  None is `n_features`; diagonal: 1, with which every
        variance has the same prior as among full covariances.
    covariance_prior : array of shape (n_features, n_features) or None, default=None
        W_0^-1, positive definite; diagonal: of shape (n_features,), > 0, twice the rates of the
        Gamma prior.  None is the covariance of the data (for `partial_fit`, of its first data)
        with a millionth of each variance added, that of constant features taken as 1.
    init_params : {"merge", "kmeans", "random"}, default="merge"
        First responsibilities, on at most 10,000 points (10 a component if that is more): twice as
        many k-means clusters, of which pairs are merged until K are left (the Dirichlet process
        goes on while the bound gains; slower, and finds better optima); k-means; or random.
    incremental : bool, default=False
        In the last half of the passes statistics of a point replace those of its last visit, and
        nothing decays: coordinate ascent in steps of a batch.  The responsibilities of all points
        are remembered (8 K bytes a point).  ``python -m experiments.incremental`` measured higher
        bounds with them on all data.  See :mod:`dpsvi.estimators.incremental`, and the Notes on
        several processes there.  Streams have no such passes.
    restructure : bool, default=False
        Between passes of `fit`, after the first 1, 2, 4, 8, ... of them and in the first half,
        components are merged, deleted and born where that raises the ELBO
        (:mod:`dpsvi.families.mixtures.restructuring`).  Not with `incremental`.  Streams have no
        such moves."""

_MISSING = """\
    Numbers of X that are NaN are missing, in `fit` as in all other methods.  They are not
    imputed: diagonal covariances leave them out, full ones condition on what is there, and then
    fits with D features take up to D times as long.  Fits to data without NaN cost nothing more."""

_ATTRIBUTES = """\
    means_ : ndarray of shape (n_components, n_features_in_)
    covariances_, precisions_ : ndarrays of shape (n_components, n_features_in_, n_features_in_)
        E[Lambda] is `precisions_`, its inverse `covariances_`; diagonal: of shape
        (n_components, n_features_in_).
    mean_precision_, degrees_of_freedom_ : ndarrays of shape (n_components,)
        kappa and nu of the posterior.  Diagonal, fitted to points with missing numbers: of shape
        (n_components, n_features_in_), since every feature has seen points of its own.
    moves_ : dict
        With `restructure`, how many moves the last `fit` made: ``"merge"``, ``"delete"`` and
        ``"birth"``.
    {fitted}"""


class MixtureEstimator(DensityMixin, Moving, Incremental, ArrayEstimator):
    """Base of mixtures.

    Besides what :class:`dpsvi.estimators.arrays.ArrayEstimator` asks for, a subclass defines

    * ``_make_model(prior, origins, gaps) -> Model``:
      by :func:`dpsvi.families.mixtures.mixture.make_model`;
    * ``_expect``: a static method, the kernel of :func:`dpsvi.families.mixtures.mixture.posterior`;
    * ``_weight_bound(counts) -> float``: A(N) of :mod:`dpsvi.families.mixtures.merging`;
    * ``_weights(state) -> array``: E[pi], (K,);
    * ``_weight_attributes(state) -> dict``: what is fitted besides ``weights_``;
    * ``_weight_divergence(state) -> float``: KL of the weights from their prior, in nats;
    * ``_draw_weights(n_samples, rng) -> dict``: ``"weights"``, and what is learned with them.
    """

    weights_: np.ndarray
    means_: np.ndarray
    covariances_: np.ndarray
    precisions_: np.ndarray
    mean_precision_: np.ndarray
    degrees_of_freedom_: np.ndarray
    _texts = {"components": _PARAMETERS, "attributes": _ATTRIBUTES, "missing": _MISSING}

    def __init__(
        self, n_components: int, covariance_type: str, mean_precision_prior: float | None,
        mean_prior: ArrayLike | None, degrees_of_freedom_prior: float | None,
        covariance_prior: ArrayLike | None, init_params: str, incremental: bool, restructure: bool,
    ) -> None:  # fmt: skip
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.mean_precision_prior = mean_precision_prior
        self.mean_prior = mean_prior
        self.degrees_of_freedom_prior = degrees_of_freedom_prior
        self.covariance_prior = covariance_prior
        self.init_params = init_params
        self.incremental = incremental
        self.restructure = restructure

    # --- fitting ------------------------------------------------------------------------------

    _free = ("init_params", "incremental", "restructure")

    def _remembering(self, model):
        return model._replace(item_memory=options_of(model.hyper).n_components)  # responsibilities

    @fit_method
    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the model from X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored
        sample_weight : array-like of shape (n_samples,) or None, default=None
            How often each point counts, >= 0; one of weight 0 is as if it were not there.  None:
            each once.

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> from dpsvi import DPSVIGaussianMixture
        >>> X = np.random.default_rng(0).normal(size=(200, 2)) + np.repeat([[0], [9]], 100, axis=0)
        >>> weight = np.repeat([1, 3], 100)  # the points around 9 count three times
        >>> mixture = DPSVIGaussianMixture(2, random_state=0).fit(X, sample_weight=weight)
        >>> sorted(mixture.weights_.round(2).tolist())
        [0.25, 0.75]
        """
        return self._fit(X, y, sample_weight=sample_weight)

    @fit_method
    def partial_fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Go on learning with one pass over X, the next data of a stream.

        The first call also sets the priors that are None and the first parameters, so let it
        have enough data to tell both.

        Parameters
        ----------
        X, y, sample_weight : as in `fit`

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> from dpsvi import DPSVIGaussianMixture
        >>> X = np.random.default_rng(0).normal(size=(200, 2)) + np.repeat([[0], [9]], 100, axis=0)
        >>> mixture = DPSVIGaussianMixture(2, random_state=0)
        >>> for some in np.random.default_rng(0).permutation(X).reshape(2, 100, 2):
        ...     mixture = mixture.partial_fit(some)
        >>> mixture.n_iter_
        2
        """
        return self._partial_fit(X, y, sample_weight=sample_weight)

    def check_params(self) -> None:
        """Raise ValueError or TypeError for the first parameter that is not allowed."""
        super().check_params()
        check_number("n_components", self.n_components, low=1, high=65_535, integer=True)
        check_choice("covariance_type", self.covariance_type, ["full", "diag"])
        check_choice("init_params", self.init_params, ["merge", "kmeans", "random"])
        self._check_positive("mean_precision_prior")
        self._check_incremental()
        self._check_restructure()

    def _read(self, X, y=None, *, reset, sample_weight=None):
        X = self._points(X, reset, gaps=True)
        if sample_weight is None:
            return dense_items(X)
        weight = self._weights_of_rows(sample_weight, len(X))
        return dense_items(np.column_stack([X, weight])[weight > 0])

    def _start(self, items, total, rng) -> State:
        X, weight = points_and_weights(items, self.n_features_in_)
        gaps = incomplete.has_gaps(X)
        if gaps:
            incomplete.check_columns(X)
            self._check_gaps()
        prior = resolve_prior(
            self, incomplete.stand_in(X, weight) if gaps else X, self.covariance_type == "diag",
            precision="mean_precision_prior", mean="mean_prior",
            freedom="degrees_of_freedom_prior", covariance="covariance_prior", weight=weight,
        )  # fmt: skip
        size = min(len(X), max(_SAMPLE, 10 * self.n_components))
        chosen = np.sort(rng.choice(len(X), size, replace=False))
        sample, weight = X[chosen], None if weight is None else weight[chosen]
        given, mass = sample, mass_of(total / size, weight)
        if gaps:
            sample = incomplete.filled(sample, rng, X)
        if self.init_params == "merge":
            resp = self._merged(sample, given, weight, total / size, prior, rng)
        else:
            resp = first_responsibilities(sample, self.n_components, self.init_params, rng, weight)
        return self._state_of(sample, given, mass * resp, prior, self._n_threads)

    def _check_gaps(self) -> None:
        if self.incremental and self.covariance_type == "full":
            raise ValueError(
                "incremental=True with numbers of X that are missing (NaN) needs "
                "covariance_type='diag': what stands for them changes from visit to visit"
            )

    def _state_of(self, X, given, resp, prior, n_threads=1) -> State:
        """The best parameters for these responsibilities.

        X is `given`, or that with values in its gaps.
        """
        gaps, diagonal = X is not given, prior.covariance.ndim == 1
        origins, stats = first_statistics(X, resp, prior.mean, diagonal)
        if gaps and diagonal:
            stats = by_dimension.statistics(given, resp, origins)
        model = self._make_model(prior, origins, gaps)
        return State.resume(model, stats.reshape(1, -1), n_threads)

    def _merged(self, X, given, weight, scale, prior, rng):
        """Responsibilities of K components, (n, K), by merging pairs of twice as many.

        K-means has two centers in one cluster, and one in two, in most fits; variational inference
        does not move them any more.  Twice as many miss less.
        """
        n, most = len(X), self.n_components
        if self._learns_size:
            scale = 1.0  # noise that is counted more than once looks like components
        first = first_responsibilities(X, min(n, 2 * most), "kmeans", rng, weight)
        mass = mass_of(scale, weight)
        resp = merge_until_stable(
            X, mass * first, prior, self._weight_bound, 1 if self._learns_size else most, most,
            partial(self._ascend, X, given, weight, scale, prior, rng),
        )  # fmt: skip
        return np.pad(resp / mass, ((0, 0), (0, most - resp.shape[1])))

    def _ascend(self, X, given, weight, scale, prior, rng, resp):
        """Some steps of coordinate ascent, each point counting `scale` times its weight.

        What fills the gaps of `given` in X is drawn anew.
        """
        items = dense_items(given if weight is None else np.column_stack([given, weight]))
        state = self._state_of(X, given, resp, prior)
        sweep(state, items, scale * len(X))
        better = np.empty(resp.shape)
        self._bounds(state, items, better)
        if X is not given:
            incomplete.refill(X, given, better, posterior(state, self._expect), rng)
        return mass_of(scale, weight) * better

    def _again(self, items) -> State:
        if not incomplete.has_gaps(items.value):
            return super()._again(items)
        self._check_gaps()
        state = self._state
        model, learned = with_gaps(state.model, state.learned(), self._model)
        return State.resume(
            model, learned, self._n_threads, self._n_kept(items), step=state.step,
            items=state.items,
        )  # fmt: skip

    def _check_read(self, model) -> None:
        options = options_of(model.hyper)
        check_choice("axes of a covariance", options.n_axes, [0, 1, 2])
        self._check_options(model, options)

    # --- the fitted model ---------------------------------------------------------------------

    def _fitted(self, state) -> dict:
        q = posterior(state, self._expect)
        fitted = {
            "weights_": self._weights(state),
            "means_": q.means,
            "covariances_": q.covariances,
            "precisions_": q.precisions,
            "mean_precision_": q.mean_precision,
            "degrees_of_freedom_": q.degrees_of_freedom,
            **self._weight_attributes(state),
        }
        return {
            name: value.astype(self._dtype) if isinstance(value, np.ndarray) else value
            for name, value in fitted.items()
        }

    def _distances(self, other) -> np.ndarray:
        return posterior(self._state, self._expect).distances(posterior(other._state, self._expect))

    def _reordered(self, order, model) -> np.ndarray:
        state = self._state
        if state.model.shape != model.shape:
            raise ValueError(
                "diagonal mixtures have a mean if all of them were fitted to points with missing "
                "numbers (NaN), or none: got some of both"
            )
        before, after = (options_of(m.hyper).origins for m in (state.model, model))
        rows, shift = state.natural().reshape(len(order), -1)[order], before[order] - after
        own_counts = by_dimension.has_own_counts(rows, shift.shape[1])
        return (by_dimension.moved if own_counts else moved)(rows, shift).reshape(1, -1)

    def _bounds(self, state, items, resp=None):
        q, n = posterior(state, self._expect), count(items)
        bound, resp = np.empty(n), np.empty((0, 0)) if resp is None else resp
        own_counts = by_dimension.has_own_counts(q.standard, q.origins.shape[1])
        gaps, standard = own_counts or incomplete.has_gaps(items.value), q.standard
        if gaps and q.n_axes == 1 and not own_counts:
            standard = by_dimension.spread_standard(standard, q.origins.shape[1])
        run = incomplete.infer if gaps else infer
        run(items, np.arange(n, dtype=np.int32), standard, q.origins, resp, bound)
        weight = points_and_weights(items, q.origins.shape[1])[1]
        return bound if weight is None else weight * bound

    def _score(self, state, items) -> float:
        weight = points_and_weights(items, self.n_features_in_)[1]
        total = count(items) if weight is None else weight.sum()
        return float(np.sum(self._bounds(state, items)) / total)

    def _divergence(self, state) -> float:
        components = posterior(state, self._expect).divergence(component_prior(state.model.hyper))
        return float(self._weight_divergence(state) + components.sum())

    def _draw_posterior(self, n_samples, rng) -> dict:
        drawn = self._draw_weights(n_samples, rng)
        q = posterior(self._state, self._expect)
        names = "means", "covariances", "precisions"
        return drawn | dict(zip(names, q.sample(n_samples, rng), strict=True))

    def _like(self, X) -> int:
        return len(self._points(X, reset=False, gaps=True))

    def _draw_data(self, draw, n_points, rng):
        weights = draw["weights"] / draw["weights"].sum()
        y = rng.choice(len(weights), size=n_points, p=weights)
        return draw_points(draw["means"], draw["covariances"], y, rng).astype(self._dtype)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Responsibilities of the components for each point, of shape (n_samples, K).

        Examples
        --------
        >>> import numpy as np
        >>> from dpsvi import DPSVIGaussianMixture
        >>> X = np.random.default_rng(0).normal(size=(200, 2)) + np.repeat([[0], [9]], 100, axis=0)
        >>> mixture = DPSVIGaussianMixture(2, random_state=0).fit(X)
        >>> mixture.predict_proba(X[:3]).max(axis=1).round(3)
        array([1., 1., 1.])
        """
        check_is_fitted(self, "_state")
        items = self._read(X, reset=False)
        resp = np.empty((count(items), len(self.weights_)))
        self._bounds(self._state, items, resp)
        return resp.astype(self._dtype, copy=False)

    def predict(self, X: Any) -> np.ndarray:
        """The component with the highest responsibility for each point, (n_samples,).

        Examples
        --------
        >>> import numpy as np
        >>> from dpsvi import DPSVIGaussianMixture
        >>> X = np.random.default_rng(0).normal(size=(200, 2)) + np.repeat([[0], [9]], 100, axis=0)
        >>> mixture = DPSVIGaussianMixture(2, random_state=0).fit(X)
        >>> groups = mixture.predict(X)
        >>> len(set(groups[:100])), len(set(groups))
        (1, 2)
        """
        return self.predict_proba(X).argmax(axis=1)

    def fit_predict(self, X: Any, y: Any = None, **fit_params: Any) -> np.ndarray:
        """Fit to X, then :meth:`predict` the components of its points, (n_samples,).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored
        **fit_params
            What `fit` takes besides, as `sample_weight`.

        Examples
        --------
        >>> import numpy as np
        >>> from dpsvi import DPSVIGaussianMixture
        >>> X = np.random.default_rng(0).normal(size=(200, 2)) + np.repeat([[0], [9]], 100, axis=0)
        >>> len(set(DPSVIGaussianMixture(2, random_state=0).fit_predict(X)))
        2
        """
        return self.fit(X, y, **fit_params).predict(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def score_samples(self, X: Any) -> np.ndarray:
        """Expected log-likelihood of each point in nats, (n_samples,).

        ``ln sum_k exp(E ln pi_k + E ln N(x | mu_k, Lambda_k^-1))``, a lower bound of the log of
        the predictive density and, in scikit-learn's estimator too, the point's term of the ELBO.

        Examples
        --------
        >>> import numpy as np
        >>> from dpsvi import DPSVIGaussianMixture
        >>> X = np.random.default_rng(0).normal(size=(200, 2)) + np.repeat([[0], [9]], 100, axis=0)
        >>> mixture = DPSVIGaussianMixture(2, random_state=0).fit(X)
        >>> usual, odd = mixture.score_samples([[0, 0], [30, 30]])
        >>> bool(usual > -5 > odd)
        True
        """
        check_is_fitted(self, "_state")
        bounds = self._bounds(self._state, self._read(X, reset=False))
        return bounds.astype(self._dtype, copy=False)

    def score(self, X: Any, y: Any = None) -> float:
        """Mean of :meth:`score_samples`.

        Examples
        --------
        >>> import numpy as np
        >>> from dpsvi import DPSVIGaussianMixture
        >>> X = np.random.default_rng(0).normal(size=(200, 2)) + np.repeat([[0], [9]], 100, axis=0)
        >>> mixture = DPSVIGaussianMixture(2, random_state=0).fit(X)
        >>> mixture.score(X) > DPSVIGaussianMixture(1).fit(X).score(X)
        True
        """
        return float(self.score_samples(X).mean(dtype=np.float64))

    def sample(self, n_samples: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Draw points from the mixture of N(means_, covariances_).

        Parameters
        ----------
        n_samples : int, >= 1

        Returns
        -------
        X : ndarray of shape (n_samples, n_features_in_)
        y : ndarray of shape (n_samples,)
            Component of each, ascending.

        Examples
        --------
        >>> import numpy as np
        >>> from dpsvi import DPSVIGaussianMixture
        >>> X = np.random.default_rng(0).normal(size=(200, 2)) + np.repeat([[0], [9]], 100, axis=0)
        >>> mixture = DPSVIGaussianMixture(2, random_state=0).fit(X)
        >>> points, components = mixture.sample(50)
        >>> points.shape, components.shape
        ((50, 2), (50,))
        """
        check_is_fitted(self, "_state")
        check_number("n_samples", n_samples, low=1, integer=True)
        rng, weights = self._sampler(), self._weights(self._state)
        y = np.sort(rng.choice(len(weights), size=n_samples, p=weights))
        return posterior(self._state, self._expect).draw(y, rng), y
