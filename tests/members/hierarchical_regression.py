"""Hierarchical linear regression."""

from functools import partial

import numpy as np
from reference import laws as known
from scipy import stats

from dpsvi import DPSVIHierarchicalRegressor
from members import Member


def data(rng, n):
    """Groups of 1 to 9 rows, coefficients around (2, -1), intercepts around 5."""
    groups = np.repeat(np.arange(n), rng.integers(1, 10, size=n))
    X = rng.normal(size=(len(groups), 2))
    coefficients = rng.normal([2.0, -1.0], 0.5, size=(n, 2))[groups]
    intercept = rng.normal(5.0, 1.0, size=n)[groups]
    noise = 0.3 * rng.normal(size=len(groups))
    return {"X": X, "y": (X * coefficients).sum(axis=1) + intercept + noise, "groups": groups}


def degenerate(rng):
    usual = data(rng, 6)
    X, y, groups = usual.values()
    with_zeros = {
        "X": np.concatenate([X, np.zeros((1, 2))]),
        "y": np.append(y, 0.0),
        "groups": np.append(groups, 0),
    }
    return {
        "one group of one row": {"X": X[:1], "y": y[:1], "groups": groups[:1]},
        "groups of one row": {"X": X, "y": y, "groups": np.arange(len(X))},
        "identical rows": {"X": X[[0] * 20], "y": y[[0] * 20], "groups": np.arange(20) % 3},
        "constant y": {**usual, "y": np.full(len(y), 3.0)},
        "y of zeros": {**usual, "y": np.zeros(len(y))},
        "a constant feature": {**usual, "X": X * [1.0, 0.0] + [0.0, 7.7]},
        "fewer rows than features": {"X": rng.normal(size=(3, 8)), "y": y[:3]},
        "a row of zeros": with_zeros,
        "no groups": {"X": X, "y": y},
    }


def answer(regressor, data):
    mean, std = regressor.predict(data["X"], data.get("groups"), return_std=True)
    return np.concatenate([mean, std, regressor.predict(data["X"])])


def group_laws(model, data, noise):
    """Laws of population and groups; `noise` is E[tau]."""
    n_groups, n = len(model.groups_), 3
    kappa, nu = model.mean_precision_prior + n_groups, n + 2 + n_groups
    w_inv = (nu - n - 1) * model.population_covariance_
    center = np.append(model.intercept_, model.coef_)  # of the classifier (1,) and (1, 2)
    mean, variance = known.normal_wishart(kappa, center, w_inv, nu)
    deviations = []
    for group in model.groups_:
        X = data["X"][data["groups"] == group]
        X = np.column_stack([np.ones(len(X)), X])
        precision = nu * np.linalg.inv(w_inv) + noise * X.T @ X
        deviations.append(np.sqrt(np.diag(np.linalg.inv(precision))))
    deviations = np.array(deviations)
    slope, constant = model.group_coef_, model.group_intercept_
    return {
        "coef": (joined, mean),
        "intercept given covariance": (
            lambda draws: kappa * known.distance(
                joined(draws), draws["population_covariance"], center
            ),
            stats.chi2(n),
        ),
        "group_coef": (lambda draws: draws["group_coef"], stats.norm(slope, deviations[:, 1:])),
        "group_intercept": (
            lambda draws: draws["group_intercept"], stats.norm(constant, deviations[:, 0])
        ),
        "population_covariance": (
            lambda draws: np.diagonal(draws["population_covariance"], axis1=1, axis2=2), variance
        ),
    }  # fmt: skip


def joined(draws):
    parts = draws["intercept"], draws["coef"]
    n_samples = len(draws["coef"])
    return np.concatenate([part.reshape(n_samples, -1) for part in parts], axis=1)


def laws(regressor, data):
    noise = regressor.noise_precision_
    shape = 1e-3 + len(data["y"]) / 2
    return group_laws(regressor, data, noise) | {
        "noise_precision": (
            lambda draws: draws["noise_precision"], stats.gamma(shape, scale=noise / shape)
        ),
    }  # fmt: skip


MEMBER = Member(
    estimator=partial(DPSVIHierarchicalRegressor, random_state=0, batch_size=16, max_iter=20),
    data=data,
    degenerate=degenerate,
    answer=answer,
    bad=[
        (dict(mean_precision_prior=0), "mean_precision_prior must be a number > 0"),
        (dict(noise_shape_prior=-1), "noise_shape_prior must be a number > 0"),
        (dict(noise_rate_prior=0.0), "noise_rate_prior must be a number > 0"),
        (dict(mean_prior=[1.0]), r"mean_prior must be finite and of shape \(3,\)"),
        (dict(covariance_prior=-np.eye(3)), "covariance_prior must be symmetric and positive"),
        (dict(degrees_of_freedom_prior=4), "degrees_of_freedom_prior must be a number > 4"),
    ],
    others=dict(
        fit_intercept=False, mean_prior=[0.0, 1.0, 0.0], mean_precision_prior=1.0,
        covariance_prior=[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        degrees_of_freedom_prior=9.0, noise_shape_prior=2.0, noise_rate_prior=2.0,
    ),  # fmt: skip
    laws=laws,
)
