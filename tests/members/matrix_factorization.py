"""Probabilistic (Gaussian) matrix factorisation."""

from functools import partial

import numpy as np
import scipy.sparse
from scipy import stats

from dpsvi import DPSVIMatrixFactorization
from dpsvi.models.matrix_factorization.local import prior_of
from members import Member

ITEMS = np.random.default_rng(7).normal(size=(2, 12))


def data(rng, n):
    ratings = 3.0 + rng.normal(size=(n, 2)) @ ITEMS + 0.3 * rng.normal(size=(n, 12))
    known = rng.random(ratings.shape) < 0.6
    users, items = np.nonzero(known)
    return {"X": scipy.sparse.csr_array((ratings[known], (users, items)), ratings.shape)}


def degenerate(rng):
    X = rng.normal(size=(30, 8))
    return {
        "one user": {"X": X[:1]},
        "one item": {"X": X[:, :1]},
        "one rating": {"X": X[:1, :1]},
        "ratings of 0": {"X": np.zeros((4, 3))},
        "constant ratings": {"X": np.full((4, 3), 5.0)},
        "no ratings": {"X": scipy.sparse.csr_array((4, 3))},
        "a user without ratings": {"X": np.concatenate([X, np.full((1, 8), np.nan)])},
        "an item that nobody rated": {"X": np.where(np.arange(8) > 0, X, np.nan)},
        "identical users": {"X": np.repeat(X[:1], 20, axis=0)},
        "large ratings": {"X": 1e8 + 1e6 * X},
        "small ratings": {"X": 1e-6 * X},
    }


def laws(model, data):
    state, n = model._state, model.n_components
    tau, alpha = 1 / model.noise_variance_, prior_of(state.model.hyper).item_precision
    deviations = []
    for row in state.natural()[:-1]:
        precision = np.zeros((n, n))  # the first numbers are the lower triangle, sqrt(2) off it
        precision[np.tril_indices(n)] = tau * row[: n * (n + 1) // 2]
        precision += np.tril(precision, -1).T
        precision[~np.eye(n, dtype=bool)] /= np.sqrt(2)
        deviations.append(np.sqrt(np.diag(np.linalg.inv(alpha * np.eye(n) + precision))))
    shape = model.noise_shape + data["X"].nnz / 2
    return {
        "components": (
            lambda draws: draws["components"],
            stats.norm(model.components_, np.transpose(deviations)),
        ),
        "noise_variance": (
            lambda draws: draws["noise_variance"],
            stats.invgamma(shape, scale=shape * model.noise_variance_),
        ),
    }


def means(model):
    tau = 1 / model.noise_variance_
    return {"noise_variance": (lambda draws: 1 / draws["noise_variance"], tau)}


MEMBER = Member(
    estimator=partial(
        DPSVIMatrixFactorization, n_components=2, random_state=0, batch_size=32, max_iter=20
    ),
    data=data,
    degenerate=degenerate,
    answer=lambda model, data: model.predict_ratings(data["X"]),
    bad=[
        (dict(n_components=0), "n_components must be an integer >= 1"),
        (dict(user_precision=0), "user_precision must be a number > 0, got 0"),
        (dict(noise_rate=-1.0), "noise_rate must be a number > 0, got -1"),
    ],
    others=dict(
        n_components=5, user_precision=3.0, item_precision=3.0, noise_shape=3.0, noise_rate=3.0,
    ),  # fmt: skip
    laws=laws,
    means=means,
    wrong_numbers=(("hyper", 0, 1e9),),
)
