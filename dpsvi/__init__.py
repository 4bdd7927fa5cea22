"""dpsvi: stochastic variational inference by lock-free threads (DPSVI).

>>> from dpsvi import DPSVILDA
>>> DPSVILDA(n_components=100).fit(corpus)  # doctest: +SKIP
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

__version__ = "0.2.0"

# Name -> module.  Loaded on first use: scikit-learn and numba take seconds, `--help` must not.
# The estimators are not named here: each model's file says how its estimator is called.
_LAZY = {
    "DPSGD": "dpsvi.optimize.dpsgd",
    "DPSGDLogisticRegression": "dpsvi.optimize.logistic",
    "DPSGDMLPClassifier": "dpsvi.optimize.network",
    "Cluster": "dpsvi.cluster.options",
    "VirtualCluster": "dpsvi.cluster.virtual",
    "Corpus": "dpsvi.corpus",
    "as_corpus": "dpsvi.corpus",
    "check_model": "dpsvi.estimators.checking",
    "forecast": "dpsvi.estimators.forecast",
    "load_corpus": "dpsvi.corpus",
    "load": "dpsvi.models",
    "select_components": "dpsvi.estimators.selection",
}


# The same names for type checkers and editors, which execute nothing.
if TYPE_CHECKING:
    from dpsvi.cluster.options import Cluster as Cluster
    from dpsvi.cluster.virtual import VirtualCluster as VirtualCluster
    from dpsvi.corpus import Corpus as Corpus
    from dpsvi.corpus import as_corpus as as_corpus
    from dpsvi.corpus import load_corpus as load_corpus
    from dpsvi.estimators.checking import check_model as check_model
    from dpsvi.estimators.forecast import forecast as forecast
    from dpsvi.estimators.selection import select_components as select_components
    from dpsvi.models import load as load
    from dpsvi.models.dp_mixture import DPSVIDPMixture as DPSVIDPMixture
    from dpsvi.models.gaussian_mixture import DPSVIGaussianMixture as DPSVIGaussianMixture
    from dpsvi.models.hdp.estimator import DPSVIHDP as DPSVIHDP
    from dpsvi.models.hierarchical_probit import DPSVIHierarchicalProbit as DPSVIHierarchicalProbit
    from dpsvi.models.hierarchical_regression import (
        DPSVIHierarchicalRegressor as DPSVIHierarchicalRegressor,
    )
    from dpsvi.models.hmm.estimator import DPSVIHMM as DPSVIHMM
    from dpsvi.models.lda.estimator import DPSVILDA as DPSVILDA
    from dpsvi.models.matrix_factorization.estimator import (
        DPSVIMatrixFactorization as DPSVIMatrixFactorization,
    )
    from dpsvi.models.poisson_factorization.estimator import (
        DPSVIPoissonFactorization as DPSVIPoissonFactorization,
    )
    from dpsvi.optimize.dpsgd import DPSGD as DPSGD
    from dpsvi.optimize.logistic import DPSGDLogisticRegression as DPSGDLogisticRegression
    from dpsvi.optimize.network import DPSGDMLPClassifier as DPSGDMLPClassifier


def _exported() -> list[str]:
    from dpsvi.models import estimators

    return ["__version__", *sorted([*_LAZY, *estimators()])]


if not TYPE_CHECKING:  # it would let any name pass

    def __getattr__(name):
        if name in _LAZY:
            return getattr(importlib.import_module(_LAZY[name]), name)
        if name == "__all__":
            return _exported()
        if name[:1].isupper():
            from dpsvi.models import estimators, get

            if name in estimators():
                return get(estimators()[name])
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_exported()})
