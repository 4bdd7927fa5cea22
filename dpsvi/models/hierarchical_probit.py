"""Hierarchical probit regression (paper, 7.7; Albert and Chib 1993) by DPSVI.

    (mu, Lambda) ~ NW(m_0, kappa_0, W_0, nu_0),    beta_j ~ N(mu, Lambda^-1)
    a_i ~ N(x_i^T beta_j, 1),                      y_i = 1 if a_i > 0 else 0

Items are groups.  The local step (44) finds ``q(beta_j) = N(m_j, S_j)`` and truncated normal
distributions of the a_i, with s_i = 2 y_i - 1 and the inverse Mills ratio r:

    S_j = (nu W + X^T X)^-1,    m_j = S_j (nu W m + X^T E[a]),
    E[a_i] = x_i^T m_j + s_i r(s_i x_i^T m_j).

S_j needs no iteration, and the equations of m_j and E[a] together say that the gradient of

    sum_i ln Phi(s_i x_i^T m_j) - (m_j - m)^T nu W (m_j - m) / 2

is 0.  It is concave, so that Newton's method finds in a few steps what the two equations, taken in
turn, approach slowly.  The parameters ``kappa | kappa m | W^-1 + kappa m m^T | nu`` are one row of
the engine's matrix, for the reason that :mod:`dpsvi.models.gaussian_mixture` gives.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr
from sklearn.metrics import accuracy_score
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from dpsvi.estimators.engine_parameters import engine_parameters
from dpsvi.estimators.fitting import fit_method
from dpsvi.estimators.run_options import RestartOptions
from dpsvi.estimators.scikit_learn import ClassifierMixin
from dpsvi.families.hierarchical.estimator import HierarchicalEstimator
from dpsvi.families.hierarchical.population import (
    add_group,
    as_group,
    first_sums,
    from_arrays,
    keep_group,
    least_squares,
    natural_of,
    pack,
    read_population,
    rows_of,
    scratch_size,
    surprise,
    unpack,
)
from dpsvi.families.hierarchical.probit import infer_group
from dpsvi.kernels.jit import kernel
from dpsvi.training.items import count
from dpsvi.training.state import State

# --- the local step ---------------------------------------------------------------------------


def local(shared, scale, hyper, items, batch, work):
    """See :class:`dpsvi.base.Model`; items are groups, the one row is always touched."""
    floor, prior = unpack(hyper)
    n, natural, stats = floor.shape[0], natural_of(work, scale, prior), work.stats[0]
    group = as_group(work.scratch, n)
    read_population(natural, floor, group)
    for i in batch:
        infer_group(rows_of(items, i, n), group)
        add_group(group, stats)
    work.touched[0] = 0
    return 1


@kernel
def infer(items, natural, floor, means, covariances, bound):
    """Posteriors (J, D), (J, D, D) and terms of the ELBO (J,) of all groups, overwritten.

    Where there is no room for posteriors they are left out.  Of the ELBO's terms in 7.7
    ``x_i^T S_j x_i`` and ``tr(nu W S_j)`` cancel against the entropy.
    """
    n = floor.shape[0]
    natural, group = natural.copy(), as_group(np.empty(scratch_size(n)), n)
    constant = read_population(natural, floor, group)
    for i in range(bound.shape[0]):
        log_likelihood, log_det = infer_group(rows_of(items, i, n), group)
        if means.shape[0] > 0:
            keep_group(group, means, covariances, i)
        bound[i] = constant + log_likelihood + 0.5 * (log_det - surprise(group))


_KIND = "hierarchical_probit"

# --- the estimator ----------------------------------------------------------------------------


@engine_parameters("groups", batch_size=32)
class DPSVIHierarchicalProbit(ClassifierMixin, HierarchicalEstimator):
    """Binary probit regression with coefficients of its own for each group, by DPSVI.

    The coefficients of the groups, intercept included, are draws from one Gaussian whose mean and
    covariance are learned with them: groups with few rows are pulled to the mean, as far as the
    other groups suggest.  Without groups all rows are one group.

    Parameters
    ----------
    {fit_intercept}
    mean_prior : array of shape (n_coefficients,) or None, default=None
        m_0, prior mean of the population's mean: of the intercept, if there is one, and of the
        coefficients.  None is 0, for the intercept at average features.
    {mean_precision_prior}
    covariance_prior : array of shape (n_coefficients, n_coefficients) or None, default=None
        Prior mean of the population's covariance, positive definite; W_0^-1 is it times
        nu_0 - n_coefficients - 1.  None is diagonal: the variances with which a term alone would
        have variance 1, that of the noise, divided by the number of groups in the first data.
    {degrees_of_freedom_prior}
    {engine}

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        Labels in y; positive coefficients speak for the second.
    coef_ : ndarray of shape (1, n_features_in_)
    intercept_ : ndarray of shape (1,)
        Posterior mean of the population's mean; without groups, of the one group.
    {groups}

    Notes
    -----
    The posterior in which coefficients and latent variables are independent is too sure of the
    coefficients, and makes groups more alike than they are, the more so the fewer rows they have.

    {notes}

    References
    ----------
    Mohamad, Alamri, Bouchachia (2022), Machine Learning, doi:10.1007/s10994-022-06243-3.
    Albert, Chib (1993), Journal of the American Statistical Association 88.
    Consonni, Marin (2007), Computational Statistics and Data Analysis 52.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> groups, X = np.repeat(["a", "b"], 500), rng.normal(size=(1000, 1))
    >>> slope = np.repeat([1.0, -1.0], 500)
    >>> y = np.where(slope * X[:, 0] + rng.normal(size=1000) > 0, "yes", "no")
    >>> probit = DPSVIHierarchicalProbit(random_state=0).fit(X, y, groups)
    >>> probit.predict([[2.0], [2.0]], groups=["a", "b"])
    array(['yes', 'no'], dtype='<U3')
    """

    classes_: np.ndarray
    intercept_: np.ndarray

    def __init__(
        self, *, fit_intercept: bool = True, mean_prior: ArrayLike | None = None,
        mean_precision_prior: float = 0.01, covariance_prior: ArrayLike | None = None,
        degrees_of_freedom_prior: float | None = None,
        **run: Unpack[RestartOptions],
    ) -> None:  # fmt: skip
        self.fit_intercept = fit_intercept
        self.mean_prior = mean_prior
        self.mean_precision_prior = mean_precision_prior
        self.covariance_prior = covariance_prior
        self.degrees_of_freedom_prior = degrees_of_freedom_prior

    # --- fitting ------------------------------------------------------------------------------

    _kind = _KIND
    _model = staticmethod(partial(from_arrays, _KIND, local))
    _extra = (*HierarchicalEstimator._extra, "_classes")

    def __sklearn_tags__(self) -> Any:
        """Two classes only."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    @fit_method
    def partial_fit(
        self, X: Any, y: Any, groups: ArrayLike | None = None, classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:  # fmt: skip
        """Go on learning the population with one pass over other groups, the next of a stream.

        A group whose label came before counts as a new one; known groups, `groups_`, are those of
        the last call.  The first call also sets the priors that are None and the first parameters.

        Parameters
        ----------
        X, y, groups, sample_weight : as in :meth:`fit`
        classes : array-like of shape (2,) or None, default=None
            The classes, at the first call; None: those of its y.

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> groups, X = np.repeat(["a", "b"], 200), rng.normal(size=(400, 1))
        >>> y = np.where(np.repeat([4, -4], 200) * X[:, 0] + rng.normal(size=400) > 0, "yes", "no")
        >>> probit = DPSVIHierarchicalProbit(random_state=0)
        >>> for some in (groups == "a", groups == "b"):
        ...     probit = probit.partial_fit(X[some], y[some], groups[some], classes=["no", "yes"])
        >>> probit.n_iter_
        2
        """
        more = dict(groups=groups, sample_weight=sample_weight, classes=classes)
        return self._partial_fit(X, y, **more)

    def _target(self, y, weight, reset, classes=None):
        check_classification_targets(y)
        if reset:
            kind = type_of_target(y, input_name="y", raise_unknown=True)
            if kind != "binary":
                raise ValueError(
                    f"Only binary classification is supported. The type of the target is {kind}."
                )
            known = np.unique(y if classes is None else classes)
            if len(known) != 2:
                raise ValueError(f"two classes are needed, got {len(known)} class: {known}")
            self._classes = known.tolist()
        elif classes is not None and np.unique(classes).tolist() != self._classes:
            raise ValueError(f"classes were {self._classes} when the fit started, got {classes!r}")
        unknown = np.setdiff1d(y, self._classes)
        if len(unknown):
            raise ValueError(f"y must hold the classes {self._classes} only, it has {unknown}")
        return np.where(y == self._classes[1], 1.0, -1.0)

    def _labels_in_data(self) -> tuple:
        return *super()._labels_in_data(), self._classes

    def _start(self, items, total, rng):
        X, signs, weight = self._rows(items)
        n_groups = count(items)
        natural, floor, wide = self._resolve_prior(X, weight, 1.0, n_groups)
        # E[s | x] = 2 Phi(x^T beta) - 1, about 0.8 x^T beta
        pooled = least_squares(X, signs, weight) / 0.8
        model = self._model((1, len(natural)), natural[None], pack(natural, floor))
        sums = first_sums(pooled, wide, n_groups) * (total / n_groups)
        return State.resume(model, sums[None], self._n_threads)

    def _check_read(self, model) -> None:
        super()._check_read(model)
        self._check_labels("_classes", self._classes, 2)

    # --- the fitted model ---------------------------------------------------------------------

    _infer_groups = staticmethod(infer)

    def _fitted(self, state) -> dict:
        fitted = super()._fitted(state)
        return fitted | {
            "classes_": np.array(self._classes),
            "coef_": fitted["coef_"][None],
            "intercept_": fitted["intercept_"][None],
        }

    def _draw_posterior(self, n_samples, rng) -> dict:
        drawn = super()._draw_posterior(n_samples, rng)
        return drawn | {name: drawn[name][:, None] for name in ("coef", "intercept")}

    def _draw_data(self, draw, like, rng):
        mean = self._draw_linear(draw, like, rng)
        return self.classes_[(mean + rng.standard_normal(len(mean)) > 0).astype(int)]

    def predict_proba(self, X: Any, groups: ArrayLike | None = None) -> np.ndarray:
        """Probabilities of the two classes, what is not known of the coefficients included.

        ``E[Phi(x^T beta)] = Phi(x^T m / sqrt(1 + x^T S x))`` for beta ~ N(m, S).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        groups : array-like of shape (n_samples,) or None, default=None
            Groups that were not known to `fit` are predicted from the population alone, as are
            all rows when groups were given to `fit` and are not here.

        Returns
        -------
        ndarray of shape (n_samples, 2)

        Examples
        --------
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> groups, X = np.repeat(["a", "b"], 200), rng.normal(size=(400, 1))
        >>> y = np.where(np.repeat([4, -4], 200) * X[:, 0] + rng.normal(size=400) > 0, "yes", "no")
        >>> probit = DPSVIHierarchicalProbit(random_state=0).fit(X, y, groups)
        >>> probit.predict_proba([[3.0]], groups=["a"]).round()
        array([[0., 1.]])
        """
        mean, variance = self._project(X, groups)
        t = mean / np.sqrt(1 + variance)
        return np.stack([ndtr(-t), ndtr(t)], axis=1).astype(self._dtype, copy=False)

    def predict(self, X: Any, groups: ArrayLike | None = None) -> np.ndarray:
        """The more probable class of each row, (n_samples,); `groups` as in `predict_proba`.

        Examples
        --------
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> groups, X = np.repeat(["a", "b"], 200), rng.normal(size=(400, 1))
        >>> y = np.where(np.repeat([4, -4], 200) * X[:, 0] + rng.normal(size=400) > 0, "yes", "no")
        >>> probit = DPSVIHierarchicalProbit(random_state=0).fit(X, y, groups)
        >>> probit.predict([[3.0], [3.0]], groups=["a", "b"]).tolist()
        ['yes', 'no']
        """
        mean, _ = self._project(X, groups)
        return self.classes_[(mean > 0).astype(int)]

    def score(
        self, X: Any, y: Any, *, groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:  # fmt: skip
        """Share of rows that :meth:`predict` gets right.

        Examples
        --------
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> groups, X = np.repeat(["a", "b"], 200), rng.normal(size=(400, 1))
        >>> y = np.where(np.repeat([4, -4], 200) * X[:, 0] + rng.normal(size=400) > 0, "yes", "no")
        >>> probit = DPSVIHierarchicalProbit(random_state=0).fit(X, y, groups)
        >>> probit.score(X, y, groups=groups) > 0.8
        True
        """
        return float(accuracy_score(y, self.predict(X, groups), sample_weight=sample_weight))


ESTIMATOR = DPSVIHierarchicalProbit
