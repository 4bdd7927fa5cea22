"""What the classifiers fitted by DPSGD share: scikit-learn's conventions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy.optimize import OptimizeResult
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from dpsvi import engines
from dpsvi.cluster.ranks.world import agree
from dpsvi.errors import as_random_state, check_number
from dpsvi.estimators.docstrings import fill
from dpsvi.estimators.scikit_learn import BaseEstimator, ClassifierMixin
from dpsvi.optimize.dpsgd import DPSGD

_RANDOM_STATE = """\
    random_state : int, RandomState, Generator or None, default=None
        Of the first weights, where they are random, and of the order of the samples, unless the
        optimizer has a `random_state` of its own."""
_ATTRIBUTES = """\
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    n_iter_ : int
        Passes over the samples.
    result_ : scipy.optimize.OptimizeResult
        What :meth:`DPSGD.minimize` returned."""


class DPSGDClassifier(ClassifierMixin, BaseEstimator):
    """Base of :mod:`dpsvi.optimize.logistic` and :mod:`dpsvi.optimize.network`.

    A subclass has the parameters `alpha`, `optimizer` and `random_state` and defines

    * ``_problem(X, y, n_classes, rng) -> (Objective, x0)``, y from 0 to n_classes - 1;
    * ``_take(x)``, which notes the parameters found as fitted attributes;
    * ``_scores(X)`` and ``_probabilities(scores)``, both (n_samples, n_classes).
    """

    classes_: np.ndarray
    n_features_in_: int
    n_iter_: int
    result_: OptimizeResult
    _default: ClassVar[DPSGD]
    _sparse: ClassVar[str | bool] = False  # as `accept_sparse` of scikit-learn

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name, text in (("attributes", _ATTRIBUTES), ("random_state", _RANDOM_STATE)):
            cls.__doc__ = fill(cls.__doc__, name, text)

    def fit(self, X: Any, y: Any) -> Self:
        """Learn to tell the classes apart.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            float32 stays, all else becomes float64.
        y : array-like of shape (n_samples,)
            Labels of at least two classes.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            A parameter is not allowed, or the data are not finite, or of one class only.
        DivergedError
            The learning rate is too large.

        Examples
        --------
        >>> import numpy as np
        >>> from dpsvi import DPSGDLogisticRegression
        >>> X = np.random.default_rng(0).normal(size=(500, 2))
        >>> y = X[:, 0] > X[:, 1]
        >>> model = DPSGDLogisticRegression(random_state=0).fit(X, y)
        >>> model.classes_
        array([False,  True])
        """
        check_number("alpha", self.alpha, low=0)
        if not isinstance(self.optimizer, DPSGD | None):
            raise TypeError(f"optimizer must be a DPSGD or None, got {self.optimizer!r}")
        X, y = validate_data(
            self, X, y, accept_sparse=self._sparse, dtype=[np.float64, np.float32]
        )
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        classes, codes = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(f"y must have at least 2 classes, got 1 class: {classes[0]!r}")
        optimizer = self.optimizer or self._default
        try:
            optimizer = replace(optimizer, weight_decay=self.alpha)
        except ValueError as error:
            raise ValueError(f"alpha={self.alpha!r}: {error}") from None
        rng = as_random_state(self.random_state)
        if self.random_state is None and engines.get(optimizer.engine).collective:
            rng = np.random.RandomState(agree(rng.randint(2**31)))  # all begin with the same x0
        objective, x0 = self._problem(X, codes, len(classes), rng)
        if optimizer.random_state is None:
            optimizer = replace(optimizer, random_state=rng)
        self.result_ = optimizer.minimize(objective, x0)
        self.classes_, self.n_iter_ = classes, self.result_.nit
        self._take(self.result_.x)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores of the classes, (n_samples, n_classes); for two the second less the first.

        Examples
        --------
        >>> import numpy as np
        >>> from dpsvi import DPSGDLogisticRegression
        >>> X = np.random.default_rng(0).normal(size=(500, 2))
        >>> y = X[:, 0] > X[:, 1]
        >>> model = DPSGDLogisticRegression(random_state=0).fit(X, y)
        >>> bool(model.decision_function([[2, 0]])[0] > 0)
        True
        """
        scores = self._scores(self._check(X))
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, (n_samples, n_classes).

        Examples
        --------
        >>> import numpy as np
        >>> from dpsvi import DPSGDLogisticRegression
        >>> X = np.random.default_rng(0).normal(size=(500, 2))
        >>> y = X[:, 0] > X[:, 1]
        >>> model = DPSGDLogisticRegression(random_state=0).fit(X, y)
        >>> model.predict_proba([[2, 0]]).round()
        array([[0., 1.]])
        """
        return self._probabilities(self._scores(self._check(X)))

    def predict(self, X: Any) -> np.ndarray:
        """Most probable labels, (n_samples,).

        Examples
        --------
        >>> import numpy as np
        >>> from dpsvi import DPSGDLogisticRegression
        >>> X = np.random.default_rng(0).normal(size=(500, 2))
        >>> y = X[:, 0] > X[:, 1]
        >>> model = DPSGDLogisticRegression(random_state=0).fit(X, y)
        >>> model.predict([[2, 0], [0, 2]])
        array([ True, False])
        """
        best = self._scores(self._check(X)).argmax(axis=1)
        return self.classes_[best]

    def _check(self, X):
        check_is_fitted(self, "result_")
        return validate_data(
            self, X, reset=False, accept_sparse=self._sparse, dtype=[np.float64, np.float32]
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = bool(self._sparse)
        return tags


def as_classes(y, n_samples: int, n_classes: int) -> np.ndarray:
    """Class numbers as an array; raises ValueError for others than 0 to n_classes - 1."""
    y = np.asarray(y)
    if y.shape != (n_samples,):
        raise ValueError(f"y must have shape ({n_samples},), got {y.shape}")
    check_number("n_classes", n_classes, low=2, high=2**24, integer=True)
    if n_samples and not (np.all(y == y.astype(int)) and y.min() >= 0 and y.max() < n_classes):
        raise ValueError(
            f"y must hold integers from 0 to {n_classes - 1}, got {y.min()!r} to {y.max()!r}"
        )
    return y
