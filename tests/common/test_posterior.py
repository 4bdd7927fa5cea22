"""Draws from the posterior of every model: shapes, seeds, means and distributions."""

import warnings
from functools import cache

import members
import numpy as np
import pytest
from members import every_member
from scipy import stats

import dpsvi
from dpsvi import DPSVIGaussianMixture
from dpsvi.errors import CorpusWarning
from dpsvi.estimators.sampling import Sampling

N_SAMPLES = 3000
CASES = [(name, ()) for name in members.names()]
CASES += [(name, (("covariance_type", "diag"),)) for name in ("gaussian_mixture", "hmm")]
every_case = pytest.mark.parametrize("name, params", CASES)


@cache
def fitted(name, params=()):
    """An estimator after some steps over all items at once, its data, and draws."""
    member = members.get(name)
    data = member.data(np.random.default_rng(3), 60)
    settings = dict(batch_size=1000, learning_rate=1.0, max_iter=5, **dict(params))
    estimator = member.estimator(**settings).fit(**data)
    return estimator, data, estimator.posterior_samples(N_SAMPLES, random_state=1)


@every_case
def test_draws_look_like_the_fitted_attributes(name, params):
    estimator, _, draws = fitted(name, params)
    for quantity, values in draws.items():
        attribute = np.asarray(getattr(estimator, f"{quantity}_"))
        assert values.shape == (N_SAMPLES, *attribute.shape), quantity
        assert values.dtype == attribute.dtype and np.isfinite(values).all(), quantity
        assert f'``"{quantity}"``' in type(estimator).__doc__, "its class says what it draws"


@every_case
def test_means_of_draws_are_those_of_the_posterior(name, params):
    estimator, _, draws = fitted(name, params)
    means = members.get(name).means(estimator)
    for quantity in draws:
        plain = lambda draws: draws[quantity], getattr(estimator, f"{quantity}_")  # noqa: B023
        of, mean = means.get(quantity, plain)
        values = np.asarray(of(draws), float)
        error = values.std(axis=0) / np.sqrt(N_SAMPLES)
        assert (np.abs(values.mean(axis=0) - mean) <= 5 * error + 1e-6 * np.abs(mean)).all(), (
            quantity
        )


@every_case
def test_draws_have_the_distributions_that_scipy_knows(name, params):
    estimator, data, draws = fitted(name, params)
    laws = members.get(name).laws(estimator, data)
    assert {text.split()[0] for text in laws} == set(draws)
    for text, (of, law) in laws.items():
        ranks = law.cdf(of(draws)).reshape(N_SAMPLES, -1)
        chances = [stats.kstest(column, "uniform").pvalue for column in ranks.T]
        assert min(chances) > 1e-6, text


@every_case
def test_draws_keep_to_what_they_are(name, params):
    *_, draws = fitted(name, params)
    for quantity, values in draws.items():
        if quantity in ("covariances", "covars", "precisions", "population_covariance"):
            full = values if values.shape[-1] == values.shape[-2] else values[..., None, None]
            assert np.linalg.eigvalsh(full).min() > 0, quantity
        if quantity in ("weights", "topic_weights", "startprob", "transmat", "emissionprob"):
            sums = values.sum(axis=-1)
            least = 0 if name in ("dp_mixture", "hdp") else 1 - 1e-12  # there is more behind them
            assert (values >= 0).all() and (least < sums).all() and (sums < 1 + 1e-12).all()
        if quantity in ("concentration", "noise_precision", "noise_variance", "item_rates"):
            assert (values > 0).all(), quantity


@every_member
def test_seeds_reproduce_draws(name, tmp_path):
    estimator, _, draws = fitted(name)
    first, again, other = (estimator.posterior_samples(4, seed) for seed in (7, 7, 8))
    own, seeded = estimator.posterior_samples(4), estimator.posterior_samples(4, 0)
    estimator.save(tmp_path)
    loaded = dpsvi.load(tmp_path).posterior_samples(4, 7)
    assert first.keys() == loaded.keys() == draws.keys()
    for quantity, values in first.items():
        assert np.array_equal(values, again[quantity]), quantity
        assert not np.array_equal(values, other[quantity]), quantity
        assert np.array_equal(own[quantity], seeded[quantity]), "the estimator's random_state is 0"
        np.testing.assert_allclose(values, loaded[quantity], rtol=1e-6, atol=1e-9)


@every_member
def test_credible_intervals_are_quantiles_of_the_draws(name):
    estimator, *_ = fitted(name)
    draws = estimator.posterior_samples(200, 5)
    intervals = estimator.credible_intervals(0.8, n_samples=200, random_state=5)
    assert intervals.keys() == draws.keys()
    for quantity, (low, high) in intervals.items():
        values = draws[quantity]
        assert low.shape == values.shape[1:] and low.dtype == values.dtype
        assert (np.sum(values < low, axis=0) == 20).all(), quantity
        assert (np.sum(values > high, axis=0) == 20).all(), quantity
    for level in (0, 1.5, "0.9"):
        with pytest.raises((ValueError, TypeError), match="level must be a number > 0 and <= 1"):
            estimator.credible_intervals(level)


@every_member
def test_hard_data_have_a_posterior(name, rng):
    member = members.get(name)
    for case, data in member.degenerate(rng).items():
        with np.errstate(all="raise", under="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", CorpusWarning)
            draws = member.estimator(max_iter=3).fit(**data).posterior_samples(20)
        assert all(np.isfinite(values).all() for values in draws.values()), case


def test_what_cannot_be_drawn_is_refused():
    mixture, *_ = fitted("gaussian_mixture")
    with pytest.raises(ValueError, match="n_samples must be an integer >= 1, got 0"):
        mixture.posterior_samples(0)
    with pytest.raises(ValueError, match="'x' cannot be used to seed"):
        mixture.posterior_samples(1, "x")

    class Mine(DPSVIGaussianMixture):
        _draw_posterior = Sampling._draw_posterior

    with pytest.raises(NotImplementedError, match="Mine does not say how to draw"):
        Mine().fit(np.eye(3)).posterior_samples()
