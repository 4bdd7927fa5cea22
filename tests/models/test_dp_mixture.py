"""The Dirichlet-process mixture against slow numpy, brute force, and scikit-learn."""

from itertools import permutations

import numpy as np
import pytest
from reference.mixtures import (
    clusters,
    components,
    dp_log_weights,
    dp_sticks,
    local_step,
    some_prior,
)
from scipy import special
from scipy.optimize import brentq
from sklearn.mixture import BayesianGaussianMixture

from dpsvi import DPSVIDPMixture
from dpsvi.engines import fit
from dpsvi.expfam.gaussian import first_statistics
from dpsvi.expfam.stick_breaking import Sticks, by_size, concentration, expected_log_weights
from dpsvi.families.mixtures import mixture
from dpsvi.families.mixtures.components import Prior
from dpsvi.kernels.digamma import trigamma
from dpsvi.models import dp_mixture as dp
from dpsvi.training.items import dense_items
from dpsvi.training.schedules import constant
from dpsvi.training.state import State

PRIORS = pytest.mark.parametrize("weights", [(2.0, 1.5), (0.8,)], ids=["learned", "given"])


# --- sticks and concentration -------------------------------------------------------------------


def test_trigamma():
    x = np.geomspace(1e-6, 1e12, 400)
    np.testing.assert_allclose([trigamma(v) for v in x], special.polygamma(1, x), rtol=1e-13)


def test_order_is_by_size_and_stable(rng):
    for counts in (rng.random(50), np.zeros(5), np.array([1.0, 3.0, 1.0, 3.0]), np.array([2.0])):
        assert np.array_equal(by_size(counts), np.argsort(-counts, kind="stable"))


COUNTS = {
    "even": np.full(30, 50.0),
    "one": np.array([1e6] + [0.0] * 99),
    "nothing": np.zeros(20),
    "steep": np.geomspace(1e7, 1e-7, 40),
    "a stick": np.array([3.0, 2.0]),
}


@pytest.mark.parametrize("prior", [(1.0, 1.0), (1e-3, 1e-3), (50.0, 0.01), (0.1, 100.0)])
@pytest.mark.parametrize("case", COUNTS)
def test_concentration_is_the_fixed_point(case, prior):
    """Of the two updates of Blei and Jordan, found by bisection."""
    counts = COUNTS[case]
    behind, a = np.append(np.cumsum(counts[::-1])[::-1][1:], 0.0), 1 + counts

    def surplus(log_omega):
        omega = np.exp(log_omega)
        b = omega + behind
        rate = prior[1] - np.sum(special.digamma(b) - special.digamma(a + b))
        return (prior[0] + len(a)) / rate / omega - 1

    want = np.exp(brentq(surplus, -60, 60, xtol=1e-14))
    got = concentration(counts, behind, np.array(prior))
    assert got == pytest.approx(want, rel=1e-9)
    assert concentration(counts, behind, np.array([0.3])) == 0.3


@PRIORS
def test_sticks_are_the_slow_ones(rng, weights):
    counts = rng.gamma(0.3, 100.0, size=12)
    prior = np.array(weights)
    q, order = Sticks.of(counts, prior), np.argsort(-counts)
    a, b, concentration_q = dp_sticks(counts[order], weights)
    np.testing.assert_allclose(q.a, a, rtol=1e-12)
    np.testing.assert_allclose(q.b, b, rtol=1e-9)
    if concentration_q is not None:
        assert q.concentration == pytest.approx(concentration_q[0] / concentration_q[1], rel=1e-9)
    rows = np.stack([counts, counts], axis=1)
    expected_log_weights(rows, prior)
    np.testing.assert_allclose(rows[order, 0], dp_log_weights(a, b), rtol=1e-9)
    assert np.array_equal(rows[:, 1], counts)
    draws = rng.beta(a, b, size=(200_000, len(a)))
    left = np.cumprod(np.hstack([np.ones((len(draws), 1)), 1 - draws]), axis=1)
    pi = (draws * left[:, :-1]).mean(axis=0)
    np.testing.assert_allclose(q.weights[order], pi / pi.sum(), rtol=0.02, atol=1e-4)
    assert q.weights.sum() == pytest.approx(1.0, rel=1e-14)


