"""What holds for every mixture of Gaussians: the bound, its gradient, both kinds of covariances."""

import math
import warnings

import numpy as np
import pytest
from reference.mixtures import (
    assert_mean,
    clusters,
    dirichlet_log_weights,
    dp_log_weights,
    dp_sticks,
    draw_component,
    draw_wishart,
    log_wishart,
    some_prior,
)
from scipy import special, stats

from dpsvi import DPSVIDPMixture, DPSVIGaussianMixture
from dpsvi.expfam.gaussian import first_statistics
from dpsvi.families.mixtures import mixture
from dpsvi.models import dp_mixture, gaussian_mixture
from dpsvi.training.items import dense_items
from dpsvi.training.state import State
from dpsvi.training.task import make_task, make_works

TYPES = pytest.mark.parametrize("covariance_type", ["full", "diag"])
CLASSES = pytest.mark.parametrize("cls", [DPSVIGaussianMixture, DPSVIDPMixture])
# module, prior of the weights
MODELS = pytest.mark.parametrize(
    ("model", "weights"),
    [(gaussian_mixture, 0.7), (dp_mixture, (2.0, 1.5)), (dp_mixture, (0.8,))],
    ids=["dirichlet", "learned", "given"],
)


def start(model, weights, X, n_components, prior, rng):
    resp = rng.dirichlet(np.full(n_components, 0.3), size=len(X))
    origins, rows = first_statistics(X, resp, prior.mean, prior.covariance.ndim == 1)
    return State.resume(model.make_model(weights, prior, origins), rows.reshape(1, -1), 1)


def divergence(model, state, prior):
    components = mixture.posterior(state, model.expect).divergence(prior).sum()
    if model is gaussian_mixture:
        return components + model.weight_divergence(state)
    return components + model.read_sticks(state).divergence()


def infer(model, state, X):
    q, n = mixture.posterior(state, model.expect), len(X)
    resp, bound = np.empty((n, len(q.origins))), np.empty(n)
    mixture.infer(
        dense_items(X), np.arange(n, dtype=np.int32), q.standard, q.origins, resp, bound
    )  # fmt: skip
    return resp, bound


# --- the gradient -----------------------------------------------------------------------------


def expected_log_weights(model, weights, counts):
    if model is gaussian_mixture:
        return dirichlet_log_weights(counts)
    order = np.argsort(-counts)
    a, b, _ = dp_sticks(counts[order], weights)
    expected = np.empty(len(counts))
    expected[order] = dp_log_weights(a, b)
    return expected


def expected_statistics(model, weights, lam, n):
    """E[t] in the coordinates of lam: the gradient of the log-normaliser (39)."""
    blocks = [expected_log_weights(model, weights, lam[:, 0])[:, None]]
    rows = []
    for row in lam:
        kappa, h, psi, nu = row[1], row[2 : n + 2], row[n + 2 : -1], row[-1]
        m = h / kappa
        if len(psi) == n:
            expected = nu / (psi - kappa * m**2)
            log_det = np.sum(special.digamma(nu / 2) + np.log(2 * expected / nu))
            square, linear = n / kappa + np.sum(expected * m**2), expected * m
        else:
            psi = psi.reshape(n, n)
            w = np.linalg.inv((psi + psi.T) / 2 - kappa * np.outer(m, m))
            log_det = special.digamma((nu - np.arange(n)) / 2).sum() + n * math.log(2)
            log_det += np.linalg.slogdet(w)[1]
            expected, linear = nu * w, nu * w @ m
            square = n / kappa + m @ linear
        rows.append([-square / 2, *linear, *(-expected.ravel() / 2), log_det / 2])
    return np.hstack([*blocks, rows]).ravel()


def central(function, lam):
    """d function / d lam by differences; one row a coordinate."""
    rows = []
    for j in range(len(lam)):
        step = np.zeros(len(lam))
        step[j] = 1e-5 * max(1.0, abs(lam[j]))
        rows.append((function(lam + step) - function(lam - step)) / (2 * step[j]))
    return np.array(rows)


@TYPES
@MODELS
def test_the_step_is_the_natural_gradient(rng, model, weights, covariance_type):
    """d bound / d lam = (d E[t] / d lam) (lam-hat - lam) in every coordinate, (45) and (46)."""
    X, n = clusters(rng, 40, 2, 3)[0], 2
    prior = some_prior(n, rng, covariance_type)
    state = start(model, weights, X, 3, prior, rng)
    shape = (3, -1)

    def put(lam):
        state.shared.rows[0] = lam - state.model.prior[0]
        state.recount()

    def bound(lam):
        put(lam)
        return infer(model, state, X)[1].sum() - divergence(model, state, prior)

    lam = state.natural()[0]
    (work,) = make_works(state.model, dense_items(X), len(X), 1)
    work.totals[:] = state.shared.totals.sum(axis=0)
    local = make_task(state.model, state.shared, dense_items(X), len(X), (work,)).local
    everything = np.arange(len(X), dtype=np.int32)
    local(state.shared, 1.0, state.model.hyper, dense_items(X), everything, work)
    direction = state.model.prior[0] + work.stats[0] - lam
    fisher = central(lambda x: expected_statistics(model, weights, x.reshape(shape), n), lam)
    got, want = central(bound, lam), fisher @ direction
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-6 * np.abs(want).max())
    assert np.abs(want).max() > 0.1
    np.testing.assert_allclose(fisher, fisher.T, rtol=1e-4, atol=1e-5 * np.abs(fisher).max())


