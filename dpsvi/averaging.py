"""Averaged parameters: of the last part of a fit, and of several fits.

Within a fit a mean has less variance from the same documents (future work of the paper).  With a
constant rate, the paper's for its workers, parameters end up wandering around an optimum, as far
from it as the statistics of a few batches are noisy; their mean does not (Polyak and Juditsky 1992;
Mandt, Hoffman and Blei 2017 on constant rates).  ``lam = prior + scale * rows`` is linear in the
statistics of all batches so far, so a mean of lam is one with averaged statistics, and valid.

Fits that start independently of each other have the same components in different orders, and some
of their own.  A mean of parameters as they are mixes what has nothing in common; components are to
be matched before (Campbell and How 2014, Approximate decentralized Bayesian inference).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.utils.validation import check_is_fitted

from dpsvi.base import Event
from dpsvi.errors import check_number
from dpsvi.training.state import State


class Averaged:
    """Mean of the parameters over the last part of a fit; one of an estimator's `callbacks`.

    Parameters
    ----------
    start : float, >= 0
        Passes over the data after which parameters count, every time that the estimator looks
        (`evaluate_every`).

    Attributes
    ----------
    n : int
        How many parameters count so far.
    mean : float64 array, shape of the model
        Their mean, natural parameters, with the last prior.

    Examples
    --------
    >>> averaged = Averaged(start=3)
    >>> lda = DPSVILDA(50, learning_rate=0.02, max_iter=4, evaluate_every=0.05,
    ...                callbacks=[averaged]).fit(X)  # doctest: +SKIP
    >>> averaged.fitted(lda).perplexity(X_test)  # doctest: +SKIP
    """

    start: float
    n: int
    mean: np.ndarray

    def __init__(self, start: float) -> None:
        check_number("start", start, low=0)
        self.start, self.n, self.mean = start, 0, np.zeros(())
        self._model, self._statistics = None, np.zeros(())

    def __call__(self, event: Event) -> None:
        """Take the parameters of one :class:`~dpsvi.base.Event` into account."""
        if event.epoch <= self.start:
            return
        self.n += 1
        learned = event.state.learned().astype(np.float64)
        self._statistics = self._statistics + (learned - self._statistics) / self.n
        self._model = event.state.model  # a fit may learn its prior: the last one holds
        self.mean = self._model.prior + self._statistics

    def fitted(self, estimator: Any) -> Any:
        """An estimator like `estimator`, fitted, with the mean as its parameters.

        What only a fit to data can tell, `lower_bound_` or `bound_`, is NaN; `history_` is empty.

        Raises
        ------
        ValueError
            Nothing was averaged: the fit ended before `start`.

        Examples
        --------
        >>> import numpy as np
        >>> from dpsvi import DPSVIGaussianMixture
        >>> X = np.random.default_rng(0).normal(size=(300, 1))
        >>> averaged = Averaged(start=1)
        >>> mixture = DPSVIGaussianMixture(1, max_iter=4, callbacks=[averaged]).fit(X)
        >>> bool(abs(averaged.fitted(mixture).means_[0, 0] - X.mean()) < 0.1)
        True
        """
        if not self.n:
            raise ValueError(f"nothing was averaged: no look after {self.start:g} passes")
        return _fitted_like(estimator, self.mean, self._model)


def matching(first: Any, other: Any) -> np.ndarray:
    """The components of `other` that are those of `first`, in the order of these.

    Of all ways to pair them this is the one with the least sum of distances (Hungarian method).
    The distance of two components is that of Bhattacharyya, -ln of the integral of sqrt(p q),
    between their expected distributions: over words of topics, over points of mixtures.

    Parameters
    ----------
    first, other : estimators
        Fitted, of the same class and with the same parameters, as in :func:`mean_of`.

    Returns
    -------
    int array, (n_components,)

    Raises
    ------
    NotFittedError
    ValueError
        They are no such estimators.
    NotImplementedError
        The model does not say how unlike two components are: only topic models and mixtures do.

    Examples
    --------
    >>> import numpy as np
    >>> from dpsvi import DPSVIGaussianMixture
    >>> X = np.random.default_rng(0).normal(size=(300, 1)) + np.repeat([0, 10, 20], 100)[:, None]
    >>> first, other = (DPSVIGaussianMixture(3, random_state=seed).fit(X) for seed in (0, 1))
    >>> order = matching(first, other)
    >>> bool(np.allclose(first.means_, other.means_[order], atol=0.5))
    True
    """
    for estimator in (first, other):
        check_is_fitted(estimator, "_state")
    if type(other) is not type(first):
        raise ValueError(
            f"estimators must be of one class, got {type(first).__name__} and "
            f"{type(other).__name__}"
        )
    for name, value in {**first._started, "n_features_in_": first.n_features_in_}.items():
        its = (vars(other) | other._started)[name]
        if its != value:
            raise ValueError(f"{name} must be the same in all fits, got {value!r} and {its!r}")
    columns = [list(getattr(e, "feature_names_in_", ())) for e in (first, other)]
    if all(columns) and columns[0] != columns[1]:
        raise ValueError(
            f"feature_names_in_ must be the same in all fits, got {columns[0]} and {columns[1]}"
        )
    return linear_sum_assignment(first._distances(other))[1]


def mean_of(estimators: Sequence[Any]) -> Any:
    """An estimator whose posterior is the mean of several, after components have been matched.

    The mean is that of natural parameters, each fit counting as much.  Components go in the order
    of the first fit, to which all others are matched (:func:`matching`).  Where fits have found
    different components the mean is poor: compare its score with theirs.

    Parameters
    ----------
    estimators : sequence of estimators
        Fitted to the same data, or to samples of them, with the same number of components and the
        same priors, but for what each has learned of them; one at least.

    Returns
    -------
    estimator
        Of the same class, fitted, with the parameters of the first one.  `partial_fit` goes on from
        it as from the first one.  What only a fit to data can tell, `lower_bound_` or `bound_`, is
        NaN; `history_` is empty.

    Raises
    ------
    ValueError
        There are no estimators, or they differ in class, features or parameters; or some of
        diagonal mixtures were fitted to points with missing numbers, and others were not.
    NotFittedError, NotImplementedError
        As :func:`matching`.

    Examples
    --------
    >>> from dpsvi import DPSVIGaussianMixture
    >>> X = np.random.default_rng(0).normal(size=(900, 1)) + np.repeat([0, 10, 20], 300)[:, None]
    >>> fits = [DPSVIGaussianMixture(3, random_state=seed).fit(X) for seed in range(4)]
    >>> sorted(mean_of(fits).means_.round().astype(int).ravel().tolist())
    [0, 10, 20]
    """
    if not len(estimators):
        raise ValueError("there must be one estimator at least, got none")
    first = estimators[0]
    orders = [matching(first, other) for other in estimators]
    model = first._state.model
    lams = [other._reordered(order, model) for other, order in zip(estimators, orders, strict=True)]
    return _fitted_like(first, np.mean(lams, axis=0, dtype=np.float64), model)


def _fitted_like(estimator, lam, model):
    """An estimator with the parameters of `estimator`, fitted, at the natural parameters `lam`."""
    params = estimator.get_params(deep=False) | {"callbacks": None}
    other, before = type(estimator)(**params), estimator._state
    rows = (lam - model.prior).astype(model.real)
    state = State.resume(model, rows, 1, step=before.step, items=before.items)
    vars(other).update(
        estimator._attributes(state), history_=[], interrupted_=0, exchanges_={},
        n_iter_=estimator.n_iter_, n_batch_iter_=state.step,
    )  # fmt: skip
    for bound in {"lower_bound_", "bound_"} & vars(estimator).keys():
        setattr(other, bound, np.nan)
    return other