@pytest.mark.parametrize("weights", [(2.0, 1.5), (0.3,), (4.0,)])
def test_no_other_order_has_a_higher_bound(rng, weights):
    """sum_k N_k E ln pi_k - KL, the part of the ELBO that the order changes, for all 120 orders."""
    counts = rng.permutation([0.5, 2.0, 7.0, 12.0, 40.0])

    def bound(order):
        sizes = counts[list(order)]
        a, b, _ = dp_sticks(sizes, weights)
        omega = b[0] - sizes[1:].sum()
        q = Sticks(np.arange(5), a, b, omega, np.array(weights))
        return sizes @ dp_log_weights(a, b) - q.divergence()

    orders = list(permutations(range(5)))
    best = max(orders, key=bound)
    assert list(best) == list(np.argsort(-counts))
    assert len({round(bound(order), 6) for order in orders}) > 20


# --- coordinate ascent --------------------------------------------------------------------------


def begin(X, resp, prior, weights):
    origins, rows = first_statistics(X, resp, prior.mean, prior.covariance.ndim == 1)
    return State.resume(dp.make_model(weights, prior, origins), rows.reshape(1, -1), 1)


@PRIORS
@pytest.mark.parametrize("covariance_type", ["full", "diag"])
def test_full_batches_are_coordinate_ascent(rng, weights, covariance_type):
    X = clusters(rng, 150)[0]
    prior = some_prior(2, rng, covariance_type)
    resp = rng.dirichlet(np.full(4, 0.3), size=len(X))
    state = begin(X, resp, prior, weights)
    items, bounds = dense_items(X), []
    for _ in range(25):
        sizes = resp.sum(axis=0)
        order = np.argsort(-sizes)
        a, b, omega = dp_sticks(sizes[order], weights)
        log_weights = np.empty(4)
        log_weights[order] = dp_log_weights(a, b)
        q = components(X, resp, prior)
        np.testing.assert_allclose(mixture.counts(state), sizes, rtol=1e-7, atol=1e-9)
        sticks, got = dp.read_sticks(state), mixture.posterior(state, dp.expect)
        np.testing.assert_allclose(sticks.b, b, rtol=1e-7)
        if omega is not None:
            assert sticks.concentration == pytest.approx(omega[0] / omega[1], rel=1e-7)
        for k, (kappa, m, w_inv, nu) in enumerate(q):
            np.testing.assert_allclose(got.means[k], m, rtol=1e-7, atol=1e-8)
            np.testing.assert_allclose(nu * got.covariances[k], w_inv, rtol=1e-7, atol=1e-8)
            np.testing.assert_allclose(
                (got.mean_precision[k], got.degrees_of_freedom[k]), (kappa, nu), rtol=1e-8
            )
        resp, bound = local_step(X, q, log_weights)
        bounds.append(bound.sum() - got.divergence(prior).sum() - sticks.divergence())
        fit(state, items, schedule=constant(1.0), batch_size=len(X), n_passes=1, seed=0)
    rises = np.diff(bounds)
    assert (rises > -1e-9 * abs(bounds[-1])).all() and rises.sum() > 10


