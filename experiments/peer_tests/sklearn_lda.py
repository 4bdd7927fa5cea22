"""scikit-learn's own tests of its LatentDirichletAllocation get ours instead."""

import numpy as np
import sklearn.decomposition

from dpsvi import DPSVILDA

TESTS = ["sklearn.decomposition.tests.test_online_lda"]
CHOSEN = ""
DIFFERENT = {
    "test_lda_preplexity_mismatch": "what is not public has other names",
    "test_lda_empty_docs": "a fit to nothing but empty documents is refused",
    "test_verbosity": "`verbose=1` shows its progress on stderr, and not a line for each pass",
    "test_lda_dtype_match": "`components_` is float32 for all input",
}


class LatentDirichletAllocation(DPSVILDA):
    """Has the bound for its score, as scikit-learn's has."""

    def perplexity(self, X, sub_sampling=False):
        """Exp of minus the bound of a token; the share of all documents changes nothing."""
        return super().perplexity(X, kind="bound")

    def score(self, X, y=None):
        """Sum of the bounds of all tokens."""
        return -np.log(self.perplexity(X)) * X.sum()


def make(
    n_components=10, *, doc_topic_prior=None, topic_word_prior=None, learning_method="batch",
    evaluate_every=-1, perp_tol=0.1, **same,
):  # fmt: skip
    """Construct it as scikit-learn's is constructed."""
    alpha, eta = doc_topic_prior or 1 / n_components, topic_word_prior or 1 / n_components
    return LatentDirichletAllocation(
        n_components, doc_topic_prior=alpha, topic_word_prior=eta, local_step="mean_field", **same
    )


def pytest_configure():
    """Put it in the place of theirs."""
    sklearn.decomposition.LatentDirichletAllocation = make
