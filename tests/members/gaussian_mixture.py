"""Bayesian Gaussian mixture."""

from functools import partial

import numpy as np
from reference import laws as known
from scipy import stats

from dpsvi import DPSVIGaussianMixture
from dpsvi.families.mixtures.mixture import options_of
from members import Member


def data(rng, n):
    means = np.array([[0.0, 0.0], [8.0, 0.0], [0.0, 8.0]])
    return {"X": means[rng.integers(3, size=n)] + rng.normal(size=(n, 2))}


def degenerate(rng):
    X = rng.normal(size=(30, 2))
    return {
        "one point": {"X": X[:1]},
        "identical points": {"X": np.repeat(X[:1], 20, axis=0)},
        "fewer points than components": {"X": X[:2]},
        "a constant feature": {"X": X * [1.0, 0.0]},
        "a row of zeros": {"X": np.concatenate([X, np.zeros((1, 2))])},
        "missing numbers": {"X": np.where(rng.random(X.shape) < 0.3, np.nan, X)},
        "a point of which nothing is known": {"X": np.concatenate([X, np.full((1, 2), np.nan)])},
    }


def component_laws(mixture):
    kappa, nu = mixture.mean_precision_, mixture.degrees_of_freedom_
    full = mixture.covariances_.ndim == 3
    w_inv = nu.reshape(-1, *[1] * (1 + full)) * mixture.covariances_
    law = known.normal_wishart if full else known.normal_gamma
    mean, variance = law(kappa, mixture.means_, w_inv, nu)
    return {
        "means": (lambda draws: draws["means"], mean),
        "means given precisions": (
            lambda draws: kappa * known.distance(
                draws["means"], draws["covariances"], mixture.means_
            ),
            stats.chi2(mixture.means_.shape[1]),
        ),
        "covariances": (lambda draws: variances(draws["covariances"], full), variance),
        "precisions": (lambda draws: variances(inverse(draws["precisions"]), full), variance),
    }  # fmt: skip


def variances(covariances, full):
    return np.diagonal(covariances, axis1=-2, axis2=-1) if full else covariances


def inverse(matrices):
    return np.linalg.inv(matrices) if matrices.ndim == 4 else 1 / matrices


def laws(mixture, data):
    alpha = mixture.weight_concentration_
    weights = {"weights": (lambda draws: draws["weights"], known.dirichlet(alpha))}
    return weights | component_laws(mixture)


def means(mixture):
    return {"covariances": (lambda draws: inverse(draws["covariances"]), mixture.precisions_)}


def remembered(data, state):
    """Sums over points of r times 1, 1, x, x x^T and 1, from the origin of each component."""
    X, options = data["X"], options_of(state.model.hyper)
    rows = []
    for r, origin in zip(state.shared.item_memory[: len(X)].T, options.origins, strict=True):
        shift = X - origin
        square = np.einsum("n,ni,nj->ij", r, shift, shift)
        rows.append([r.sum(), r.sum(), *(r @ shift), *square.ravel(), r.sum()])
    return np.ravel(rows)[None]


MEMBER = Member(
    estimator=partial(
        DPSVIGaussianMixture,
        n_components=3,
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
        (dict(mean_prior=[1.0]), "mean_prior must be finite and of shape"),
    ],
    others=dict(
        n_components=5,
        covariance_type="diag",
        weight_concentration_prior=2.0,
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