# --- the bound --------------------------------------------------------------------------------


def draw_weights(model, weights, state, n, rng):
    """Draws of pi from q and their ln q / p."""
    counts = mixture.counts(state)
    if model is gaussian_mixture:
        pi = rng.dirichlet(counts, size=n)
        p = stats.dirichlet(np.full(len(counts), weights))
        return pi, stats.dirichlet(counts).logpdf(pi.T) - p.logpdf(pi.T)
    order = np.argsort(-counts)
    a, b, gamma = dp_sticks(counts[order], weights)
    v = rng.beta(a, b, size=(n, len(a)))
    omega, ratio = np.full(n, weights[0]), np.zeros(n)
    if gamma is not None:
        q = stats.gamma(gamma[0], scale=1 / gamma[1])
        omega = q.rvs(n, random_state=rng)
        ratio = q.logpdf(omega) - stats.gamma(weights[0], scale=1 / weights[1]).logpdf(omega)
    log_p = np.log(omega)[:, None] + (omega[:, None] - 1) * np.log1p(-v)
    ratio = ratio + (stats.beta(a, b).logpdf(v) - log_p).sum(axis=1)
    left = np.cumprod(np.hstack([np.ones((n, 1)), 1 - v]), axis=1)
    pi = np.empty((n, len(counts)))
    pi[:, order] = v * left[:, :-1]
    return pi, ratio


def test_the_reference_knows_wishart_matrices(rng):
    w_inv, nu = np.array([[2.0, 0.3], [0.3, 1.0]]), 4.5
    drawn, wishart = draw_wishart(nu, w_inv, 50_000, rng), stats.wishart(nu, np.linalg.inv(w_inv))
    few = drawn[:20]
    np.testing.assert_allclose(
        log_wishart(few, nu, w_inv), wishart.logpdf(np.moveaxis(few, 0, -1)), rtol=1e-10
    )
    for i, j in ((0, 0), (0, 1), (1, 1)):
        assert_mean(drawn[:, i, j], wishart.mean()[i, j])
        square = (drawn[:, i, j] - wishart.mean()[i, j]) ** 2
        assert_mean(square, wishart.var()[i, j])


@TYPES
@MODELS
def test_bound_is_the_mean_of_log_ratios(rng, model, weights, covariance_type):
    """ln p(x, z, theta) / q(z, theta) over draws from q: the ELBO, all constants included."""
    X, n_draws = clusters(rng, 25, 2, 2)[0], 20_000
    prior = some_prior(2, rng, covariance_type)
    state = start(model, weights, X, 3, prior, rng)
    resp, bound = infer(model, state, X)
    pi, log_ratio = draw_weights(model, weights, state, n_draws, rng)
    assert_mean(
        log_ratio,
        divergence(model, state, prior)
        - mixture.posterior(state, model.expect).divergence(prior).sum(),
    )
    total = -log_ratio - np.sum(special.xlogy(resp, resp))
    q = mixture.posterior(state, model.expect)
    w_inv = (q.degrees_of_freedom * q.covariances.T).T
    p = (prior.mean_precision, prior.mean, prior.covariance, prior.degrees_of_freedom)
    for k in range(3):
        one = (q.mean_precision[k], q.means[k], w_inv[k], q.degrees_of_freedom[k])
        mu, precision, log_ratio = draw_component(one, p, n_draws, rng)
        x = X[None] - mu[:, None]
        if covariance_type == "diag":
            square = np.einsum("snd,sd->sn", x**2, precision)
            log_det = np.log(precision).sum(axis=1)
        else:
            square = np.einsum("sni,sij,snj->sn", x, precision, x)
            log_det = np.linalg.slogdet(precision)[1]
        log_p = np.log(pi[:, k]) + log_det / 2 - math.log(2 * math.pi)
        total += (log_p[:, None] - square / 2) @ resp[:, k] - log_ratio
    assert_mean(total, bound.sum() - divergence(model, state, prior))


