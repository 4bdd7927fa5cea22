"""dpsvi: stochastic variational inference by lock-free threads (DPSVI).

>>> from dpsvi import DPSVILDA
>>> DPSVILDA(n_components=100).fit(corpus)  # doctest: +SKIP
"""

from __future__ import annotations

import importlib

__version__ = "0.1.0"

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
    "load_corpus": "dpsvi.corpus",
    "load": "dpsvi.models",
}


def _exported() -> list[str]:
    from dpsvi.models import estimators

    return ["__version__", *sorted([*_LAZY, *estimators()])]


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


def __dir__():
    return sorted({*globals(), *_exported()})
