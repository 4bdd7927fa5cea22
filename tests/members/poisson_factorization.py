"""Hierarchical Poisson factorisation."""

from functools import partial

import numpy as np
import scipy.sparse
from scipy import stats

from dpsvi import DPSVIPoissonFactorization
from dpsvi.models.poisson_factorization.remembered import UNIT
from members import Member

ITEMS = np.random.default_rng(7).gamma(0.3, 2.0, (3, 30))


def data(rng, n):
    users = rng.gamma(0.5, 2.0, (n, 3))
    return {"X": scipy.sparse.csr_array(rng.poisson(users @ ITEMS).astype(float))}


def degenerate(rng):
    X = rng.poisson(1.0, (30, 8)).astype(float)
    return {
        "one user": {"X": X[:1]},
        "one item": {"X": X[:, :1]},
        "one count": {"X": np.eye(5)[:1]},
        "no counts": {"X": np.zeros((4, 3))},
        "a user without counts": {"X": np.concatenate([X, np.zeros((1, 8))])},
        "an item that nobody has": {"X": X * (np.arange(8) > 0)},
        "identical users": {"X": np.repeat(X[:1], 20, axis=0)},
        "huge counts": {"X": scipy.sparse.csr_array(X * 1e6)},
        "fractions": {"X": X / 7},
    }


def laws(model, data):
    shape = model._state.natural()[:-1, : model.n_components].T
    top = model.item_rate_shape + model.n_components * model.item_shape
    return {
        "components": (
            lambda draws: draws["components"],
            stats.gamma(shape, scale=model.components_ / shape),
        ),
        "item_rates": (
            lambda draws: draws["item_rates"],
            stats.gamma(top, scale=model.item_rates_ / top),
        ),
    }


def remembered(data, state):
    """Counts of items times the shares that are kept of them; E[theta] of all users."""
    X, shared = data["X"], state.shared
    n_users, columns = X.shape[0], shared.rows.shape[1]
    phi, sums = shared.value_memory / UNIT, np.zeros(shared.rows.shape)
    np.add.at(sums, X.indices, X.data[:, None] * phi)
    sums[-1] = shared.item_memory[:n_users, columns:].sum(axis=0)
    return sums


MEMBER = Member(
    estimator=partial(
        DPSVIPoissonFactorization,
        n_components=3,
        max_user_iter=2000,
        user_tol=1e-9,
        random_state=0,
        batch_size=32,
        max_iter=20,
    ),
    data=data,
    degenerate=degenerate,
    answer=lambda model, data: model.predict_ratings(data["X"]),
    bad=[
        (dict(n_components=0), "n_components must be an integer >= 1"),
        (dict(user_shape=0.001), "user_shape must be a number >= 0.01, got 0.001"),
        (dict(item_rate_mean=0), "item_rate_mean must be a number > 0, got 0"),
        (dict(max_user_iter=0), "max_user_iter must be an integer >= 1"),
    ],
    others=dict(
        n_components=5, user_shape=0.5, item_shape=0.5, user_rate_shape=0.5, item_rate_shape=0.5,
        user_rate_mean=2.0, item_rate_mean=2.0,
    ),  # fmt: skip
    laws=laws,
    phases=({"incremental": True},),
    remembered=remembered,
    wrong_numbers=(("hyper", 0, 1e9),),
)
