"""dpsvi: stochastic variational inference by lock-free threads (DPSVI).

>>> from dpsvi import DPSVILDA
>>> DPSVILDA(n_components=100).fit(corpus)  # doctest: +SKIP
"""

from __future__ import annotations

import importlib

__version__ = "0.1.0"

# Name -> module.  Loaded on first use: scikit-learn and numba take seconds, `--help` must not.
_LAZY = {
    "DPSVIDPMixture": "dpsvi.models.dp_mixture",
    "DPSVIGaussianMixture": "dpsvi.models.gaussian_mixture",
    "DPSVIHDP": "dpsvi.models.hdp.estimator",
    "DPSVIHMM": "dpsvi.models.hmm.estimator",
    "DPSVIHierarchicalProbit": "dpsvi.models.hierarchical_probit",
    "DPSVIHierarchicalRegressor": "dpsvi.models.hierarchical_regression",
    "DPSVILDA": "dpsvi.models.lda.estimator",
    "DPSVIMatrixFactorization": "dpsvi.models.matrix_factorization.estimator",
    "DPSVIPoissonFactorization": "dpsvi.models.poisson_factorization.estimator",
    "Cluster": "dpsvi.cluster.options",
    "VirtualCluster": "dpsvi.cluster.virtual",
    "Corpus": "dpsvi.corpus",
    "as_corpus": "dpsvi.corpus",
    "load_corpus": "dpsvi.corpus",
    "load": "dpsvi.models",
}
__all__ = ["__version__", *sorted(_LAZY)]


def __getattr__(name):
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *__all__})