@pytest.mark.parametrize(("n_features", "n_components"), [(1, 2), (3, 4)])
def test_fixed_point_of_scikit_learn(rng, n_features, n_components):
    """Their sticks are in the order of k-means: a fixed point here where that is by size."""
    X = clusters(rng, 400, n_features, n_components)[0]
    root = rng.normal(size=(n_features, n_features))
    priors = dict(
        weight_concentration_prior=0.6, mean_precision_prior=0.1,
        mean_prior=X.mean(axis=0) + 0.5, degrees_of_freedom_prior=n_features + 2.0,
        covariance_prior=root @ root.T + np.eye(n_features),
    )  # fmt: skip

    def peer(seed, max_iter):
        return BayesianGaussianMixture(
            n_components=n_components, weight_concentration_prior_type="dirichlet_process",
            reg_covar=0, tol=1e-12, max_iter=max_iter, random_state=seed, **priors,
        ).fit(X)  # fmt: skip

    def in_order(peer):
        return np.all(np.diff(peer.weight_concentration_[0]) < 0)

    for seed in range(200):  # the first step mostly shows the order
        if in_order(peer(seed, 1)) and in_order(theirs := peer(seed, 5000)):
            break
    weights, prior = (priors.pop("weight_concentration_prior"),), Prior(
        priors["mean_precision_prior"], priors["mean_prior"], priors["degrees_of_freedom_prior"],
        priors["covariance_prior"],
    )  # fmt: skip
    resp = theirs.predict_proba(X)
    state = begin(X, resp, prior, weights)
    fit(state, dense_items(X), schedule=constant(1.0), batch_size=len(X), n_passes=300, seed=0)
    sticks, q = dp.read_sticks(state), mixture.posterior(state, dp.expect)
    assert np.array_equal(sticks.order, range(n_components))
    np.testing.assert_allclose([sticks.a, sticks.b], theirs.weight_concentration_, rtol=1e-5)
    for ours, name in (
        (q.means, "means_"), (q.covariances, "covariances_"), (q.precisions, "precisions_"),
        (q.mean_precision, "mean_precision_"), (q.degrees_of_freedom, "degrees_of_freedom_"),
    ):  # fmt: skip
        np.testing.assert_allclose(ours, getattr(theirs, name), rtol=1e-4, atol=1e-6, err_msg=name)
    proba = np.empty(resp.shape)
    everything = np.arange(len(X), dtype=np.int32)
    mixture.infer(dense_items(X), everything, q.standard, q.origins, proba, np.empty(len(X)))
    np.testing.assert_allclose(proba, theirs.predict_proba(X), atol=1e-5)


# --- the estimator ------------------------------------------------------------------------------


@pytest.mark.parametrize("covariance_type", ["full", "diag"])
def test_number_of_components_is_recovered(covariance_type):
    rng = np.random.default_rng(4)
    means = np.array([[0, 0, 0], [9, 0, 0], [0, 9, 0], [0, 0, 9], [9, 9, 9]])
    shares = np.array([0.4, 0.25, 0.2, 0.1, 0.05])
    z = rng.choice(5, size=5000, p=shares)
    X = means[z] + rng.normal(size=(5000, 3))
    mixture = DPSVIDPMixture(
        15, covariance_type=covariance_type, max_iter=100, batch_size=500, n_init=3,
        random_state=0,
    ).fit(X)  # fmt: skip
    assert mixture.n_components_active_ == 5
    order = np.argsort(-mixture.counts_)
    np.testing.assert_allclose(mixture.counts_[order[:5]], np.bincount(z), rtol=0.03)
    assert mixture.counts_[order[5:]].max() < 1
    np.testing.assert_allclose(mixture.weights_[order[:5]], shares, atol=0.02)
    np.testing.assert_allclose(mixture.means_[order[:5]], means, atol=0.15)
    assert (mixture.predict(X) == order[z]).mean() > 0.99
    assert 0.5 < mixture.concentration_ < 2.5  # 5 of 5,000: about 5 / ln(5,000 / 5)
    assert mixture.weight_concentration_.shape == (2, 15)


def test_concentration_follows_the_data(rng):
    """More clusters in as many points: a larger omega."""
    found = []
    for n_clusters in (2, 16):
        side = np.arange(4) * 8.0
        means = np.array(np.meshgrid(side, side)).reshape(2, -1).T[:n_clusters]
        X = means[rng.integers(n_clusters, size=3000)] + rng.normal(size=(3000, 2))
        found.append(DPSVIDPMixture(20, random_state=0).fit(X).concentration_)
    assert found[1] > 3 * found[0]
    given = DPSVIDPMixture(20, weight_concentration_prior=0.5, random_state=0).fit(X)
    assert given.concentration_ == 0.5


def test_numbers_of_components_do_not_change(rng):
    X, *_ = clusters(rng, 2000, 2, 3)
    mixture = DPSVIDPMixture(6, random_state=0, total_samples=2000)
    mixture.partial_fit(X)
    before = mixture.predict(X)
    for _ in range(3):
        mixture.partial_fit(X)
    assert (mixture.predict(X) == before).mean() > 0.95


def test_a_given_concentration_is_not_drawn(rng):
    X = rng.normal(size=(50, 2))
    drawn = DPSVIDPMixture(4, weight_concentration_prior=2.0, max_iter=2).fit(X).posterior_samples()
    assert sorted(drawn) == ["covariances", "means", "precisions", "weights"]
