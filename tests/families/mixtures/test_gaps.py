"""Points with missing coordinates: against slow numpy, fits to what is there, and known answers."""

import numpy as np
import pytest
from members import several_at_once
from reference.gaps import (
    diagonal_components,
    diagonal_log_density,
    full_components,
    full_point,
    responsibilities,
    with_gaps,
)
from reference.mixtures import clusters, dirichlet_log_weights, some_prior
from sklearn.metrics import adjusted_rand_score

from dpsvi import DPSVIDPMixture, DPSVIGaussianMixture
from dpsvi.averaging import mean_of
from dpsvi.models import dp_mixture, gaussian_mixture

TYPES = pytest.mark.parametrize("covariance_type", ["full", "diag"])
BOTH = pytest.mark.parametrize("mixture", [DPSVIGaussianMixture, DPSVIDPMixture])
ALPHA = 0.7


def given(prior):
    """Parameters of an estimator that has this prior."""
    return dict(
        mean_precision_prior=prior.mean_precision, mean_prior=prior.mean,
        degrees_of_freedom_prior=prior.degrees_of_freedom, covariance_prior=prior.covariance,
    )  # fmt: skip


def ascent(X, n_components, prior, **params):
    """An estimator whose every pass is one step of coordinate ascent, after the first of them."""
    return DPSVIGaussianMixture(
        n_components, covariance_type="full" if prior.covariance.ndim == 2 else "diag",
        init_params="random", weight_concentration_prior=ALPHA, learning_rate=1.0,
        batch_size=len(X), max_iter=1, warm_start=True, random_state=0, **given(prior), **params,
    ).fit(X)  # fmt: skip


def components(mixture):
    """(kappa, m, W^-1, nu) of every component."""
    nu = mixture.degrees_of_freedom_
    n_axes = mixture.covariances_.ndim - nu.ndim
    scale = nu.reshape(*nu.shape, *[1] * n_axes) * mixture.covariances_
    return list(zip(mixture.mean_precision_, mixture.means_, scale, nu, strict=True))


def slow_step(X, mixture, prior):
    """(alpha, components, responsibilities, bounds) after one step from where `mixture` is."""
    q, full = components(mixture), prior.covariance.ndim == 2
    density = (lambda x, c: full_point(x, c)[0]) if full else diagonal_log_density
    log_p = np.array([[density(x, c) for c in q] for x in X])
    resp, bound = responsibilities(log_p + dirichlet_log_weights(mixture.weight_concentration_))
    new = full_components(X, resp, q, prior) if full else diagonal_components(X, resp, prior)
    return ALPHA + resp.sum(axis=0), new, resp, bound


@TYPES
@pytest.mark.parametrize(("n_features", "n_components"), [(1, 2), (2, 3), (5, 2)])
def test_steps_are_those_of_the_slow_reference(rng, covariance_type, n_features, n_components):
    X = with_gaps(clusters(rng, 150, n_features, n_components)[0], 0.3, rng)
    X[3] = np.nan
    prior = some_prior(n_features, rng, covariance_type)
    mixture, bounds = ascent(X, n_components, prior), []
    for _ in range(8):
        alpha, q, resp, bound = slow_step(X, mixture, prior)
        np.testing.assert_allclose(mixture.predict_proba(X), resp, rtol=1e-7, atol=1e-12)
        np.testing.assert_allclose(mixture.score_samples(X), bound, rtol=1e-8)
        bounds.append(mixture.lower_bound_)
        mixture.fit(X)
        np.testing.assert_allclose(mixture.weight_concentration_, alpha, rtol=1e-8)
        for got, wanted in zip(components(mixture), q, strict=True):
            for value, want in zip(got, wanted, strict=True):
                np.testing.assert_allclose(value, want, rtol=1e-7, atol=1e-7 * np.abs(want).max())
    assert (np.diff(bounds) > -1e-9 * abs(bounds[-1])).all()


def test_diagonal_gaps_are_left_out(rng):
    """One component: every feature is fitted to the numbers that are there, and to them alone."""
    X = with_gaps(rng.normal([0.0, 5.0], [1.0, 3.0], size=(200, 2)), 0.4, rng)
    prior = some_prior(2, rng, "diag")
    both, bound = ascent(X, 1, prior, n_init=1), 0.0
    for d in range(2):
        one = prior._replace(mean=prior.mean[d : d + 1], covariance=prior.covariance[d : d + 1])
        column = X[~np.isnan(X[:, d]), d : d + 1]
        alone = ascent(column, 1, one)
        for name in ("means_", "covariances_", "mean_precision_", "degrees_of_freedom_"):
            mine = getattr(both, name)[0, d]
            assert mine == pytest.approx(float(np.ravel(getattr(alone, name))[0]), rel=1e-9)
        bound += alone.lower_bound_
    assert both.lower_bound_ == pytest.approx(bound, rel=1e-9)


