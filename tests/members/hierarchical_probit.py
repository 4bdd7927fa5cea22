"""Hierarchical probit regression."""

from functools import partial

import numpy as np

from dpsvi import DPSVIHierarchicalProbit
from members import Member
from members.hierarchical_regression import group_laws


def data(rng, n):
    """Groups of 5 to 14 rows, coefficients around (2, -1), intercepts around 0.5."""
    groups = np.repeat(np.arange(n), rng.integers(5, 15, size=n))
    X = rng.normal(size=(len(groups), 2))
    coefficients = rng.normal([2.0, -1.0], 0.5, size=(n, 2))[groups]
    intercept = rng.normal(0.5, 1.0, size=n)[groups]
    latent = (X * coefficients).sum(axis=1) + intercept + rng.normal(size=len(groups))
    return {"X": X, "y": (latent > 0).astype(int), "groups": groups}


def degenerate(rng):
    usual = data(rng, 6)
    X, y, groups = usual.values()
    pair = [int(np.argmin(y)), int(np.argmax(y))]
    with_zeros = {
        "X": np.concatenate([X, np.zeros((1, 2))]),
        "y": np.append(y, 0),
        "groups": np.append(groups, 0),
    }
    return {
        "one group of two rows": {"X": X[pair], "y": y[pair], "groups": [0, 0]},
        "groups of one row": {"X": X, "y": y, "groups": np.arange(len(X))},
        "identical rows": {"X": X[[0] * 20], "y": np.arange(20) % 2, "groups": np.arange(20) % 3},
        "one class in each group": {"X": X, "y": groups % 2, "groups": groups},
        "classes that a line parts": {**usual, "y": (X[:, 0] > 0).astype(int)},
        "far away": {**usual, "X": 1e4 * X},
        "a constant feature": {**usual, "X": X * [1.0, 0.0] + [0.0, 7.7]},
        "a row of zeros": with_zeros,
        "no groups": {"X": X, "y": y},
    }


def answer(probit, data):
    known = probit.predict_proba(data["X"], data.get("groups"))
    return np.concatenate([known[:, 1], probit.predict_proba(data["X"])[:, 1]])


MEMBER = Member(
    estimator=partial(DPSVIHierarchicalProbit, random_state=0, batch_size=16, max_iter=20),
    data=data,
    degenerate=degenerate,
    answer=answer,
    bad=[
        (dict(mean_precision_prior=0), "mean_precision_prior must be a number > 0"),
        (dict(mean_prior=[1.0]), r"mean_prior must be finite and of shape \(3,\)"),
        (dict(covariance_prior=-np.eye(3)), "covariance_prior must be symmetric and positive"),
        (dict(degrees_of_freedom_prior=4), "degrees_of_freedom_prior must be a number > 4"),
    ],
    others=dict(
        fit_intercept=False, mean_prior=[0.0, 1.0, 0.0], mean_precision_prior=1.0,
        covariance_prior=[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        degrees_of_freedom_prior=9.0,
    ),  # fmt: skip
    laws=partial(group_laws, noise=1.0),
)
