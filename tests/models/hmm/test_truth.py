"""Known parameters are found again; hmmlearn ends in the same posterior."""

import math

import numpy as np
import pytest
from tools.hmm_cases import (
    GAUSSIAN,
    MEANS,
    SYMBOLS,
    TRANS,
    ascent,
    chains,
)

from dpsvi import DPSVIHMM


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_known_gaussian_truth_is_recovered(n_jobs):
    X, lengths, z = chains(np.random.default_rng(3), [50] * 200)
    hmm = DPSVIHMM(3, n_jobs=n_jobs, batch_size=5, max_iter=10, random_state=0)
    hmm.fit(X, lengths=lengths)
    order = np.linalg.norm(MEANS[:, None] - hmm.means_, axis=2).argmin(axis=1)
    assert sorted(order) == [0, 1, 2]
    np.testing.assert_allclose(hmm.means_[order], MEANS, atol=0.1)
    np.testing.assert_allclose(hmm.covars_[order], np.tile(np.eye(2), (3, 1, 1)), atol=0.1)
    np.testing.assert_allclose(hmm.transmat_[order][:, order], TRANS, atol=0.03)
    assert hmm.startprob_[order[0]] > 0.97
    assert (hmm.predict(X, lengths) == order[z]).mean() > 0.97
    assert (hmm.set_params(algorithm="map").predict(X, lengths) == order[z]).mean() > 0.97


def test_known_categorical_truth_is_recovered():
    X, lengths, z = chains(np.random.default_rng(4), [100] * 300, symbols=True)
    hmm = DPSVIHMM(
        3, emission="categorical", batch_size=10, learning_rate=0.2, max_iter=30, random_state=0
    ).fit(X, lengths=lengths)
    order = np.linalg.norm(SYMBOLS[:, None] - hmm.emissionprob_, axis=2).argmin(axis=1)
    assert sorted(order) == [0, 1, 2]
    np.testing.assert_allclose(hmm.emissionprob_[order], SYMBOLS, atol=0.08)
    np.testing.assert_allclose(hmm.transmat_[order][:, order], TRANS, atol=0.1)
    assert (hmm.predict(X, lengths) == order[z]).mean() > 0.7


def test_fixed_point_of_hmmlearn(rng):
    vhmm = pytest.importorskip("hmmlearn.vhmm")
    X, lengths, _ = chains(rng, [100, 80, 120], spread=2.0)
    scale = np.array(GAUSSIAN["scale_prior"])
    theirs = vhmm.VariationalGaussianHMM(
        3, startprob_prior=0.7, transmat_prior=GAUSSIAN["transmat_prior"],
        means_prior=np.tile(GAUSSIAN["means_prior"], (3, 1)), beta_prior=np.full(3, 0.3),
        dof_prior=np.full(3, 3.5), scale_prior=np.tile(scale, (3, 1, 1)), tol=1e-9, n_iter=3000,
        random_state=0,
    ).fit(X, lengths)  # fmt: skip
    ours = ascent(max_iter=200, **GAUSSIAN).fit(X, lengths=lengths)
    order = np.argsort(ours.means_ @ [1, 2])[np.argsort(np.argsort(theirs.means_ @ [1, 2]))]
    for name in (
        "startprob_", "means_", "covars_", "startprob_posterior_", "beta_posterior_",
        "dof_posterior_", "scale_posterior_",
    ):  # fmt: skip
        found, wanted = getattr(ours, name)[order], getattr(theirs, name)
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5, err_msg=name)
    transitions = ours.transmat_posterior_[order][:, order]
    np.testing.assert_allclose(transitions, theirs.transmat_posterior_, rtol=1e-4)
    # Theirs leaves out (2 pi)^(D/2) of the emissions.
    constant = len(X) * math.log(2 * math.pi)
    assert ours.lower_bound_ + constant == pytest.approx(theirs.monitor_.history[-1], rel=1e-6)
    assert (order[theirs.predict(X, lengths)] == ours.predict(X, lengths)).mean() > 0.99
