"""What the estimators of hierarchical regressions share: groups, priors, prediction.

Rows are sorted by group, and groups are the engine's items.  With an intercept the columns of X are
shifted to mean 0, so that the intercept is told from the slopes wherever the features lie; what
users give and get is in terms of the features as they are.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_regressor
from sklearn.utils.validation import check_is_fitted, validate_data

from dpsvi.errors import check_flag, check_number, shortened
from dpsvi.estimators.arrays import ArrayEstimator, unmasked
from dpsvi.estimators.fitting import fit_method
from dpsvi.expfam import normal_wishart
from dpsvi.families.hierarchical.groups import factorise, places
from dpsvi.families.hierarchical.population import project, unpack
from dpsvi.files import io
from dpsvi.training.items import count, dense_items

_TEXTS = {
    "fit_intercept": """\
    fit_intercept : bool, default=True
        Learn a constant besides the coefficients of the features, for each group its own.""",
    "mean_precision_prior": """\
    mean_precision_prior : float, default=0.01
        kappa_0 > 0: the prior of the population's mean weighs as much as so many groups.""",
    "degrees_of_freedom_prior": """\
    degrees_of_freedom_prior : float or None, default=None
        nu_0 > n_coefficients + 1: the prior of the population's covariance weighs as much as
        nu_0 - n_coefficients - 1 groups.  None is n_coefficients + 2.""",
    "groups": """\
    groups_ : ndarray of shape (n_groups,) or None
        Labels of the known groups, sorted.
    group_coef_ : ndarray of shape (n_groups, n_features_in_)
    group_intercept_ : ndarray of shape (n_groups,)
        Posterior means of the groups' coefficients.
    population_covariance_ : ndarray of shape (n_coefficients, n_coefficients)
        Posterior mean of the covariance of the intercept, if there is one, and the coefficients
        between groups.
    {fitted}""",
    "notes": """\
    `posterior_samples` draws ``"coef"`` and ``"intercept"`` of the population (without groups, of
    the one group), ``"group_coef"``, ``"group_intercept"`` and ``"population_covariance"``; the
    regressor draws ``"noise_precision"``, too.  The intercept is 0 without `fit_intercept`.

    With one batch of all groups, ``learning_rate=1`` is coordinate ascent and needs the fewest
    passes.  Features are shifted to mean 0 inside; priors and results are those of the features as
    they were given.  The ``score`` in `history_` is the mean term of the ELBO of the held-out
    groups.""",
}


