"""The prior of Gaussian components from parameters of an estimator, whatever these are called."""

from __future__ import annotations

import numpy as np

from dpsvi.errors import check_number
from dpsvi.families.mixtures.components import Prior


def resolve_prior(
    estimator, X, diagonal, *, precision, mean, freedom, covariance, weight=None
) -> Prior:
    """The prior as asked for; what is None comes from X.

    Parameters
    ----------
    estimator : ArrayEstimator
    X : float64 array, (n, D)
    diagonal : bool
        Covariances are.
    precision, mean, freedom, covariance : str
        Names of its parameters kappa_0, which is checked already, m_0, nu_0 and W_0^-1.
    weight : float64 array, (n,), or None
        How often each row of X counts; None: once.

    Raises
    ------
    ValueError, TypeError
        nu_0 is not above D - 1, or 0 if `diagonal`; m_0 or W_0^-1 are not of D dimensions, or the
        latter is not positive definite; or the squares of X, which it is to come from, overflow.
    """
    n = X.shape[1]
    kappa, nu = getattr(estimator, precision), getattr(estimator, freedom)
    if nu is None:
        nu = 1 if diagonal else n
    check_number(freedom, nu, low=0 if diagonal else n - 1, open_low=True)
    if getattr(estimator, covariance) is None:
        scale = default_covariance(X, diagonal, weight)
        if not np.isfinite(scale).all():
            raise ValueError(f"the squares of X overflow, its largest value is {np.abs(X).max():g}")
    else:
        scale = estimator._covariance(covariance, n, diagonal)
    given = getattr(estimator, mean) is not None
    return Prior(
        1.0 if kappa is None else float(kappa),
        estimator._array(mean, (n,)) if given else np.average(X, axis=0, weights=weight),
        float(nu),
        scale,
    )


def default_covariance(X, diagonal=False, weight=None):
    """Covariance of the rows of X, (D, D), or its diagonal, (D,), made positive definite.

    A millionth of every variance is added to it, that of constant features taken as 1.  `weight`,
    (n,), says how often each row counts; None: once.
    """
    mean, n_chunk, n = np.average(X, axis=0, weights=weight), 10_000, X.shape[1]
    scatter = np.zeros(n if diagonal else (n, n))
    for first in range(0, len(X), n_chunk):
        here = X[first : first + n_chunk] - mean
        if weight is not None:
            here *= np.sqrt(weight[first : first + n_chunk, None])
        scatter += (here * here).sum(axis=0) if diagonal else here.T @ here
    covariance = scatter / max(1, (len(X) if weight is None else weight.sum()) - 1)
    variance = covariance if diagonal else np.diag(covariance)
    more = 1e-6 * np.where(variance > 0, variance, 1.0)
    return covariance + (more if diagonal else np.diag(more))
