"""Data that fitted models draw: their form, their seeds, and their moments by formula."""

import sys

import members
import numpy as np
import pytest
import scipy.sparse
from members import every_member

from dpsvi import DPSVIHMM, DPSVIGaussianMixture
from dpsvi.estimators.sampling import Sampling

CASES = [(name, {}) for name in members.names()]
CASES += [(name, {"covariance_type": "diag"}) for name in ("gaussian_mixture", "hmm")]


def fitted(name, n=120, **params):
    member = members.get(name)
    data = member.data(np.random.default_rng(3), n)
    return member.estimator(max_iter=5, **params).fit(**data), data


def design(data):
    """What is passed besides y."""
    return {key: value for key, value in data.items() if key != "y"}


def dense(X):
    return X.toarray() if scipy.sparse.issparse(X) else np.asarray(X)


@pytest.mark.parametrize(("name", "params"), CASES)
def test_drawn_data_have_the_form_of_the_real_ones(name, params):
    estimator, data = fitted(name, **params)
    target = data["y"] if "y" in data else data["X"]
    drawn = list(estimator.posterior_predictive(**design(data), n_samples=3))
    again = list(estimator.posterior_predictive(**design(data), n_samples=3))
    other = list(estimator.posterior_predictive(**design(data), n_samples=3, random_state=9))
    assert len(drawn) == 3
    for one, same, different in zip(drawn, again, other, strict=True):
        assert one.shape == target.shape and np.isfinite(dense(one)).all()
        np.testing.assert_array_equal(dense(one), dense(same))
        assert (dense(one) != dense(different)).any()
    assert (dense(drawn[0]) != dense(drawn[1])).any()
    if name in ("lda", "hdp"):
        np.testing.assert_array_equal(drawn[0].sum(axis=1), data["X"].sum(axis=1))
    if name == "matrix_factorization":
        np.testing.assert_array_equal(drawn[0].indices, scipy.sparse.csr_array(data["X"]).indices)
    if name == "hierarchical_probit":
        assert set(drawn[0]) <= set(data["y"])


def one_draw(estimator):
    """One draw of the parameters."""
    return {name: array[0] for name, array in estimator.posterior_samples(1).items()}


def near(sample, mean, variance=None, n_errors=5):
    """The moments of draws, along the first axis, are these."""
    sample = np.asarray(sample, dtype=float)
    error = sample.std(axis=0) / np.sqrt(len(sample)) + 1e-12
    assert (np.abs(sample.mean(axis=0) - mean) < n_errors * error).all()
    if variance is not None:
        square = (sample - mean) ** 2
        error = square.std(axis=0) / np.sqrt(len(sample)) + 1e-12
        assert (np.abs(square.mean(axis=0) - variance) < n_errors * error).all()


@pytest.mark.parametrize("params", [{}, {"covariance_type": "diag"}], ids=["full", "diag"])
@pytest.mark.parametrize("name", ["gaussian_mixture", "dp_mixture"])
def test_moments_of_mixtures(name, params, rng):
    estimator, _ = fitted(name, **params)
    draw = one_draw(estimator)
    X = estimator._draw_data(draw, 100_000, rng)
    weights, means, cov = (draw[name] for name in ("weights", "means", "covariances"))
    weights = weights / weights.sum()  # of a Dirichlet process there is more behind them
    variances = cov if cov.ndim == 2 else np.diagonal(cov, axis1=1, axis2=2)
    mean = weights @ means
    near(X, mean, weights @ (variances + means**2) - mean**2)
    if cov.ndim == 3:
        both = np.einsum("k,kij->ij", weights, cov + means[:, :, None] * means[:, None])
        near(X[:, 0] * X[:, 1], both[0, 1])


@pytest.mark.parametrize("emission", ["gaussian", "categorical"])
def test_moments_of_chains(emission, rng):
    X = rng.normal(size=(60, 2)) if emission == "gaussian" else rng.integers(3, size=(60, 1))
    hmm = DPSVIHMM(2, emission=emission, max_iter=5, random_state=0).fit(X, lengths=[20] * 3)
    draw, n = one_draw(hmm), 30_000
    drawn = hmm._draw_data(draw, np.arange(n + 1) * 2, rng).reshape(n, 2, -1)
    second = draw["startprob"] @ draw["transmat"]
    for t, law in enumerate((draw["startprob"], second)):
        if emission == "gaussian":
            near(drawn[:, t], law @ draw["means"])
        else:
            near(drawn[:, t] == np.arange(3), law @ draw["emissionprob"])
    assert [len(x) for x in hmm.posterior_predictive(X, 2, lengths=[20] * 3)] == [60, 60]


