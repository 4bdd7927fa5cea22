"""Hierarchical linear regression (paper, 7.6) by DPSVI.

    (mu, Lambda) ~ NW(m_0, kappa_0, W_0, nu_0),    tau ~ Gamma(a_0, b_0)
    beta_j ~ N(mu, Lambda^-1),                     y_j ~ N(X_j beta_j, tau^-1 I)

Items are groups; a local step (44) finds ``q(beta_j) = N(m_j, S_j)``,

    S_j = (nu W + E[tau] X_j^T X_j)^-1,    m_j = m + S_j E[tau] X_j^T (y_j - X_j m).

All parameters, ``kappa | kappa m | W^-1 + kappa m m^T | nu | a | b``, are one row of the engine's
matrix, for the reason that :mod:`dpsvi.models.gaussian_mixture` gives: the column totals, which
each thread keeps for itself, lose no addition to a race.  A group adds ``1 | m_j | m_j m_j^T + S_j
| 1 | n_j / 2 | E|y_j - X_j beta_j|^2 / 2``.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import r2_score

from dpsvi.estimators.engine_parameters import engine_parameters
from dpsvi.estimators.run_options import RestartOptions
from dpsvi.estimators.scikit_learn import RegressorMixin
from dpsvi.expfam import gamma
from dpsvi.families.hierarchical.estimator import HierarchicalEstimator
from dpsvi.families.hierarchical.population import (
    add_group,
    as_group,
    cholesky,
    first_sums,
    from_arrays,
    invert,
    keep_group,
    least_squares,
    natural_of,
    pack,
    read_population,
    rows_of,
    scratch_size,
    start_at_prior,
    surprise,
    unpack,
)
from dpsvi.kernels.digamma import digamma
from dpsvi.kernels.jit import kernel
from dpsvi.training.items import count
from dpsvi.training.state import State

# --- the local step ---------------------------------------------------------------------------


@kernel
def infer_group(rows, noise, group):
    """Fill mean and covariance of a group whose prior is known.

    Returns ``|y - X m_j|^2``, ``tr(X^T X S_j)`` and ``ln|S_j|``; `noise` is E[tau].  Each row
    counts as often as its last number, its weight, says.
    """
    n = group.mean.shape[0]
    precision, gradient = group.factor, group.gradient
    start_at_prior(group)
    for i in range(rows.shape[0]):
        error = rows[i, n]
        for d in range(n):
            error -= rows[i, d] * group.prior_mean[d]
        for d in range(n):
            weighted = noise * rows[i, n + 1] * rows[i, d]
            gradient[d] += weighted * error
            for e in range(d + 1):
                precision[d, e] += weighted * rows[i, e]
    log_det = cholesky(precision)
    invert(precision, group.covariance)
    spread = float(n)  # E[tau] X^T X = S_j^-1 - nu W
    for d in range(n):
        group.mean[d] = group.prior_mean[d]
        for e in range(n):
            group.mean[d] += group.covariance[d, e] * gradient[e]
            spread -= group.covariance[d, e] * group.prior_precision[d, e]
    square = 0.0
    for i in range(rows.shape[0]):
        error = rows[i, n]
        for d in range(n):
            error -= rows[i, d] * group.mean[d]
        square += rows[i, n + 1] * error * error
    return square, spread / noise, -log_det


def local(shared, scale, hyper, items, batch, work):
    """See :class:`dpsvi.base.Model`; items are groups, the one row is always touched."""
    floor, prior = unpack(hyper)
    n, natural, stats = floor.shape[0], natural_of(work, scale, prior), work.stats[0]
    noise, group = natural[-2] / natural[-1], as_group(work.scratch, n)
    read_population(natural[:-2], floor, group)
    for i in batch:
        rows = rows_of(items, i, n)
        square, spread, _ = infer_group(rows, noise, group)
        add_group(group, stats[:-2])
        stats[-2] += 0.5 * rows[:, n + 1].sum()
        stats[-1] += 0.5 * (square + spread)
    work.touched[0] = 0
    return 1


@kernel
def infer(items, natural, floor, means, covariances, bound):
    """Posteriors (J, D), (J, D, D) and terms of the ELBO (J,) of all groups, overwritten.

    Where there is no room for posteriors they are left out.

    Of the ELBO's terms in 7.6 ``tr(X^T X S_j)`` and ``tr(nu W S_j)`` cancel against the entropy.
    """
    n = floor.shape[0]
    natural, group = natural.copy(), as_group(np.empty(scratch_size(n)), n)
    noise, log_noise = natural[-2] / natural[-1], digamma(natural[-2]) - math.log(natural[-1])
    constant = read_population(natural[:-2], floor, group)
    for i in range(bound.shape[0]):
        rows = rows_of(items, i, n)
        square, _, log_det = infer_group(rows, noise, group)
        if means.shape[0] > 0:
            keep_group(group, means, covariances, i)
        fit = rows[:, n + 1].sum() * (log_noise - math.log(2.0 * math.pi)) - noise * square
        bound[i] = constant + 0.5 * (fit + log_det - surprise(group))


_KIND = "hierarchical_regression"

# --- the estimator ----------------------------------------------------------------------------


@engine_parameters("groups", batch_size=32)
class DPSVIHierarchicalRegressor(RegressorMixin, HierarchicalEstimator):
    """Linear regression with coefficients of its own for each group, by DPSVI.

    The coefficients of the groups, intercept included, are draws from one Gaussian whose mean and
    covariance are learned with them: groups with few rows are pulled to the mean, as far as the
    other groups and their own noise suggest.  Without groups all rows are one group.

    Parameters
    ----------
    {fit_intercept}
    mean_prior : array of shape (n_coefficients,) or None, default=None
        m_0, prior mean of the population's mean: of the intercept, if there is one, and of the
        coefficients.  None is 0 for each feature and the mean of y for rows of average features.
    {mean_precision_prior}
    covariance_prior : array of shape (n_coefficients, n_coefficients) or None, default=None
        Prior mean of the population's covariance, positive definite; W_0^-1 is it times
        nu_0 - n_coefficients - 1.  None is diagonal: the variances with which a term alone would
        have the variance of y in the first data, divided by the number of groups.
    {degrees_of_freedom_prior}
    noise_shape_prior, noise_rate_prior : float or None, default=None
        a_0, b_0 > 0 of the Gamma prior of the noise precision tau.  None is 0.001, and 0.001 times
        the variance of y in the first data: as much as 0.002 rows.
    {engine}

    Attributes
    ----------
    coef_ : ndarray of shape (n_features_in_,)
    intercept_ : float
        Posterior mean of the population's mean; without groups, of the one group.
    noise_precision_ : float
        E[tau].
    {groups}

    Notes
    -----
    {notes}

    References
    ----------
    Mohamad, Alamri, Bouchachia (2022), Machine Learning, doi:10.1007/s10994-022-06243-3.
    Gelman, Hill (2007), Data Analysis Using Regression and Multilevel/Hierarchical Models, 13.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> groups, X = np.repeat(["a", "b", "c"], 100), rng.normal(size=(300, 1))
    >>> slope = np.repeat([1.0, 2.0, 3.0], 100)
    >>> y = slope * X[:, 0] + 0.1 * rng.normal(size=300)
    >>> regressor = DPSVIHierarchicalRegressor(random_state=0).fit(X, y, groups)
    >>> regressor.group_coef_[:, 0].round(1)
    array([1., 2., 3.])
    >>> mean, std = regressor.predict([[1.0], [1.0]], groups=["c", "unknown"], return_std=True)
    >>> mean.round(), bool(std[0] < 0.2), bool(std[1] > 0.5)
    (array([3., 2.]), True, True)
    """

    intercept_: float
    noise_precision_: float

    def __init__(
        self, *, fit_intercept: bool = True, mean_prior: ArrayLike | None = None,
        mean_precision_prior: float = 0.01, covariance_prior: ArrayLike | None = None,
        degrees_of_freedom_prior: float | None = None, noise_shape_prior: float | None = None,
        noise_rate_prior: float | None = None,
        **run: Unpack[RestartOptions],
    ) -> None:  # fmt: skip
        self.fit_intercept = fit_intercept
        self.mean_prior = mean_prior
        self.mean_precision_prior = mean_precision_prior
        self.covariance_prior = covariance_prior
        self.degrees_of_freedom_prior = degrees_of_freedom_prior
        self.noise_shape_prior = noise_shape_prior
        self.noise_rate_prior = noise_rate_prior

    _kind = _KIND
    _model = staticmethod(partial(from_arrays, _KIND, local))

    def check_params(self) -> None:
        """Raise ValueError or TypeError for the first parameter that is not allowed."""
        super().check_params()
        self._check_positive("noise_shape_prior", "noise_rate_prior")

    def _target(self, y, weight, reset):
        if y.dtype.kind not in "biuf":
            raise ValueError(f"y must be numbers, got {y[0]!r} ({y.dtype})")
        if reset:
            self._y_mean = float(np.average(y, weights=weight)) if self._n_constants else 0.0
        return y - self._y_mean

    def _start(self, items, total, rng):
        X, y, weight = self._rows(items)
        n_groups, n_rows = count(items), weight.sum()
        scale = weight @ y**2 / n_rows or 1.0
        natural, floor, wide = self._resolve_prior(X, weight, scale, n_groups)
        shape, rate = self.noise_shape_prior, self.noise_rate_prior
        shape = 1e-3 if shape is None else shape
        natural = np.append(natural, [shape, 1e-3 * scale if rate is None else rate])
        pooled = least_squares(X, y, weight)
        noise = [0.5 * n_rows, 0.5 * weight @ (y - X @ pooled) ** 2]
        sums = np.append(first_sums(pooled, wide, n_groups), noise)
        model = self._model((1, len(natural)), natural[None], pack(natural, floor))
        return State.resume(model, sums[None] * (total / n_groups), self._n_threads)

    # --- the fitted model ---------------------------------------------------------------------

    _infer_groups = staticmethod(infer)

    def _divergence(self, state) -> float:
        (*_, a, b), (*_, a0, b0) = state.natural()[0], state.model.prior[0]
        return super()._divergence(state) + float(gamma.kl(a, b, a0, b0))

    def _fitted(self, state) -> dict:
        *_, a, b = state.natural()[0]
        return super()._fitted(state) | {"noise_precision_": float(a / b)}

    def _draw_posterior(self, n_samples, rng) -> dict:
        *_, a, b = self._state.natural()[0]
        noise = {"noise_precision": rng.gamma(a, 1 / b, n_samples)}
        return super()._draw_posterior(n_samples, rng) | noise

    def _draw_data(self, draw, like, rng):
        mean = self._draw_linear(draw, like, rng)
        noise = rng.standard_normal(len(mean)) / np.sqrt(draw["noise_precision"])
        return (mean + noise).astype(self._dtype)

    def predict(self, X: Any, groups: ArrayLike | None = None, return_std: bool = False) -> Any:
        """Mean, and if asked for standard deviation, of y given x.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        groups : array-like of shape (n_samples,) or None, default=None
            Groups that were not known to `fit` are predicted from the population alone, as are
            all rows when groups were given to `fit` and are not here.
        return_std : bool, default=False

        Returns
        -------
        mean, std : ndarrays of shape (n_samples,)
            `std` only if asked for; it counts the noise and what is not known of the coefficients.

        Examples
        --------
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> groups, X = np.repeat(["a", "b"], 100), rng.normal(size=(200, 1))
        >>> y = np.repeat([1.0, 3.0], 100) * X[:, 0] + 0.1 * rng.normal(size=200)
        >>> regressor = DPSVIHierarchicalRegressor(random_state=0).fit(X, y, groups)
        >>> regressor.predict([[1.0], [1.0]], groups=["a", "b"]).round(1)
        array([1., 3.])
        """
        mean, variance = self._project(X, groups)
        mean = (mean + self._y_mean).astype(self._dtype, copy=False)
        if not return_std:
            return mean
        return mean, np.sqrt(variance + 1 / self.noise_precision_).astype(self._dtype, copy=False)

    def score(
        self, X: Any, y: Any, *, groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:  # fmt: skip
        """Coefficient of determination, R^2, of :meth:`predict`.

        Examples
        --------
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> groups, X = np.repeat(["a", "b"], 100), rng.normal(size=(200, 1))
        >>> y = np.repeat([1.0, 3.0], 100) * X[:, 0] + 0.1 * rng.normal(size=200)
        >>> regressor = DPSVIHierarchicalRegressor(random_state=0).fit(X, y, groups)
        >>> regressor.score(X, y, groups=groups) > 0.99
        True
        """
        return r2_score(y, self.predict(X, groups), sample_weight=sample_weight)


ESTIMATOR = DPSVIHierarchicalRegressor
