"""scikit-learn's own tests of its BayesianGaussianMixture get our mixtures instead.

Those of its GaussianMixture are of another model, without priors; those that hold for any mixture
are run, too.  Every pass is one step with all points and rate 1, which is its coordinate ascent.
"""

import sklearn.mixture

from dpsvi import DPSVIDPMixture, DPSVIGaussianMixture

TESTS = [f"sklearn.mixture.tests.test_{name}" for name in ("bayesian_mixture", "mixture")]
CHOSEN = ""
_PRIORS = "priors that were used are not attributes of the fitted mixture"
DIFFERENT = {
    "test_bayesian_mixture_weights_prior_initialisation": _PRIORS,
    "test_bayesian_mixture_mean_prior_initialisation": _PRIORS,
    "test_bayesian_mixture_precisions_prior_initialisation": "errors are told in other words",
    "test_bayesian_mixture_weights": "sticks of a Dirichlet process go by size",
    "test_compare_covar_type": "what is not public has other names",
    "test_mixture_n_components_greater_than_n_samples_error": (
        "there may be more components than points; some stay empty"
    ),
}


class _AllPoints:
    """A fit with all points in each step, which knows whether the last one was of any use."""

    def fit(self, X, y=None):
        """Learn the model from X."""
        before = getattr(self, "lower_bound_", float("-inf"))
        self.set_params(batch_size=len(X), learning_rate=1.0)
        super().fit(X)
        self.converged_ = abs(self.lower_bound_ - before) < self.tol
        return self


class BayesianGaussianMixture(_AllPoints, DPSVIGaussianMixture):
    """With the name that error messages are to have."""


class _DPMixture(_AllPoints, DPSVIDPMixture):
    pass


_DPMixture.__name__ = "BayesianGaussianMixture"


def make(
    n_components=1, *, weight_concentration_prior_type="dirichlet_process", reg_covar=1e-6,
    weight_concentration_prior=None, init_params="kmeans", max_iter=100, **same,
):  # fmt: skip
    """Construct it as scikit-learn's is constructed."""
    process = weight_concentration_prior_type == "dirichlet_process"
    return (_DPMixture if process else BayesianGaussianMixture)(
        n_components, init_params=init_params, max_iter=max_iter,
        weight_concentration_prior=weight_concentration_prior or 1 / n_components, **same,
    )  # fmt: skip


def pytest_configure():
    """Put it in the place of theirs."""
    sklearn.mixture.BayesianGaussianMixture = make


def pytest_collection_modifyitems(items):
    """Ask for the two kinds of covariances that there are."""
    for item in items:
        if hasattr(item.module, "COVARIANCE_TYPE"):
            item.module.COVARIANCE_TYPE = ["full", "diag"]
