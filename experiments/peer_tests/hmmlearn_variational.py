"""hmmlearn's own tests of its VariationalGaussianHMM and VariationalCategoricalHMM get ours.

Those of its other classes are of models without priors, and mostly set parameters and call methods
that are not public.  Every pass is one step with all sequences and rate 1.
"""

from dpsvi import DPSVIHMM

TESTS = [f"hmmlearn.tests.test_variational_{kind}" for kind in ("gaussian", "categorical")]
CHOSEN = "not Tied and not Spherical"  # kinds of covariances that there are not
_SET_BEFORE = (
    "priors and the number of symbols are parameters of the constructor, and first parameters come "
    "from the data: neither are attributes that are set before the fit"
)
_AT_ONCE = "states that are far apart are found by the first step, so that the bound does not rise"
DIFFERENT = {
    **{
        f"Test{kind}::test_{name}": why
        for kind in ("Full", "Diagonal")
        for name, why in (
            ("random_fit", _AT_ONCE), ("fit_mcgrory_titterington1d", _SET_BEFORE),
            ("common_initialization", _SET_BEFORE), ("initialization", _SET_BEFORE),
        )
    },
    **{
        f"TestVariationalCategorical::test_{name}": _SET_BEFORE
        for name in ("n_features", "init_incorrect_priors", "fit_and_compare_with_em")
    },
}  # fmt: skip


class VariationalHMM(DPSVIHMM):
    """Goes on with a fit where hmmlearn's does: while `init_params` is empty."""

    n_iter = property(lambda self: self.max_iter, lambda self, n: self.set_params(max_iter=n))

    def fit(self, X, lengths=None):
        """Learn the model from X."""
        n_sequences = 1 if lengths is None else len(lengths)
        self.set_params(
            warm_start=self.init_params == "", batch_size=n_sequences, learning_rate=1.0
        )
        return super().fit(X, lengths=lengths)

    def score(self, X, lengths=None):
        """The bound of all sequences together."""
        return super().score(X, lengths=lengths)

    @property
    def means_posterior_(self):
        """Means of the states."""
        return self.means_


def _make(emission):
    def make(
        n_components=1, covariance_type="full", *, n_iter=100, implementation="log",
        init_params="stmce", verbose=False, **same,
    ):  # fmt: skip
        model = VariationalHMM(
            n_components,
            emission=emission,
            covariance_type=covariance_type,
            max_iter=n_iter,
            **same,
        )
        model.init_params = init_params
        return model

    return make


def pytest_configure():
    """Put them in the place of theirs."""
    from hmmlearn import vhmm

    vhmm.VariationalGaussianHMM = _make("gaussian")
    vhmm.VariationalCategoricalHMM = _make("categorical")
