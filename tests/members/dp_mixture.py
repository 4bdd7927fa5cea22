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
    sizes=dict(n_components=2, covariance_type="diag"),
)
