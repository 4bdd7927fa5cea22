"""Dirichlet-process mixture of Gaussians."""

from functools import partial

from dpsvi import DPSVIDPMixture
from members import Member
from members.gaussian_mixture import data, degenerate

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
)