class HierarchicalEstimator(ArrayEstimator):
    """Base of :mod:`dpsvi.models.hierarchical_regression` and ``hierarchical_probit``.

    A subclass has the parameters named in :meth:`_resolve_prior` and defines, besides `_kind`,
    `_model` and `_start`,

    * ``_infer_groups(items, natural, floor, means, covariances, bound)``: a static method that
      fills the posteriors and the bounds of all groups, posteriors only where there is room;
    * ``_target(y, weight, reset, **more) -> float64 array``: what stands behind x in the rows,
      before the weight.
    """

    groups_: np.ndarray | None
    group_coef_: np.ndarray
    group_intercept_: np.ndarray
    population_covariance_: np.ndarray
    coef_: np.ndarray
    _texts = _TEXTS
    _extra = ("_labels", "_shift", "_y_mean", "_means", "_covariances")
    _while_fitting = ("_training",)
    _y_mean = 0.0

    # --- fitting ------------------------------------------------------------------------------

    def check_params(self) -> None:
        """Raise ValueError or TypeError for the first parameter that is not allowed."""
        super().check_params()
        check_flag("fit_intercept", self.fit_intercept)
        check_number("mean_precision_prior", self.mean_precision_prior, low=0, open_low=True)

    @fit_method
    def fit(
        self, X: Any, y: Any, groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:  # fmt: skip
        """Learn population and groups.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        groups : array-like of shape (n_samples,) or None, default=None
            Labels of the rows' groups, numbers or text.  None: all rows are one group.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            How often each row counts, >= 0; one of weight 0 is as if it were not there.  None:
            each once.

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> from dpsvi import DPSVIHierarchicalRegressor
        >>> rng = np.random.default_rng(0)
        >>> groups, X = np.repeat(["a", "b"], 100), rng.normal(size=(200, 1))
        >>> y = np.repeat([1.0, 3.0], 100) * X[:, 0] + 0.1 * rng.normal(size=200)
        >>> regressor = DPSVIHierarchicalRegressor(random_state=0).fit(X, y, groups)
        >>> regressor.group_coef_[:, 0].round(1)
        array([1., 3.])
        """
        return self._fit(X, y, groups=groups, sample_weight=sample_weight)

    @fit_method
    def partial_fit(
        self, X: Any, y: Any, groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:  # fmt: skip
        """Go on learning the population with one pass over other groups, the next of a stream.

        A group whose label came before counts as a new one; known groups, `groups_`, are those of
        the last call.  The first call also sets the priors that are None and the first parameters.

        Parameters
        ----------
        X, y, groups, sample_weight : as in :meth:`fit`

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> from dpsvi import DPSVIHierarchicalRegressor
        >>> rng = np.random.default_rng(0)
        >>> groups, X = np.repeat(["a", "b"], 100), rng.normal(size=(200, 1))
        >>> y = np.repeat([1.0, 3.0], 100) * X[:, 0] + 0.1 * rng.normal(size=200)
        >>> regressor = DPSVIHierarchicalRegressor(random_state=0)
        >>> for some in (groups == "a", groups == "b"):
        ...     regressor = regressor.partial_fit(X[some], y[some], groups[some])
        >>> regressor.n_iter_
        2
        """
        return self._partial_fit(X, y, groups=groups, sample_weight=sample_weight)

    def _read(self, X, y=None, *, reset, groups=None, sample_weight=None, **more):
        X, y = validate_data(
            self, unmasked(X), y, reset=reset, dtype=[np.float64, np.float32],
            y_numeric=is_regressor(self),
        )  # fmt: skip
        if reset:
            self._dtype = str(X.dtype)
        weight = self._weights_of_rows(sample_weight, len(X))
        labels, code = factorise(groups, len(X))
        if not weight.all():  # the others are as if they were not there
            used, code = np.unique(code[weight > 0], return_inverse=True)
            labels = None if labels is None else labels[used]
            X, y, weight = (array[weight > 0] for array in (X, y, weight))
        if reset:
            self._shift = np.average(X, axis=0, weights=weight) * self._n_constants
        order = np.argsort(code, kind="stable")
        rows = np.empty((len(X), self._n_coefficients + 2))
        rows[:, :-2] = self._design(X[order])
        rows[:, -2] = self._target(y, weight, reset, **more)[order]
        rows[:, -1] = weight[order]
        if not np.isfinite(rows[:, -1] @ np.square(rows[:, :-1])).all():
            largest = np.abs(rows[:, :-1]).max()
            raise ValueError(f"the squares of X or y overflow, the largest is {largest}")
        items = dense_items(rows, np.concatenate([[0], np.cumsum(np.bincount(code))]))
        self._training = labels, items  # see `_fitted`
        return items

    def _labels_in_data(self) -> tuple:
        labels, _ = self._training
        return () if labels is None else (labels,)

    @property
    def _n_constants(self) -> int:
        """Columns before those of the features: 1 with an intercept, else 0."""
        return int(self._started["fit_intercept"])

    @property
    def _n_coefficients(self) -> int:
        return self.n_features_in_ + self._n_constants

    def _design(self, X):
        """X as the model sees it, (n_samples, n_coefficients)."""
        design = np.ones((len(X), self._n_coefficients))
        design[:, self._n_constants :] = X - self._shift
        return design

    def _rows(self, items):
        """Rows of all groups as three arrays: x, (n_samples, D), y and weights, (n_samples,)."""
        rows = items.value.reshape(-1, self._n_coefficients + 2)
        return rows[:, :-2], rows[:, -2], rows[:, -1]

    # --- priors and first parameters ----------------------------------------------------------

    def _resolve_prior(self, X, weight, scale, n_groups):
        """Natural parameters and least pivots of the population's prior, and a wide variance.

        Parameters
        ----------
        X : float64 array, (n_samples, D)
            From :meth:`_design`.
        weight : float64 array, (n_samples,)
        scale : float
            Variance of y.
        n_groups : int

        Returns
        -------
        natural : float64 array, (D * D + D + 2,)
        floor : float64 array, (D,)
        wide : float64 array, (D,)
            Of coefficients whose term alone has the variance of y.
        """
        n = X.shape[1]
        square = np.einsum("n,nd,nd->d", weight, X, X) / weight.sum()
        rounding = np.zeros(n)
        rounding[self._n_constants :] = (1e-10 * self._shift) ** 2
        wide = scale / np.where(square > rounding, square, 1.0)
        nu = n + 2 if self.degrees_of_freedom_prior is None else self.degrees_of_freedom_prior
        check_number("degrees_of_freedom_prior", nu, low=n + 1, open_low=True)
        shift = self._to_shifted(n)
        if self.covariance_prior is None:
            covariance = np.diag(wide) / n_groups
        else:
            covariance = shift @ self._covariance("covariance_prior", n) @ shift.T
        mean = np.zeros(n)
        if self.mean_prior is not None:
            mean = shift @ self._array("mean_prior", (n,))
            mean[0] -= self._y_mean
        kappa, w_inv = self.mean_precision_prior, (nu - n - 1) * covariance
        psi = w_inv + kappa * np.outer(mean, mean)
        natural = np.concatenate([[kappa], kappa * mean, psi.ravel(), [nu]])
        return natural, np.diag(np.linalg.cholesky(w_inv)) ** 2, wide

    def _to_shifted(self, n):
        """The matrix that turns coefficients of the features into those of the shifted ones."""
        matrix = np.eye(n)
        if self._n_constants:
            matrix[0, 1:] = self._shift
        return matrix

    def _check_read(self, model) -> None:
        n, n_rows = self._n_coefficients, len(self._means)
        known = len(unpack(model.hyper)[0]) - self._n_constants
        io.check_equal("n_features", self.n_features_in_, known)
        check_number("_y_mean", self._y_mean)
        for name, shape in (
            ("_shift", (self.n_features_in_,)), ("_means", (n_rows, n)),
            ("_covariances", (n_rows, n, n)),
        ):  # fmt: skip
            io.check_equal(f"shape of {name}", vars(self)[name].shape, shape)
        if self._labels is None:
            io.check_equal("number of groups where _labels is None", n_rows - 1, 1)
        else:
            self._check_labels("_labels", self._labels, n_rows - 1)

    @staticmethod
    def _check_labels(name, labels, n) -> None:
        texts = isinstance(labels, list) and all(isinstance(one, str) for one in labels)
        numbers = isinstance(labels, list) and all(isinstance(one, int | float) for one in labels)
        if not (texts or numbers) or len(set(labels)) != n or len(labels) != n:
            raise ValueError(
                f"{name} must be a list of {n} different numbers or texts, "
                f"got {shortened(repr(labels))}"
            )

    # --- the fitted model ---------------------------------------------------------------------

    def _infer(self, state, items, posteriors: bool):
        """Means (J, D), covariances (J, D, D) and bounds (J,) of the groups."""
        n, n_groups = self._n_coefficients, count(items)
        room = n_groups if posteriors else 0
        means, covariances = np.empty((room, n)), np.empty((room, n, n))
        bound, (floor, _) = np.empty(n_groups), unpack(state.model.hyper)
        self._infer_groups(items, state.natural()[0], floor, means, covariances, bound)
        return means, covariances, bound

    def _bounds(self, state, items):
        return self._infer(state, items, posteriors=False)[2]

    def _population(self, natural, hyper):
        """The Normal-Wishart distribution as :func:`dpsvi.expfam.normal_wishart.kl` takes it."""
        n, (floor, _) = self._n_coefficients, unpack(hyper)
        row = natural[: n * n + n + 2].copy()
        normal_wishart.to_standard(row, floor)
        factor = row[n + 1 : -1].reshape(n, n)
        return row[0], row[1 : n + 1], row[-1] * factor @ factor.T, row[-1]

    def _divergence(self, state) -> float:
        hyper = state.model.hyper
        q = self._population(state.natural()[0], hyper)
        return float(normal_wishart.kl(q, self._population(state.model.prior[0], hyper)))

    def _fitted(self, state) -> dict:
        kappa, center, w_inv, nu = self._population(state.natural()[0], state.model.hyper)
        n = len(center)
        spread = w_inv / (nu - n - 1)  # E[Lambda^-1]
        if "_training" in vars(self):
            labels, items = self._training
            means, covariances, _ = self._infer(state, items, posteriors=True)
            # Last stands what is known of a group without rows, beta ~ N(mu, Lambda^-1).
            kept = {
                "_labels": None if labels is None else labels.tolist(),
                "_means": np.concatenate([means, [center]]),
                "_covariances": np.concatenate([covariances, [(1 + 1 / kappa) * spread]]),
            }
        else:  # read from a file
            kept = {name: vars(self)[name] for name in ("_labels", "_means", "_covariances")}
        back = np.linalg.inv(self._to_shifted(n))
        coef, intercept = self._of_features(kept["_means"])
        place = self._default_group(kept["_labels"])
        arrays = {
            "coef_": coef[place],
            "intercept_": intercept[place],
            "group_coef_": coef[:-1],
            "group_intercept_": intercept[:-1],
            "population_covariance_": back @ spread @ back.T,
        }
        groups = {"groups_": None if kept["_labels"] is None else np.array(kept["_labels"])}
        return kept | groups | {k: v.astype(self._dtype) for k, v in arrays.items()}

    def _of_features(self, coefficients):
        """Coefficients and intercepts of the features as they were given.

        `coefficients`, (..., D), are those of the columns of :meth:`_design`.
        """
        back = np.linalg.inv(self._to_shifted(coefficients.shape[-1]))
        unshifted, first = coefficients @ back.T, self._n_constants
        constant = unshifted[..., 0] + self._y_mean if first else np.zeros(unshifted.shape[:-1])
        return unshifted[..., first:], constant

    def _draw_posterior(self, n_samples, rng) -> dict:
        state = self._state
        kappa, center, w_inv, nu = self._population(state.natural()[0], state.model.hyper)
        factor = np.linalg.cholesky(w_inv / nu)
        means, spread, _ = normal_wishart.draw(kappa, center, factor, nu, n_samples, rng)
        known, root = self._means[:-1], np.linalg.cholesky(self._covariances[:-1])
        group_coef = np.empty((n_samples, len(known), self.n_features_in_))
        group_intercept = np.empty((n_samples, len(known)))
        for i in range(n_samples):
            noise = rng.standard_normal(known.shape)
            drawn = known + np.einsum("jde,je->jd", root, noise)
            group_coef[i], group_intercept[i] = self._of_features(drawn)
        coef, intercept = self._of_features(means)
        if self._labels is None:
            coef, intercept = group_coef[:, 0], group_intercept[:, 0]
        back = np.linalg.inv(self._to_shifted(len(center)))
        return {
            "coef": coef, "intercept": intercept, "group_coef": group_coef,
            "group_intercept": group_intercept, "population_covariance": back @ spread @ back.T,
        }  # fmt: skip

    def _like(self, X, groups=None):
        """Rows, and the numbers of their groups among those known and, behind these, new ones."""
        X, index = self._rows_and_groups(X, groups)
        new = index < 0
        if groups is None:
            code = np.arange(len(X))  # each may be of another group
        else:
            code = factorise(groups, len(X))[1]
        index[new] = len(self._means) - 1 + np.unique(code[new], return_inverse=True)[1]
        return X, index

    def _draw_linear(self, draw, like, rng):
        """``x^T beta`` of each row, given a draw of the parameters; new groups are drawn, too."""
        X, index = like
        slopes, levels = draw["group_coef"], draw["group_intercept"]
        n_new = max(0, index.max(initial=-1) + 1 - len(slopes))
        center = np.append(draw["intercept"], draw["coef"])[1 - self._n_constants :]
        new = rng.multivariate_normal(center, draw["population_covariance"], n_new)
        slopes = np.concatenate([slopes, new[:, self._n_constants :]])
        levels = np.concatenate([levels, new[:, 0] if self._n_constants else np.zeros(n_new)])
        return np.einsum("nd,nd->n", X, slopes[index]) + levels[index]

    @staticmethod
    def _default_group(labels) -> int:
        """Place in `_means` of rows whose group is not said: the only group, or the population."""
        return 0 if labels is None else -1

    def _project(self, X, groups):
        """Mean and variance of ``x^T beta`` for each row x, less the mean of y."""
        check_is_fitted(self, "_state")
        X, index = self._rows_and_groups(X, groups)
        mean, variance = np.empty(len(X)), np.empty(len(X))
        project(self._design(X), index, self._means, self._covariances, mean, variance)
        return mean, variance

    def _rows_and_groups(self, X, groups):
        """Checked X, and for each row the place of its group in `_means`, -1 for a new one."""
        X = self._points(X, reset=False)
        if groups is None:
            return X, np.full(len(X), self._default_group(self._labels))
        if self._labels is None:
            raise ValueError("groups must be None: the model was fitted without groups")
        labels, code = factorise(groups, len(X))
        return X, places(labels, self._labels)[code]
