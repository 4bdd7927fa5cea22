"""Hidden Markov model."""

from functools import partial

import numpy as np
from reference import laws as known
from scipy import stats

from dpsvi import DPSVIHMM
from members import Member
from members.gaussian_mixture import inverse, variances

MEANS = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]])


def data(rng, n):
    """About `n` sequences of 1 to 9 steps; a state lasts for 5."""
    lengths = rng.integers(1, 10, size=n)
    states = np.empty(lengths.sum(), int)
    starts = set(np.cumsum(lengths) - lengths)
    for t in range(len(states)):
        fresh = t in starts or rng.random() < 0.3
        states[t] = rng.integers(3) if fresh else states[t - 1]
    return {"X": MEANS[states] + rng.normal(size=(len(states), 2)), "lengths": lengths}


def degenerate(rng):
    X = rng.normal(size=(30, 2))
    return {
        "one step": {"X": X[:1], "lengths": [1]},
        "sequences of one step": {"X": X, "lengths": np.ones(30, int)},
        "one sequence": {"X": X},
        "identical steps": {"X": np.repeat(X[:1], 20, axis=0), "lengths": [5, 15]},
        "a constant feature": {"X": X * [1.0, 0.0], "lengths": [10, 20]},
        "a row of zeros": {"X": np.concatenate([X, np.zeros((1, 2))]), "lengths": [30, 1]},
        "an outlier": {"X": np.concatenate([X, [[1e6, -1e6]], X]), "lengths": [61]},
    }


def answer(hmm, data):
    X, lengths = data["X"], data.get("lengths")
    posterior = hmm.predict_proba(X, lengths)
    return np.column_stack([posterior, hmm.score_samples(X, lengths)])


def laws(hmm, data):
    kappa, nu, w_inv = hmm.beta_posterior_, hmm.dof_posterior_, hmm.scale_posterior_
    law = known.normal_wishart if w_inv.ndim == 3 else known.normal_gamma
    mean, variance = law(kappa, hmm.means_, w_inv, nu)
    return {
        "startprob": (
            lambda draws: draws["startprob"], known.dirichlet(hmm.startprob_posterior_)
        ),
        "transmat": (lambda draws: draws["transmat"], known.dirichlet(hmm.transmat_posterior_)),
        "means": (lambda draws: draws["means"], mean),
        "means given covariances": (
            lambda draws: kappa * known.distance(draws["means"], draws["covars"], hmm.means_),
            stats.chi2(hmm.means_.shape[1]),
        ),
        "covars": (lambda draws: variances(draws["covars"], w_inv.ndim == 3), variance),
    }  # fmt: skip


def means(hmm):
    return {"covars": (lambda draws: inverse(draws["covars"]), inverse(hmm.covars_[None])[0])}


def remembered(data, state):
    """Statistics of sequences are kept as they are."""
    return state.shared.item_memory[: len(data["lengths"])].sum(axis=0, keepdims=True)


MEMBER = Member(
    estimator=partial(DPSVIHMM, n_components=3, random_state=0, batch_size=32, max_iter=20),
    data=data,
    degenerate=degenerate,
    answer=answer,
    bad=[
        (dict(n_components=0), "n_components must be an integer >= 1"),
        (dict(means_prior=[1.0]), "means_prior must be finite and of shape"),
        (dict(transmat_prior=[1.0]), "transmat_prior must be finite, a number or of shape"),
        (dict(startprob_prior=0.0), "startprob_prior must be > 0"),
        (dict(emission="poisson"), "emission must be one of"),
        (dict(window=0), "window must be an integer >= 1"),
        (dict(buffer=0), "buffer must be an integer >= 1"),
    ],
    others=dict(
        n_components=2, emission="categorical", covariance_type="diag",
        startprob_prior=2.0, transmat_prior=2.0, means_prior=[0.0, 0.0], beta_prior=2.0,
        dof_prior=5.0, scale_prior=[[1.0, 0.0], [0.0, 1.0]], emissionprob_prior=2.0, n_features=4,
    ),  # fmt: skip
    laws=laws,
    means=means,
    phases=({"incremental": True}, {"restructure": True}),
    remembered=remembered,
    wrong_numbers=(("hyper", 2, 1e9), ("prior", 0, 1e9)),
)