def test_what_is_missing_by_what_is_there_is_no_bias(rng):
    """The second feature is there where the first is small: the answer is a regression's.

    (Anderson 1957.)  The mean of what is there, and fits to complete points, are far off.
    """
    X = rng.multivariate_normal([0.0, 0.0], [[1.0, 0.9], [0.9, 1.0]], size=4000)
    X[X[:, 0] > 0, 1] = np.nan
    there = ~np.isnan(X[:, 1])
    slope, level = np.polyfit(X[there, 0], X[there, 1], 1)
    noise = np.var(X[there, 1] - slope * X[there, 0] - level)
    variance = np.var(X[:, 0])
    mixture = DPSVIGaussianMixture(
        1, learning_rate=1.0, batch_size=len(X), max_iter=300, random_state=0
    ).fit(X)
    assert mixture.means_[0, 1] == pytest.approx(level + slope * X[:, 0].mean(), abs=2e-3)
    assert mixture.covariances_[0, 0, 1] == pytest.approx(slope * variance, rel=0.01)
    assert mixture.covariances_[0, 1, 1] == pytest.approx(slope**2 * variance + noise, rel=0.01)
    assert X[there, 1].mean() < -0.6 and abs(mixture.means_[0, 1]) < 0.1


@BOTH
@TYPES
def test_groups_are_found_with_a_fifth_missing(rng, mixture, covariance_type):
    means = 6 * np.array([[0, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 1]])
    z = rng.integers(3, size=1500)
    X = with_gaps(means[z] + rng.normal(size=(1500, 4)), 0.2, rng)
    n_components = 3 if mixture is DPSVIGaussianMixture else 10
    fitted = mixture(n_components, covariance_type=covariance_type, random_state=0).fit(X)
    assert (fitted.weights_ > 0.05).sum() == 3
    assert adjusted_rand_score(z, fitted.predict(X)) > 0.95
    found = fitted.means_[fitted.weights_ > 0.05]
    nearest = np.linalg.norm(found[:, None] - means, axis=2).argmin(axis=0)
    np.testing.assert_allclose(found[nearest], means, atol=0.25)


@TYPES
def test_points_without_gaps_are_fitted_by_the_fast_step(rng, covariance_type):
    X = clusters(rng, 200)[0]
    for module, mixture in ((gaussian_mixture, DPSVIGaussianMixture), (dp_mixture, DPSVIDPMixture)):
        fitted = mixture(2, covariance_type=covariance_type, max_iter=2, random_state=0).fit(X)
        assert fitted._state.model.local is module.local
        assert fitted.degrees_of_freedom_.shape == (2,)
        fitted.fit(with_gaps(X, 0.1, rng))
        assert fitted._state.model.local is module.local_with_gaps


@TYPES
def test_both_steps_agree_where_nothing_is_missing(rng, covariance_type):
    X, prior = clusters(rng, 300)[0], some_prior(2, rng, covariance_type)
    fast, slow = (ascent(X, 3, prior) for _ in range(2))
    gap = slow._read(np.full((1, 2), np.nan), reset=False)
    slow._state = slow._again(gap)  # goes on as one that knows gaps
    fast.partial_fit(X)
    slow.partial_fit(X)
    np.testing.assert_allclose(slow.predict_proba(X), fast.predict_proba(X), atol=1e-9)
    np.testing.assert_allclose(slow.means_, fast.means_, rtol=1e-9)


@TYPES
def test_streams_may_begin_to_have_gaps(rng, covariance_type, tmp_path):
    X = clusters(rng, 900)[0]
    mixture = DPSVIGaussianMixture(3, covariance_type=covariance_type, random_state=0)
    mixture.partial_fit(X[:300])
    later = with_gaps(X[300:600], 0.3, rng)
    before = mixture.score_samples(later)
    mixture.partial_fit(later).save(tmp_path / "model")
    loaded = DPSVIGaussianMixture.load(tmp_path / "model")
    np.testing.assert_allclose(loaded.score_samples(later), mixture.score_samples(later))
    for each in (mixture, loaded):
        each.partial_fit(X[600:])
    np.testing.assert_allclose(loaded.means_, mixture.means_)
    assert mixture.score_samples(later).mean() > before.mean() - 0.1
    own_counts = (3, 2) if covariance_type == "diag" else (3,)
    assert mixture.mean_precision_.shape == own_counts
    assert mixture.posterior_samples(5)["means"].shape == (5, 3, 2)