@pytest.mark.parametrize("name", ["lda", "hdp"])
def test_moments_of_documents(name, rng):
    """Dirichlet-multinomial: words of a document come from few topics, and so vary more."""
    model, _ = fitted(name)
    draw, n_words, n = one_draw(model), 30, 20_000
    counts = model._draw_data(draw, np.full(n, n_words), rng).toarray()
    alpha, words = model._prior_of_documents(draw), draw["components"].astype(float)
    share = alpha / alpha.sum()
    covariance = (np.diag(share) - np.outer(share, share)) / (1 + alpha.sum())
    p = share @ words
    spread = np.einsum("kw,kl,lw->w", words, covariance, words)
    near(counts, n_words * p, n_words * (p - p**2) + n_words * (n_words - 1) * spread, 6)


def test_moments_of_ratings(rng):
    for name in ("matrix_factorization", "poisson_factorization"):
        model, data = fitted(name, 12)
        draw, X = one_draw(model), scipy.sparse.csr_array(data["X"])
        like = model._like(X)
        drawn = [model._draw_data(draw, like, rng) for _ in range(4000)]
        if name == "poisson_factorization":
            shape, rate = like
            users, spread = shape / rate, shape / rate**2
            mean = users @ draw["components"]
            near([x.toarray() for x in drawn], mean, mean + spread @ draw["components"] ** 2, 7)
            continue
        _, means, root = like
        np.testing.assert_allclose(means, model.transform(X), rtol=1e-6)
        of = np.repeat(np.arange(len(means)), np.diff(X.indptr))
        v = draw["components"][:, X.indices]
        spread = (np.einsum("nij,in->nj", root[of], v) ** 2).sum(axis=1)
        mean = np.einsum("nk,kn->n", means[of], v) + model.mean_
        near([x.data for x in drawn], mean, spread + draw["noise_variance"], 6)


def test_moments_of_regressions(rng):
    model, data = fitted("hierarchical_regression", 300)
    draw, x = one_draw(model), np.asarray(data["X"])[:2]
    known = data["groups"][:2]
    place = [list(model.groups_).index(g) for g in known]
    noise = 1 / draw["noise_precision"]
    drawn = [model._draw_data(draw, model._like(x, groups=known), rng) for _ in range(2000)]
    mean = np.einsum("nd,nd->n", draw["group_coef"][place], x) + draw["group_intercept"][place]
    near(drawn, mean, noise)
    new = np.full(2, "nobody" if isinstance(known[0], str) else 10_000)
    drawn = np.array([model._draw_data(draw, model._like(x, groups=new), rng) for _ in range(2000)])
    rows = np.column_stack([np.ones(2), x])
    covariance = rows @ draw["population_covariance"] @ rows.T
    mean = x @ draw["coef"] + draw["intercept"]
    near(drawn, mean, np.diag(covariance) + noise)
    together = (drawn - mean).prod(axis=1)  # of one group: what is new of it is shared
    assert abs(together.mean() - covariance[0, 1]) < 5 * together.std() / np.sqrt(len(together))
    apart = np.array([model._draw_data(draw, model._like(x), rng) for _ in range(2000)])
    product = (apart - mean).prod(axis=1)
    assert abs(product.mean()) < 5 * product.std() / np.sqrt(len(product))


def test_a_check_finds_tails_that_are_too_heavy(rng):
    X = rng.standard_t(2, size=(500, 1))
    mixture = DPSVIGaussianMixture(random_state=0).fit(X)
    drawn = [np.abs(x).max() for x in mixture.posterior_predictive(X, 200)]
    assert np.mean(np.array(drawn) > np.abs(X).max()) < 0.01
    X = rng.normal(size=(500, 1))
    mixture = DPSVIGaussianMixture(random_state=0).fit(X)
    drawn = [np.abs(x).max() for x in mixture.posterior_predictive(X, 200)]
    assert 0.01 < np.mean(np.array(drawn) > np.abs(X).max()) < 0.99


def test_what_cannot_be_drawn_is_refused(rng):
    X = rng.normal(size=(20, 2))
    mixture = DPSVIGaussianMixture(random_state=0).fit(X)
    with pytest.raises(ValueError, match="n_samples must be an integer >= 1"):
        mixture.posterior_predictive(X, 0)
    with pytest.raises(ValueError, match="3 features"):
        mixture.posterior_predictive(np.zeros((2, 3)))
    with pytest.raises(NotImplementedError, match="defines no _like"):
        Sampling()._like(X)
    with pytest.raises(NotImplementedError, match="defines no _draw_data"):
        Sampling()._draw_data({}, None, rng)


@every_member
def test_arviz_gets_the_posterior(name):
    pytest.importorskip("arviz")
    estimator, _ = fitted(name)
    posterior = estimator.to_arviz(7, random_state=1)["posterior"]
    draws = estimator.posterior_samples(7, random_state=1)
    assert set(posterior.data_vars) == set(draws)
    for quantity, array in draws.items():
        np.testing.assert_array_equal(posterior[quantity].values, array[None])


def test_without_arviz_the_error_says_what_to_install(rng, monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", None)
    mixture = DPSVIGaussianMixture(random_state=0).fit(rng.normal(size=(20, 2)))
    with pytest.raises(ImportError, match=r"pip install 'dpsvi\[arviz\]'"):
        mixture.to_arviz()
