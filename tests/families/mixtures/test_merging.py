"""Merges of components against the bound itself, pair by pair."""

from itertools import combinations

import numpy as np
import pytest
from reference.mixtures import (
    clusters,
    components,
    dirichlet_log_weights,
    dp_log_weights,
    dp_sticks,
    expected_log_density,
    some_prior,
)
from scipy.special import gammaln, xlogy

from dpsvi import DPSVIDPMixture, DPSVIGaussianMixture
from dpsvi.expfam import dirichlet
from dpsvi.expfam.gaussian import first_statistics, statistics
from dpsvi.expfam.stick_breaking import Sticks
from dpsvi.families.mixtures import mixture
from dpsvi.families.mixtures.merging import merge
from dpsvi.models import dp_mixture
from dpsvi.training.state import State

ALPHA, OMEGA = 0.4, (2.0, 1.5)


def dirichlet_bound(counts):
    return float(np.sum(gammaln(ALPHA + counts) - gammaln(ALPHA)))


def sticks_bound(counts):
    return Sticks.of(counts, np.array(OMEGA)).bound()


def elbo(X, resp, prior, weights):
    """From every term, with q(theta) at its best; all components stay, some without points."""
    q = components(X, np.maximum(resp, 1e-300), prior)
    counts = resp.sum(axis=0)
    origins, rows = first_statistics(X, resp, prior.mean, prior.covariance.ndim == 1)
    state = State.resume(dp_mixture.make_model(OMEGA, prior, origins), rows.reshape(1, -1), 1)
    loss = mixture.posterior(state, dp_mixture.expect).divergence(prior).sum()
    if weights is dirichlet_bound:
        log_weights = dirichlet_log_weights(ALPHA + counts)
        loss += dirichlet.kl(ALPHA + counts, np.full(len(counts), ALPHA))
    else:
        order = np.argsort(-counts, kind="stable")
        a, b, _ = dp_sticks(counts[order], OMEGA)
        log_weights = np.empty(len(counts))
        log_weights[order] = dp_log_weights(a, b)
        loss += dp_mixture.read_sticks(state).divergence()
    log_p = np.array([expected_log_density(X, c) for c in q]).T + log_weights
    return np.sum(resp * log_p - xlogy(resp, resp)) - loss


def merged(resp, i, j):
    together = resp.copy()
    together[:, i] += together[:, j]
    together[:, j] = 0.0
    return together


@pytest.mark.parametrize("covariance_type", ["full", "diag"])
@pytest.mark.parametrize("weights", [dirichlet_bound, sticks_bound])
@pytest.mark.parametrize("blur", [0.3, 3.0])
def test_the_best_pair_is_merged(rng, covariance_type, weights, blur):
    """Two of four clusters are halved: from six to five, by the pair with the highest ELBO."""
    X, z, *_ = clusters(rng, 200, 2, 4)
    halves = np.where(z < 2, 2 * z + rng.integers(2, size=200), z + 2)
    resp = np.eye(6)[halves] + blur * rng.dirichlet(np.ones(6), size=200)
    resp /= resp.sum(axis=1, keepdims=True)
    prior = some_prior(2, rng, covariance_type)
    pairs = combinations(range(6), 2)
    bounds = {pair: elbo(X, merged(resp, *pair), prior, weights) for pair in pairs}
    best = max(bounds, key=bounds.get)
    wanted = np.delete(merged(resp, *best), best[1], axis=1)
    got = merge(X, resp, prior, weights, 5, 5)
    assert got.shape == (200, 5)
    np.testing.assert_allclose(got, wanted, rtol=1e-12)


@pytest.mark.parametrize("weights", [dirichlet_bound, sticks_bound])
def test_merging_ends_where_no_pair_gains(rng, weights):
    X, z, *_ = clusters(rng, 300, 2, 3)
    parts = np.eye(9)[3 * z + rng.integers(3, size=300)]
    prior = some_prior(2, rng)
    got = merge(X, parts, prior, weights, 1, 9)
    assert got.shape[1] == 3
    assert len(np.unique(np.argmax(got, axis=1) * 3 + z)) == 3, "each cluster is whole again"
    before = elbo(X, got, prior, weights)
    assert before > elbo(X, parts, prior, weights)
    for pair in combinations(range(3), 2):
        assert elbo(X, merged(got, *pair), prior, weights) < before
    assert merge(X, got, prior, weights, 1, 2).shape[1] == 2, "two at most, at any cost"
    assert merge(X, parts, prior, weights, 5, 9).shape[1] == 5, "no fewer than five"


def test_components_of_less_than_a_point_are_left_out(rng):
    X, z, *_ = clusters(rng, 100, 2, 2)
    resp = np.hstack([np.eye(2)[z], np.zeros((100, 2))])
    resp[0] = [0.1, 0.0, 0.5, 0.4]
    got = merge(X, resp, some_prior(2, rng), dirichlet_bound, 1, 4)
    assert got.shape == (100, 2)
    np.testing.assert_allclose(got.sum(axis=1), 1.0, rtol=1e-14)
    one = merge(X[:1], np.full((1, 3), 1 / 3), some_prior(2, rng), dirichlet_bound, 1, 3)
    np.testing.assert_allclose(one.sum(), 1.0)


@pytest.mark.parametrize("n", [1, 64, 130])
@pytest.mark.parametrize("diagonal", [False, True])
def test_statistics_are_sums_over_points(rng, n, diagonal):
    X, resp, origins = rng.normal(size=(n, 3)), rng.random((n, 2)), rng.normal(size=(2, 3))
    rows = statistics(X, resp, origins, diagonal)
    for k in range(2):
        want = 0.0
        for x, r in zip(X - origins[k], resp[:, k], strict=True):
            square = x * x if diagonal else np.outer(x, x).ravel()
            want = want + r * np.concatenate([[1.0, 1.0], x, square, [1.0]])
        np.testing.assert_allclose(rows[k], want, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("cls", [DPSVIGaussianMixture, DPSVIDPMixture])
def test_it_finds_what_k_means_misses(cls):
    """Ten overlapping clusters: held-out score a point in nats, on average over four data sets."""
    gains = []
    for seed in range(4):
        rng = np.random.default_rng(100 + seed)
        X = clusters(rng, 5000, 4, 10, spread=2.0)[0]
        held_out, X = X[:2000], X[2000:]
        scores = [
            cls(10, init_params=how, random_state=seed).fit(X).score(held_out)
            for how in ("kmeans", "merge")
        ]
        gains.append(scores[1] - scores[0])
    assert np.mean(gains) > 0.02 and min(gains) > -0.01
