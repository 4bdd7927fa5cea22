"""What the estimator does differently for each kind of emissions: priors, beginnings, reading."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dpsvi.expfam import by_dimension, dirichlet
from dpsvi.expfam.gaussian import first_statistics
from dpsvi.families.mixtures import incomplete
from dpsvi.families.mixtures.clusters import cluster
from dpsvi.families.mixtures.components import Components, divergence, draw_points
from dpsvi.families.mixtures.prior_parameters import resolve_prior
from dpsvi.models.hmm.local import CATEGORICAL, GAUSSIAN
from dpsvi.models.hmm.model import Posterior


class Start(NamedTuple):
    """Where the emissions of a fit begin."""

    floor: np.ndarray  # (D,)
    origins: np.ndarray  # (K, D)
    prior: np.ndarray  # (K, width), natural parameters
    stats: np.ndarray  # (K, width), of the sampled points
    assign: Callable | None  # points -> their first states; None where nothing is known of them


class Gaussian:
    """Points under Normal-Wishart or, with diagonal covariances, Normal-Gamma distributions."""

    number = GAUSSIAN

    @staticmethod
    def check(estimator, X) -> None:
        """Raise ValueError for gaps that full covariances cannot have."""
        if not _diagonal(estimator) and incomplete.has_gaps(X):
            raise ValueError(
                "X contains NaN: missing numbers need covariance_type='diag', got 'full'"
            )

    @staticmethod
    def start(estimator, X, points, rng) -> Start:
        """k-means on `points`, a sample of X; X sets the priors that are None.

        With fewer distinct points than states some states begin empty.
        """
        n_states, diagonal, gaps = (
            estimator.n_components, _diagonal(estimator), incomplete.has_gaps(X),
        )  # fmt: skip
        if gaps:
            incomplete.check_columns(X)
        prior = resolve_prior(
            estimator, incomplete.stand_in(X) if gaps else X, diagonal, precision="beta_prior",
            mean="means_prior", freedom="dof_prior", covariance="scale_prior",
        )  # fmt: skip
        sample = incomplete.filled(points, rng, X) if gaps else points
        # From one start of k-means fits end in a worse optimum more often than from five, and the
        # other four cost little.
        clusters = cluster(sample, n_states, rng, n_init=5)
        resp = np.eye(n_states)[clusters.labels_]
        origins, stats = first_statistics(sample, resp, prior.mean, diagonal)
        natural = prior.natural(origins, 1.0 / n_states)
        if not gaps:
            return Start(prior.floor(), origins, natural, stats, clusters.predict)
        stats = by_dimension.statistics(points, resp, origins)
        natural = by_dimension.spread(natural, points.shape[1])

        def assign(points):
            return clusters.predict(incomplete.filled(points, rng, X))

        return Start(prior.floor(), origins, natural, stats, assign)

    @staticmethod
    def fitted(estimator, q: Posterior) -> dict:
        """Fitted attributes of the emissions."""
        components = _components(estimator, q)
        kappa, _, scale, nu = _standard(components)
        return {
            "means_": components.means, "covars_": components.covariances,
            "beta_posterior_": kappa, "dof_posterior_": nu, "scale_posterior_": scale,
        }  # fmt: skip

    @staticmethod
    def divergence(estimator, q: Posterior, prior: Posterior) -> float:
        """KL of the emissions in nats."""
        pair = (_standard(_components(estimator, each)) for each in (q, prior))
        return float(divergence(*pair, 1 if _diagonal(estimator) else 2).sum())

    @staticmethod
    def draw_parameters(estimator, q: Posterior, n_samples, rng) -> dict:
        """Draws of the emissions' means and covariances."""
        means, covariances, _ = _components(estimator, q).sample(n_samples, rng)
        return {"means": means, "covars": covariances}

    @staticmethod
    def draw_from(draw, states, rng):
        """A point from each of these states, (n, D), given draws of the parameters."""
        return draw_points(draw["means"], draw["covars"], states, rng)

    @staticmethod
    def draw(estimator, q: Posterior, states, rng):
        """A point from each of these states, (n, D)."""
        return _components(estimator, q).draw(states, rng)