@CLASSES
def test_bound_of_one_component_is_the_evidence(rng, cls):
    """With one component nothing is approximate: p(x) of the conjugate model (Murphy 2007, 266)."""
    X = rng.normal(size=(30, 3)) * [1, 2, 3] + 5
    m0, w0, kappa0, nu0 = np.array([1.0, 2.0, 3.0]), np.array([2.0, 1.0, 0.5]), 0.4, 4.5
    priors = dict(mean_prior=m0, mean_precision_prior=kappa0, degrees_of_freedom_prior=nu0)
    n, d = X.shape
    kappa, nu = kappa0 + n, nu0 + n
    shift = X.mean(axis=0) - m0
    scatter = (X - X.mean(axis=0)).T @ (X - X.mean(axis=0)) + kappa0 * n / kappa * np.outer(
        shift, shift
    )
    common = -n * d / 2 * math.log(math.pi) + d / 2 * math.log(kappa0 / kappa)
    all_in_one = 0.0
    if cls is DPSVIDPMixture:  # E[V_1^n]
        priors["weight_concentration_prior"] = 0.7
        all_in_one = special.betaln(1 + n, 0.7) - special.betaln(1, 0.7)
    full = cls(1, learning_rate=1.0, batch_size=n, covariance_prior=np.diag(w0), **priors).fit(X)
    common += all_in_one
    evidence = common + special.multigammaln(nu / 2, d) - special.multigammaln(nu0 / 2, d)
    evidence += nu0 / 2 * np.log(w0).sum() - nu / 2 * np.linalg.slogdet(np.diag(w0) + scatter)[1]
    assert full.lower_bound_ == pytest.approx(evidence, rel=1e-10)
    diagonal = cls(
        1, covariance_type="diag", learning_rate=1.0, batch_size=n, covariance_prior=w0, **priors
    ).fit(X)
    evidence = common + d * (special.gammaln(nu / 2) - special.gammaln(nu0 / 2))
    evidence += np.sum(nu0 / 2 * np.log(w0) - nu / 2 * np.log(w0 + np.diag(scatter)))
    assert diagonal.lower_bound_ == pytest.approx(evidence, rel=1e-10)


# --- diagonal covariances ---------------------------------------------------------------------


@CLASSES
def test_one_dimension_has_one_kind_of_covariance(rng, cls):
    X = clusters(rng, 300, 1, 3)[0]
    full, diagonal = (
        cls(4, covariance_type=kind, max_iter=5, batch_size=50, random_state=0).fit(X)
        for kind in ("full", "diag")
    )
    np.testing.assert_allclose(full._state.natural(), diagonal._state.natural(), rtol=1e-10)
    assert full.covariances_.shape == (4, 1, 1) and diagonal.covariances_.shape == (4, 1)
    np.testing.assert_allclose(full.precisions_[:, 0], diagonal.precisions_, rtol=1e-12)
    assert full.lower_bound_ == pytest.approx(diagonal.lower_bound_, rel=1e-12)
    np.testing.assert_allclose(full.score_samples(X), diagonal.score_samples(X), rtol=1e-12)
    np.testing.assert_allclose(full.sample(5)[0], diagonal.sample(5)[0], rtol=1e-10)


@CLASSES
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_diagonal_truth_is_recovered(cls, n_jobs):
    rng = np.random.default_rng(3)
    means, scales = 6 * rng.normal(size=(3, 4)), rng.uniform(0.3, 2.0, size=(3, 4))
    z = rng.integers(3, size=6000)
    X = means[z] + scales[z] * rng.normal(size=(6000, 4))
    mixture = cls(
        3, covariance_type="diag", n_jobs=n_jobs, batch_size=100, covariance_prior=np.ones(4),
        mean_precision_prior=0.01, random_state=0,
    ).fit(X)  # fmt: skip
    order = np.linalg.norm(means[:, None] - mixture.means_[None], axis=2).argmin(axis=1)
    assert sorted(order) == [0, 1, 2]
    np.testing.assert_allclose(mixture.means_[order], means, atol=0.15)
    np.testing.assert_allclose(mixture.covariances_[order], scales**2, rtol=0.12)
    np.testing.assert_allclose(mixture.precisions_, 1 / mixture.covariances_)
    assert (mixture.predict(X) == order[z]).mean() > 0.99
    drawn, y = mixture.sample(60_000)
    for k in range(3):
        variances = drawn[y == k].var(axis=0)
        np.testing.assert_allclose(variances, mixture.covariances_[k], rtol=0.06)


