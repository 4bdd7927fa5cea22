"""The base classes of scikit-learn that estimators have, with types for type checkers.

scikit-learn has none: derived from its classes, an estimator would be of unknown type, and every
attribute of it would pass.
"""
# ruff: noqa: D102
# What the methods do stands in scikit-learn.

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

__all__ = [
    "BaseEstimator", "CallbackSupportMixin", "ClassNamePrefixFeaturesOutMixin", "ClassifierMixin",
    "DensityMixin", "RegressorMixin", "TransformerMixin", "with_callbacks",
]  # fmt: skip

if TYPE_CHECKING:

    class BaseEstimator:
        """Parameters by name."""

        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...
        def get_metadata_routing(self) -> Any: ...
        def __sklearn_tags__(self) -> Any: ...

    class CallbackSupportMixin:
        """Callbacks that follow a fit."""

        def set_callbacks(self, *callbacks: Any) -> Self: ...
        def _init_callback_context(self, *args: Any, **kwargs: Any) -> Any: ...

    class ClassifierMixin:
        """Accuracy is the score."""

        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float: ...

    class RegressorMixin:
        """The share of the variance that is explained is the score."""

        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float: ...

    class TransformerMixin:
        """Fit and transform at once."""

        def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any: ...
        def set_output(self, *, transform: str | None = None) -> Self: ...

    class ClassNamePrefixFeaturesOutMixin:
        """Columns of what `transform` gives are named by the class."""

        def get_feature_names_out(self, input_features: Any = None) -> np.ndarray: ...

    class DensityMixin:
        """Densities are the score."""

        def score(self, X: Any, y: Any = None) -> float: ...

    def with_callbacks(method: Any) -> Any:
        """Tear callbacks down after a fit."""

else:
    from sklearn.base import (
        BaseEstimator,
        ClassifierMixin,
        ClassNamePrefixFeaturesOutMixin,
        DensityMixin,
        RegressorMixin,
        TransformerMixin,
    )

    try:  # experimental in scikit-learn 1.9, absent before
        from sklearn.callback import CallbackSupportMixin, with_callbacks
    except ImportError:

        class CallbackSupportMixin:
            """Stand-in for scikit-learn without callbacks."""

        def with_callbacks(method):
            """Return the method as it is: there is nothing to tear down."""
            return method
