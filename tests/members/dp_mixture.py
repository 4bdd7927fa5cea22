"""Dirichlet-process mixture of Gaussians."""

from functools import partial

import numpy as np
from reference import laws as known
from scipy import stats

from dpsvi import DPSVIDPMixture
from members import Member
from members.gaussian_mixture import component_laws, data, degenerate, inverse, remembered


def laws(mixture, data):
    order = np.argsort(-mixture.counts_, kind="stable")
    shape = 1.0 + len(order)  # concentration_shape and the number of sticks
    return component_laws(mixture) | {
        "weights": (
            lambda draws: known.sticks(draws["weights"], order),
            stats.beta(*mixture.weight_concentration_),
        ),
        "concentration": (
            lambda draws: draws["concentration"],
            stats.gamma(shape, scale=mixture.concentration_ / shape),
        ),
    }


def means(mixture):
    a, b = mixture.weight_concentration_
    within = 1 - np.prod(b / (a + b))  # weight of the components up to the truncation
    return {
        "weights": (lambda draws: draws["weights"], within * mixture.weights_),
        "covariances": (lambda draws: inverse(draws["covariances"]), mixture.precisions_),
    }


MEMBER = Member(
    estimator=partial(
        DPSVIDPMixture,
        n_components=5,
        init_params="random",
        random_state=0,
        batch_size=32,
        max_iter=20,
    ),
    data=data,
    degenerate=degenerate,
    answer=lambda mixture, data: mixture.score_samples(data["X"]),
    bad=[
        (dict(n_components=0), "n_components must be an integer >= 1"),
        (dict(weight_concentration_prior="learn"), "must be a number > 0 or 'auto', got 'learn'"),
        (dict(concentration_shape=0), "concentration_shape must be a number > 0"),
    ],
    others=dict(
        n_components=2,
        covariance_type="diag",
        weight_concentration_prior=2.0,
        concentration_shape=2.0,
        concentration_rate=2.0,
        mean_precision_prior=2.0,
        mean_prior=[0.0, 0.0],
        degrees_of_freedom_prior=4.0,
        covariance_prior=[[1.0, 0.0], [0.0, 1.0]],
    ),
    laws=laws,
    means=means,
    phases=({"incremental": True}, {"restructure": True}),
    remembered=remembered,
    wrong_numbers=(("hyper", 0, 1e9), ("hyper", 2, 1e9), ("prior", 0, 1e9)),
)