@TYPES
def test_the_first_number_tells_where_the_rest_is_missing(rng, covariance_type):
    """Scores of a model that was fitted to whole points are those of its marginals."""
    X = np.array([[0.0, 0.0], [9.0, 9.0]])[rng.integers(2, size=500)] + rng.normal(size=(500, 2))
    mixture = DPSVIGaussianMixture(2, covariance_type=covariance_type, random_state=0).fit(X)
    resp = mixture.predict_proba([[0.0, np.nan], [np.nan, 9.0], [np.nan, np.nan]])
    low = mixture.means_[:, 0].argmin()
    assert resp[0, low] > 0.999 and resp[1, 1 - low] > 0.999
    np.testing.assert_allclose(resp[2], mixture.weights_, atol=0.01)
    alone = DPSVIGaussianMixture(2, covariance_type=covariance_type, random_state=0).fit(X[:, :1])
    gaps = X.copy()
    gaps[:, 1] = np.nan
    np.testing.assert_allclose(mixture.score_samples(gaps), alone.score_samples(X[:, :1]), atol=0.1)


@TYPES
def test_weights_count_points_with_gaps(rng, covariance_type):
    X, prior = with_gaps(clusters(rng, 120)[0], 0.3, rng), some_prior(2, rng, covariance_type)
    weight = rng.integers(0, 4, size=len(X))
    settings = dict(
        covariance_type=covariance_type, learning_rate=1.0, max_iter=1, random_state=0,
        init_params="random", batch_size=1000, warm_start=True, **given(prior),
    )  # fmt: skip
    weighted = DPSVIGaussianMixture(2, **settings).fit(X, sample_weight=weight)
    repeated = DPSVIGaussianMixture(2, **settings).fit(np.repeat(X, weight, axis=0))
    repeated._state = weighted._again(weighted._read(X, reset=False))  # the same beginning
    weighted.fit(X, sample_weight=weight)
    repeated.fit(np.repeat(X, weight, axis=0))
    for name in ("means_", "covariances_", "degrees_of_freedom_", "weight_concentration_"):
        np.testing.assert_allclose(getattr(weighted, name), getattr(repeated, name), rtol=1e-9)


@TYPES
@several_at_once
def test_several_at_once_reach_the_score_of_one(covariance_type, more):
    rng = np.random.default_rng(0)
    X = with_gaps(clusters(rng, 3000, 3, 3)[0], 0.2, rng)
    settings = dict(covariance_type=covariance_type, batch_size=100, max_iter=5, random_state=0)
    one = DPSVIGaussianMixture(3, **settings).fit(X[:2000]).score(X[2000:])
    several = DPSVIGaussianMixture(3, **settings, **more).fit(X[:2000]).score(X[2000:])
    assert several == pytest.approx(one, abs=0.1)


@TYPES
def test_fits_with_gaps_are_averaged(rng, covariance_type):
    X = with_gaps(clusters(rng, 900, 2, 3, spread=9.0)[0], 0.1, rng)
    fits = [
        DPSVIGaussianMixture(3, covariance_type=covariance_type, random_state=seed).fit(X)
        for seed in range(2)
    ]
    mean = mean_of(fits)
    assert mean.score(X) > min(fit.score(X) for fit in fits) - 0.05


def test_what_cannot_be_learned_from_is_refused(rng):
    X = rng.normal(size=(20, 2))
    X[:, 1] = np.nan
    with pytest.raises(ValueError, match="feature 1 of X has no value"):
        DPSVIGaussianMixture(2).fit(X)
    X[0] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        DPSVIGaussianMixture(2).fit(X)
    with pytest.raises(ValueError, match="sample_weight must be >= 0 and finite"):
        DPSVIGaussianMixture(2).fit(rng.normal(size=(2, 2)), sample_weight=[1.0, np.nan])


@BOTH
def test_incremental_passes(mixture, rng):
    """Diagonal covariances: the parameters end as the sum of what each point is responsible for."""
    X = clusters(rng, 300, 4)[0]
    X = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    options = dict(n_components=3, covariance_type="diag", max_iter=20, random_state=0)
    decayed, model = (mixture(incremental=on, **options).fit(X) for on in (False, True))
    mass = model._state.learned().reshape(3, -1)[:, 0]
    assert mass.sum() == pytest.approx(len(X), rel=1e-9)
    seen = model._state.learned().reshape(3, -1)[:, 1:5].sum(axis=0)
    np.testing.assert_allclose(seen, (~np.isnan(X)).sum(axis=0), rtol=1e-9)
    assert model.lower_bound_ > decayed.lower_bound_ - 1e-3 * abs(decayed.lower_bound_)


@BOTH
def test_incremental_passes_with_full_covariances_are_refused(mixture, rng):
    X = clusters(rng, 100, 4)[0]
    X[3, 1] = np.nan
    model = mixture(3, covariance_type="full", incremental=True)
    with pytest.raises(ValueError, match="needs covariance_type='diag'"):
        model.fit(X)
    assert not hasattr(model, "means_")