@CLASSES
@TYPES
@pytest.mark.parametrize("init_params", ["kmeans", "random"])
@pytest.mark.parametrize(
    "case",
    "one point, identical, duplicates, constant feature, K = 1, K > n, D = 1, D > n".split(", "),
)
def test_odd_data(rng, cls, case, init_params, covariance_type):
    X, n_components = rng.normal(size=(40, 3)), 3
    match case:
        case "one point":
            X = X[:1]
        case "identical":
            X = np.repeat(X[:1], 20, axis=0)
        case "K > n":
            X, n_components = X[:4], 9
        case "D = 1":
            X = X[:, :1]
        case "K = 1":
            n_components = 1
        case "constant feature":
            X[:, 1] = 7.0
        case "D > n":
            X = rng.normal(size=(5, 12))
        case "duplicates":
            X = np.repeat(X[:2], 20, axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mixture = cls(
            n_components, covariance_type=covariance_type, init_params=init_params, batch_size=8,
            random_state=0,
        ).fit(X)  # fmt: skip
    np.testing.assert_allclose(mixture.predict_proba(X).sum(axis=1), 1)
    np.testing.assert_allclose(mixture.weights_.sum(), 1)
    assert np.isfinite(mixture.lower_bound_) and np.isfinite(mixture.score(X))
    assert mixture.sample(10)[0].shape == (10, X.shape[1])
    if covariance_type == "diag":
        assert mixture.covariances_.shape == mixture.means_.shape
        assert mixture.covariances_.min() > 0
        np.testing.assert_allclose(mixture.covariances_ * mixture.precisions_, 1)
    else:
        assert np.linalg.eigvalsh(mixture.covariances_).min() > 0
        identity = np.broadcast_to(np.eye(X.shape[1]), mixture.covariances_.shape)
        np.testing.assert_allclose(mixture.covariances_ @ mixture.precisions_, identity, atol=1e-6)


@CLASSES
def test_diagonal_far_from_zero(rng, cls):
    """Shifting the data by 1e8 shifts the means, to the data's own rounding, and nothing else."""
    X = np.round(clusters(rng, 400)[0] * 2**20) / 2**20  # the shifted numbers are exact to 2**-26
    near, far = (
        cls(3, covariance_type="diag", batch_size=50, random_state=0).fit(data)
        for data in (X, X + 2.0**26)
    )
    np.testing.assert_allclose(far.means_ - 2.0**26, near.means_, atol=1e-6)
    np.testing.assert_allclose(far.covariances_, near.covariances_, rtol=1e-5, atol=1e-6)
    assert far.lower_bound_ == pytest.approx(near.lower_bound_, rel=1e-6)


@CLASSES
@pytest.mark.parametrize("gap", [False, True])
def test_far_points_have_no_subnormal_responsibilities(cls, gap):
    """Arithmetic with them takes many times as long."""
    near, grid = np.array([[0.0, 0.0], [1.0, 1.0]] * 40), np.linspace(-60, 60, 2000)
    far = np.column_stack([grid, np.full_like(grid, np.nan) if gap else grid])
    noise = np.random.default_rng(0).normal(scale=0.1, size=near.shape)
    model = cls(2, covariance_type="diag", random_state=0, max_iter=5).fit(near + noise)
    found = model.predict_proba(far)
    assert np.all((found == 0) | (found > 1e-200))
    assert np.any(found == 0)
    np.testing.assert_allclose(found.sum(axis=1), 1)


@CLASSES
@TYPES
def test_save_and_load_what_was_given(rng, tmp_path, cls, covariance_type):
    X = clusters(rng, 200, 1)[0]
    mixture = cls(3, covariance_type=covariance_type, random_state=0, max_iter=3).fit(X)
    mixture.save(tmp_path)
    loaded = cls.load(tmp_path)
    for name in ("means_", "covariances_", "weights_", "weight_concentration_"):
        np.testing.assert_allclose(getattr(loaded, name), getattr(mixture, name), rtol=1e-9)
        assert getattr(loaded, name).shape == getattr(mixture, name).shape
    a, b = mixture.partial_fit(X), loaded.partial_fit(X)
    np.testing.assert_allclose(a.lower_bound_, b.lower_bound_, rtol=1e-9)
    other = {"full": "diag", "diag": "full"}[covariance_type]
    with pytest.raises(ValueError, match=f"covariance_type was '{covariance_type}'"):
        loaded.set_params(covariance_type=other).partial_fit(X)


@CLASSES
@pytest.mark.parametrize(
    ("params", "message"),
    [
        (dict(covariance_type="tied"), "covariance_type must be one of"),
        (dict(covariance_prior=np.eye(2)), r"covariance_prior must be finite and of shape \(2,\)"),
        (dict(covariance_prior=[1.0, 0.0]), r"covariance_prior must be > 0, got array\(.1., 0"),
        (dict(degrees_of_freedom_prior=0), "degrees_of_freedom_prior must be a number > 0"),
    ],
)
def test_bad_diagonal_parameters_are_named(rng, cls, params, message):
    with pytest.raises(ValueError, match=message):
        cls(**{"covariance_type": "diag", **params}).fit(rng.normal(size=(20, 2)))