def _diagonal(estimator) -> bool:
    return estimator._started["covariance_type"] == "diag"


def _components(estimator, q: Posterior) -> Components:
    n_axes = 1 if _diagonal(estimator) else 2
    return Components(q.weights.states, q.weights.origins, n_axes)


def _standard(components: Components):
    """(kappa, m - origin, W^-1, nu) of every state."""
    nu = components.degrees_of_freedom
    return components.mean_precision, components.shift, components.scale, nu


class Categorical:
    """Symbols under Dirichlet distributions; X has one column."""

    number = CATEGORICAL

    @staticmethod
    def check(estimator, X) -> None:
        """Raise ValueError unless X holds symbols that the estimator knows."""
        if X.shape[1] != 1:
            raise ValueError(f"X must have one column, of symbols, got {X.shape[1]} features")
        given = X[~np.isnan(X)]
        if not len(given):
            raise ValueError("X has no symbol: all are NaN")
        strange = given[(given != np.floor(given)) | (given < 0) | (given >= estimator.n_symbols_)]
        if len(strange):
            raise ValueError(
                f"X must hold symbols, integers >= 0 and < {estimator.n_symbols_}, got "
                f"{strange[0]:g}; n_features says how many there are"
            )

    @staticmethod
    def start(estimator, X, points, rng) -> Start:
        """Random emissions about the frequencies of the symbols in `points`, a sample of X."""
        n_states, n_symbols = estimator.n_components, estimator.n_symbols_
        shape = n_states, n_symbols
        alpha = estimator._concentrations("emissionprob_prior", shape, 1.0 / n_symbols)
        given = points[~np.isnan(points)].astype(int)
        try:
            emission = rng.standard_gamma(1.0, size=shape) * np.bincount(given, minlength=n_symbols)
        except MemoryError as error:
            raise MemoryError(
                f"no memory for the probabilities of {n_symbols:,} symbols in {n_states} states; "
                "symbols are numbered 0, 1, ... without gaps"
            ) from error
        emission *= len(points) / emission.sum()
        prior = np.hstack([np.full((n_states, 1), 1.0 / n_states), alpha])
        stats = np.hstack([emission.sum(axis=1, keepdims=True), emission])
        return Start(np.ones(1), np.zeros((n_states, 1)), prior, stats, None)

    @staticmethod
    def fitted(estimator, q: Posterior) -> dict:
        """Fitted attributes of the emissions."""
        alpha = q.states[:, 1:]
        probabilities = alpha / alpha.sum(axis=1, keepdims=True)
        return {"emissionprob_": probabilities, "emissionprob_posterior_": alpha}

    @staticmethod
    def divergence(estimator, q: Posterior, prior: Posterior) -> float:
        """KL of the emissions in nats."""
        pairs = zip(q.states[:, 1:], prior.states[:, 1:], strict=True)
        return sum(dirichlet.kl(a, a0) for a, a0 in pairs)

    @staticmethod
    def draw_parameters(estimator, q: Posterior, n_samples, rng) -> dict:
        """Draws of the symbols' probabilities."""
        return {"emissionprob": dirichlet.draw(q.states[:, 1:], n_samples, rng)}

    @staticmethod
    def draw_from(draw, states, rng):
        """A symbol from each of these states, (n, 1), given draws of the parameters."""
        return _draw_symbols(draw["emissionprob"], states, rng)

    @staticmethod
    def draw(estimator, q: Posterior, states, rng):
        """A symbol from each of these states, (n, 1)."""
        return _draw_symbols(estimator.emissionprob_, states, rng)


def _draw_symbols(probabilities, states, rng):
    cumulative = np.cumsum(probabilities, axis=1)[states]
    return (rng.random((len(states), 1)) > cumulative[:, :-1]).sum(axis=1)[:, None]


KINDS = {"gaussian": Gaussian, "categorical": Categorical}
