"""Chains, priors and the slow reference that tests of DPSVIHMM share."""

import numpy as np
import pytest
from reference.hmm import (
    CategoricalEmissions,
    CoordinateAscent,
    GaussianEmissions,
)

from dpsvi import DPSVIHMM

MEANS = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])
TRANS = np.array([[0.8, 0.1, 0.1], [0.05, 0.9, 0.05], [0.2, 0.2, 0.6]])
SYMBOLS = np.array([[0.7, 0.1, 0.1, 0.1], [0.1, 0.4, 0.4, 0.1], [0.05, 0.05, 0.1, 0.8]])


def chains(rng, lengths, symbols=False, spread=1.0):
    """X, lengths and states of sequences that begin in state 0 and follow TRANS."""
    z = []
    for length in lengths:
        z.append(0)
        for _ in range(length - 1):
            z.append(rng.choice(3, p=TRANS[z[-1]]))
    z = np.array(z)
    if symbols:
        return np.array([rng.choice(4, p=SYMBOLS[k]) for k in z])[:, None], np.array(lengths), z
    return spread * MEANS[z] + rng.normal(size=(len(z), 2)), np.array(lengths), z


def ascent(**params):
    """An estimator whose every pass is one step of coordinate ascent."""
    return DPSVIHMM(
        **{"n_components": 3, "batch_size": 10_000, "learning_rate": 1.0, "random_state": 0}
        | params
    )


GAUSSIAN = dict(
    startprob_prior=0.7, transmat_prior=1.0 + np.eye(3), means_prior=[0.5, 0.2], beta_prior=0.3,
    dof_prior=3.5, scale_prior=[[2.0, 0.3], [0.3, 1.0]],
)  # fmt: skip
CATEGORICAL = dict(
    emission="categorical", startprob_prior=[0.5, 1.0, 2.0], transmat_prior=0.4,
    emissionprob_prior=0.6,
)  # fmt: skip
DIAGONAL = GAUSSIAN | dict(covariance_type="diag", dof_prior=1.7, scale_prior=[2.0, 1.0])
KINDS = pytest.mark.parametrize(
    "prior", [GAUSSIAN, DIAGONAL, CATEGORICAL], ids=["gaussian", "diagonal", "categorical"]
)


def reference(X, lengths, prior):
    start = np.broadcast_to(np.array(prior["startprob_prior"], float), 3)
    trans = np.broadcast_to(np.array(prior["transmat_prior"], float), (3, 3))
    if "emission" in prior:
        emissions = CategoricalEmissions(np.full((3, 4), prior["emissionprob_prior"]))
    else:
        names = "beta_prior", "means_prior", "scale_prior", "dof_prior"
        emissions = GaussianEmissions(*(np.array(prior[name]) for name in names))
    return CoordinateAscent(X, lengths, start, trans, emissions)


def set_posterior(slow, hmm):
    """Give the reference the posterior of an estimator."""
    slow.start, slow.trans = hmm.startprob_posterior_, hmm.transmat_posterior_
    if hmm.emission == "categorical":
        slow.emissions.q = hmm.emissionprob_posterior_
    else:
        slow.emissions.q = list(
            zip(
                hmm.beta_posterior_, hmm.means_, hmm.scale_posterior_, hmm.dof_posterior_,
                strict=True,
            )
        )  # fmt: skip


def assert_posterior(hmm, slow, tol=1e-8):
    np.testing.assert_allclose(hmm.startprob_posterior_, slow.start, rtol=tol)
    np.testing.assert_allclose(hmm.transmat_posterior_, slow.trans, rtol=tol)
    if hmm.emission == "categorical":
        np.testing.assert_allclose(hmm.emissionprob_posterior_, slow.emissions.q, rtol=tol)
        return
    found = zip(
        hmm.beta_posterior_, hmm.means_, hmm.scale_posterior_, hmm.dof_posterior_, strict=True
    )
    for state, wanted in zip(found, slow.emissions.q, strict=True):
        for value, want in zip(state, wanted, strict=True):
            np.testing.assert_allclose(value, want, rtol=tol, atol=tol * np.abs(want).max())
