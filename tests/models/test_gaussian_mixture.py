"""The Gaussian mixture and its distributions against slow numpy, Monte Carlo and scikit-learn."""

import math

import numpy as np
import pytest
from reference.mixtures import (
    assert_mean,
    clusters,
    components,
    dirichlet_log_weights,
    draw_component,
    local_step,
    some_prior,
)
from scipy import special, stats
from sklearn.mixture import BayesianGaussianMixture

from dpsvi.engines import fit
from dpsvi.expfam import dirichlet, normal_gamma, normal_wishart
from dpsvi.expfam.gaussian import first_statistics, statistics
from dpsvi.families.mixtures import mixture
from dpsvi.kernels.digamma import digamma
from dpsvi.models import gaussian_mixture as gm
from dpsvi.models.gaussian_mixture import DPSVIGaussianMixture
from dpsvi.training.items import dense_items
from dpsvi.training.schedules import constant
from dpsvi.training.state import State
from dpsvi.training.task import make_task, make_works

ALPHA = 0.7
TYPES = pytest.mark.parametrize("covariance_type", ["full", "diag"])


def start(X, n_components, prior, rng, n_threads=1):
    """A state from random responsibilities, and these."""
    resp = rng.dirichlet(np.ones(n_components), size=len(X))
    diagonal = prior.covariance.ndim == 1
    origins, rows = first_statistics(X, resp, prior.mean, diagonal)
    return State.resume(gm.make_model(ALPHA, prior, origins), rows.reshape(1, -1), n_threads), resp


def read(state):
    return mixture.posterior(state, gm.expect)


def divergence(state, prior):
    return read(state).divergence(prior).sum() + gm.weight_divergence(state)


def as_components(state):
    """(alpha, kappa, m, W^-1, nu) of every component."""
    q = read(state)
    w_inv = (q.degrees_of_freedom * q.covariances.T).T
    return list(
        zip(
            mixture.counts(state), q.mean_precision, q.means, w_inv, q.degrees_of_freedom,
            strict=True,
        )
    )  # fmt: skip


def global_step(X, resp, prior):
    alpha = ALPHA + resp.sum(axis=0)
    return [(a, *c) for a, c in zip(alpha, components(X, resp, prior), strict=True)]


def reference_local_step(X, q):
    alpha = np.array([a for a, *_ in q])
    return local_step(X, [c for _, *c in q], dirichlet_log_weights(alpha))


def close(q, expected, tol=1e-8):
    for component, wanted in zip(q, expected, strict=True):
        for value, want in zip(component, wanted, strict=True):
            np.testing.assert_allclose(value, want, rtol=tol, atol=tol * np.abs(want).max())


# --- distributions ----------------------------------------------------------------------------


def test_digamma():
    x = np.geomspace(1e-6, 1e12, 400)
    np.testing.assert_allclose([digamma(v) for v in x], special.digamma(x), rtol=1e-13, atol=1e-14)


def test_dirichlet_kl_is_the_mean_of_log_ratios(rng):
    a, a0 = np.array([0.8, 3.0, 6.5]), np.array([1.0, 2.0, 2.5])
    x = rng.dirichlet(a, size=200_000)
    log_ratio = stats.dirichlet(a).logpdf(x.T) - stats.dirichlet(a0).logpdf(x.T)
    assert_mean(log_ratio, dirichlet.kl(a, a0))
    assert abs(dirichlet.kl(a, a)) < 1e-12


def test_normal_wishart_kl_is_the_mean_of_log_ratios(rng):
    root = np.array([[1.0, 0.0], [0.4, 0.8]])
    q = (2.5, np.array([0.3, -1.0]), root @ root.T, 6.0)
    p = (0.7, np.array([0.0, 0.2]), np.array([[2.0, 0.3], [0.3, 1.0]]), 4.5)
    assert_mean(draw_component(q, p, 50_000, rng)[-1], normal_wishart.kl(q, p))
    assert abs(normal_wishart.kl(q, q)) < 1e-12


def test_normal_gamma_kl_is_the_mean_of_log_ratios(rng):
    q = (2.5, np.array([0.3, -1.0]), np.array([1.5, 0.4]), 6.0)
    p = (0.7, np.array([0.0, 0.2]), np.array([2.0, 0.3]), 0.8)
    assert_mean(draw_component(q, p, 50_000, rng)[-1], normal_gamma.kl(q, p))
    assert abs(normal_gamma.kl(q, q)) < 1e-12


def test_normal_gamma_is_normal_wishart_in_one_dimension():
    q = (2.5, np.array([[0.3], [1.0]]), np.array([[1.5], [4.0]]), np.array([6.0, 0.3]))
    p = (0.7, np.array([0.1]), np.array([0.5]), 1.2)
    wide = [(k, m, w[..., None], nu) for k, m, w, nu in (q, p)]
    np.testing.assert_allclose(normal_gamma.kl(q, p), normal_wishart.kl(*wide), rtol=1e-12)
    row = np.array([3.0, 4.0, 9.0, 2.5])
    same = row.copy()
    normal_gamma.to_standard(row, np.array([0.1]))
    normal_wishart.to_standard(same, np.array([0.1]))
    np.testing.assert_allclose(row, same, rtol=1e-14)
    logs = [family.expected_log_det(row, 1) for family in (normal_gamma, normal_wishart)]
    assert logs[0] == pytest.approx(logs[1], rel=1e-14)


def test_damaged_variances_are_no_smaller_than_the_prior():
    row, floor = np.array([3.0, 4.0, -1.0, 5.0, 0.2, 2.5]), np.array([0.1, 0.3])
    normal_gamma.to_standard(row, floor)
    np.testing.assert_allclose(row[3:5] ** 2 * 2.5, floor, rtol=1e-14)


def natural_row(rng, n, mass=50.0):
    """Natural parameters after `mass` points, and what they stand for."""
    X = rng.normal(size=(int(mass), n)) @ rng.normal(size=(n, n)) + 3
    prior = np.eye(n) + 0.5
    kappa, nu = 2.0 + mass, n + 1.0 + mass
    row = np.concatenate([[kappa], X.sum(axis=0), (X.T @ X + prior).ravel(), [nu]])
    m = X.sum(axis=0) / kappa
    return row, np.diag(np.linalg.cholesky(prior)) ** 2, (kappa, m, X.T @ X + prior, nu)


@pytest.mark.parametrize("n", [1, 2, 7])
def test_standard_form(rng, n):
    row, floor, (kappa, m, psi, nu) = natural_row(rng, n)
    normal_wishart.to_standard(row, floor)
    factor = row[n + 1 : -1].reshape(n, n)
    assert (np.triu(factor, 1) == 0).all()
    np.testing.assert_allclose(row[1 : n + 1], m, rtol=1e-12)
    w_inv = psi - kappa * np.outer(m, m)
    np.testing.assert_allclose(nu * factor @ factor.T, w_inv, rtol=1e-9, atol=1e-9)
    expected = special.digamma((nu - np.arange(n)) / 2).sum() + n * math.log(2)
    expected -= np.linalg.slogdet(w_inv)[1]
    assert normal_wishart.expected_log_det(row, n) == pytest.approx(expected, rel=1e-12)


def test_damaged_covariance_is_repaired(rng):
    """Entries that lost 30 % at random: symmetric and definite again, variances as they were."""
    n, broken = 12, 0
    for _ in range(200):
        row, floor, _ = natural_row(rng, n)
        psi = row[n + 1 : -1].reshape(n, n)
        psi *= rng.choice([0.7, 1.0], p=[0.2, 0.8], size=(n, n))
        m = row[1 : n + 1] / row[0]
        w_inv = (psi + psi.T) / 2 - row[0] * np.outer(m, m)
        broken += np.linalg.eigvalsh(w_inv)[0] < 0
        nu = row[-1]
        normal_wishart.to_standard(row, floor)
        factor = row[n + 1 : -1].reshape(n, n)
        assert np.isfinite(factor).all() and (np.diag(factor) > 0).all()
        variances = np.maximum(np.diag(w_inv), floor) / nu
        np.testing.assert_allclose(np.diag(factor @ factor.T), variances, rtol=1e-9)
    assert broken > 50


# --- the local step ---------------------------------------------------------------------------


def run_local(state, X, batch):
    """lam-hat less the prior, as the kernel gives it for a batch, of the whole data's size."""
    model, items = state.model, dense_items(X)
    (work,) = make_works(model, items, len(batch), 1)
    work.totals[:] = state.shared.totals.sum(axis=0)
    task = make_task(model, state.shared, items, len(batch), (work,))
    local = task.local
    n = local(state.shared, state.scale, model.hyper, items, np.array(batch, np.int32), work)
    assert n == 1 and work.touched[0] == 0 and (work.slot == -1).all()
    return work.stats[0] * len(X) / len(batch)


@TYPES
@pytest.mark.parametrize(
    ("n", "n_features", "n_components", "offset"),
    [(1, 2, 3, 0), (63, 1, 1, 0), (64, 3, 4, 0), (150, 5, 2, 0), (150, 2, 3, 1e6)],
)
def test_kernel_equals_slow_reference(
    rng, n, n_features, n_components, offset, covariance_type
):  # fmt: skip
    X = clusters(rng, n, n_features, n_components)[0] + offset
    prior = some_prior(n_features, rng, covariance_type)
    prior = prior._replace(mean=prior.mean + offset)
    state, _ = start(X, n_components, prior, rng)
    origins = read(state).origins
    resp, bound = reference_local_step(X, as_components(state))
    expected = []
    for k in range(n_components):
        x, r = X - origins[k], resp[:, k]
        psi = r @ x**2 if covariance_type == "diag" else (r * x.T @ x).ravel()
        expected.append(np.concatenate([[r.sum()] * 2, r @ x, psi, [r.sum()]]))
    got = run_local(state, X, range(n)).reshape(n_components, -1)
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
    q = read(state)
    got_resp, got_bound = np.empty((n, n_components)), np.empty(n)
    everything = np.arange(n, dtype=np.int32)
    mixture.infer(dense_items(X), everything, q.standard, q.origins, got_resp, got_bound)
    np.testing.assert_allclose(got_resp, resp, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(got_bound, bound, rtol=1e-8)


# --- full batches with rate 1 are coordinate ascent -------------------------------------------


@TYPES
def test_full_batches_are_coordinate_ascent(rng, covariance_type):
    X = clusters(rng, 150)[0]
    prior = some_prior(2, rng, covariance_type)
    state, resp = start(X, 3, prior, rng)
    q = global_step(X, resp, prior)
    close(as_components(state), q)
    items, bounds = dense_items(X), []
    for _ in range(25):
        resp, bound = reference_local_step(X, q)
        bounds.append(bound.sum() - divergence(state, prior))
        q = global_step(X, resp, prior)
        fit(state, items, schedule=constant(1.0), batch_size=len(X), n_passes=1, seed=0)
        close(as_components(state), q)
    rises = np.diff(bounds)
    assert (rises > -1e-9 * abs(bounds[-1])).all() and rises.sum() > 10


@pytest.mark.parametrize(("n_features", "n_components"), [(1, 2), (3, 4)])
def test_fixed_point_of_scikit_learn(rng, n_features, n_components):
    X = clusters(rng, 400, n_features, n_components)[0]
    root = rng.normal(size=(n_features, n_features))
    priors = dict(
        weight_concentration_prior=0.4, mean_precision_prior=0.1,
        mean_prior=X.mean(axis=0) + 0.5, degrees_of_freedom_prior=n_features + 2.0,
        covariance_prior=root @ root.T + np.eye(n_features),
    )  # fmt: skip
    theirs = BayesianGaussianMixture(
        n_components=n_components, weight_concentration_prior_type="dirichlet_distribution",
        reg_covar=0, tol=1e-12, max_iter=5000, random_state=0, **priors,
    ).fit(X)  # fmt: skip
    ours = DPSVIGaussianMixture(
        n_components, learning_rate=1.0, batch_size=len(X), max_iter=400, random_state=0, **priors
    ).fit(X)  # fmt: skip
    order = np.argsort(ours.means_[:, 0])[np.argsort(np.argsort(theirs.means_[:, 0]))]
    for name in (
        "weights_", "means_", "covariances_", "precisions_", "weight_concentration_",
        "mean_precision_", "degrees_of_freedom_",
    ):  # fmt: skip
        np.testing.assert_allclose(
            getattr(ours, name)[order], getattr(theirs, name), rtol=1e-4, atol=1e-6, err_msg=name
        )
    np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(X), rtol=1e-4)
    # Theirs leaves out what does not depend on q: the terms of the data and of the priors.
    alpha, nu = priors["weight_concentration_prior"], priors["degrees_of_freedom_prior"]
    rest = -len(X) * n_features / 2 * math.log(2 * math.pi)
    rest += special.gammaln(n_components * alpha) - n_components * special.gammaln(alpha)
    rest += n_components * n_features / 2 * math.log(priors["mean_precision_prior"])
    wishart = -nu / 2 * np.linalg.slogdet(priors["covariance_prior"])[1]
    wishart += nu * n_features / 2 * math.log(2)
    wishart += special.gammaln((nu - np.arange(n_features)) / 2).sum()  # its pi drops out, too
    rest -= n_components * wishart
    assert ours.lower_bound_ == pytest.approx(theirs.lower_bound_ + rest, rel=1e-6)


# --- the estimator ----------------------------------------------------------------------------


def match(found, wanted):
    """Numbers of the found components that lie nearest to the wanted means."""
    distances = np.linalg.norm(wanted[:, None] - found[None], axis=2)
    order = distances.argmin(axis=1)
    assert len(set(order.tolist())) == len(wanted)
    return order


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("init_params", ["kmeans", "random"])
def test_known_truth_is_recovered(n_jobs, init_params):
    X, z, means, covariances = clusters(np.random.default_rng(2), 6000, 3, 3)
    mixture = DPSVIGaussianMixture(
        3, init_params=init_params, n_jobs=n_jobs, batch_size=100, covariance_prior=np.eye(3),
        random_state=0,
    ).fit(X)  # fmt: skip
    order = match(mixture.means_, means)
    np.testing.assert_allclose(mixture.weights_[order], np.bincount(z) / len(z), atol=0.01)
    np.testing.assert_allclose(mixture.means_[order], means, atol=0.1)
    np.testing.assert_allclose(mixture.covariances_[order], covariances, rtol=0.1, atol=0.05)
    assert (mixture.predict(X) == order[z]).mean() > 0.99
    assert mixture.n_iter_ == 30 and mixture.n_batch_iter_ == 1800


def test_surplus_components_are_given_up():
    X, *_ = clusters(np.random.default_rng(2), 2000, 2, 3)
    mixture = DPSVIGaussianMixture(
        6, learning_rate=1.0, batch_size=2000, max_iter=200, random_state=0
    ).fit(X)
    assert (mixture.weights_ > 0.01).sum() == 3


def test_threads_reach_the_score_of_one():
    """Held-out score within 0.02 nats a point for every seed; a step is 1/100 of a pass."""
    X, *_ = clusters(np.random.default_rng(0), 12_000, 10, 5, spread=2.0)
    held_out, X = X[:2000], X[2000:]
    scores = {}
    for n_jobs in (1, 2):
        scores[n_jobs] = [
            DPSVIGaussianMixture(
                5, n_jobs=n_jobs, batch_size=100, max_iter=3, random_state=seed
            ).fit(X).score(held_out)
            for seed in range(4)
        ]  # fmt: skip
    np.testing.assert_allclose(scores[2], scores[1], atol=0.02)


def test_additions_that_races_lose_are_kept(rng):
    """Threads over-write each other in the one row, never in their totals: every point counts."""
    X, *_ = clusters(rng)
    mixture = DPSVIGaussianMixture(3, random_state=0, max_iter=30, n_jobs=2, batch_size=4).fit(X)
    assert mixture.weight_concentration_.sum() == pytest.approx(len(X) + 1, rel=1e-9)


@pytest.mark.parametrize("init_params", ["kmeans", "random"])
def test_far_from_zero(rng, init_params):
    """Shifting the data by 1e8 shifts the means, to the data's own rounding, and nothing else."""
    X = np.round(clusters(rng, 400)[0] * 2**20) / 2**20  # the shifted numbers are exact to 2**-26
    near, far = (
        DPSVIGaussianMixture(3, init_params=init_params, batch_size=50, random_state=0).fit(data)
        for data in (X, X + 2.0**26)
    )
    np.testing.assert_allclose(far.means_ - 2.0**26, near.means_, atol=1e-6)
    np.testing.assert_allclose(far.covariances_, near.covariances_, rtol=1e-5, atol=1e-6)
    assert far.lower_bound_ == pytest.approx(near.lower_bound_, rel=1e-6)


def test_float32_gives_float32(rng):
    """As in scikit-learn, where 1.6 does so only for some of them."""
    X = clusters(rng)[0]
    wide = DPSVIGaussianMixture(3, random_state=0).fit(X)
    ours = DPSVIGaussianMixture(3, random_state=0).fit(X.astype(np.float32))
    for name in ("weights_", "means_", "covariances_", "precisions_"):
        assert getattr(ours, name).dtype == np.float32, name
        np.testing.assert_allclose(getattr(ours, name), getattr(wide, name), rtol=1e-3, atol=1e-4)
    X = X.astype(np.float32)
    for name in ("predict_proba", "score_samples"):
        assert getattr(ours, name)(X).dtype == np.float32, name
    assert ours.sample()[0].dtype == np.float64


def test_partial_fit_follows_a_stream(rng):
    X, *_ = clusters(rng, 9000, 3, 3)
    held_out, X = X[:1000], X[1000:]
    batch = DPSVIGaussianMixture(3, random_state=0, batch_size=100).fit(X)
    stream = DPSVIGaussianMixture(3, random_state=0, batch_size=100, total_samples=len(X))
    for first in range(0, len(X), 500):
        stream.partial_fit(X[first : first + 500])
    assert stream.n_iter_ == 16 and stream.n_batch_iter_ == 80
    # Counts stand for all the data: the points and the prior.
    total = stream.weight_concentration_.sum()
    assert total == pytest.approx(len(X) + 1, rel=1e-6)
    assert stream.score(held_out) == pytest.approx(batch.score(held_out), abs=0.02)
    with pytest.raises(ValueError, match="features"):
        stream.partial_fit(X[:, :2])


def test_points_of_several_passes_count_once(rng):
    X, *_ = clusters(rng, 500)
    settings = dict(random_state=0, batch_size=500, learning_rate=1.0, max_iter=7)
    for total, expected in ((None, 1000), (2000, 2000), (250, 250)):
        mixture = DPSVIGaussianMixture(3, total_samples=total, **settings).fit(X)
        assert mixture.weight_concentration_.sum() == pytest.approx(501)
        mixture.partial_fit(X)
        assert mixture.weight_concentration_.sum() == pytest.approx(expected + 1)


def test_warm_start_goes_on(rng):
    X, *_ = clusters(rng)
    once = DPSVIGaussianMixture(
        3, init_params="random", random_state=0, max_iter=2, warm_start=True
    ).fit(X)
    before, steps = once.lower_bound_, once.n_batch_iter_
    prior = once._state.model.prior
    once.fit(X + 1e-3)
    assert once.lower_bound_ > before and once.n_batch_iter_ == 2 * steps
    assert np.array_equal(once._state.model.prior, prior)
    with pytest.raises(ValueError, match="n_components was 3"):
        once.set_params(n_components=4).fit(X)


def test_sample_has_the_moments_of_the_mixture(rng):
    X, *_ = clusters(rng)
    mixture = DPSVIGaussianMixture(3, random_state=0).fit(X)
    drawn, z = mixture.sample(60_000)
    np.testing.assert_allclose(np.bincount(z) / len(z), mixture.weights_, atol=0.01)
    for k in range(3):
        scale = np.sqrt(np.diag(mixture.covariances_[k]).max())
        np.testing.assert_allclose(drawn[z == k].mean(axis=0), mixture.means_[k], atol=0.05 * scale)
        covariance = np.cov(drawn[z == k].T)
        np.testing.assert_allclose(covariance, mixture.covariances_[k], atol=0.05 * scale**2)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (dict(weight_concentration_prior=0), "weight_concentration_prior must be a number > 0"),
        (dict(mean_precision_prior=-1), "mean_precision_prior must be a number > 0"),
        (dict(degrees_of_freedom_prior=1), "degrees_of_freedom_prior must be a number > 1"),
        (dict(mean_prior=[0, 1, 2]), r"mean_prior must be finite and of shape \(2,\)"),
        (dict(mean_prior=[0, np.nan]), "mean_prior must be finite"),
        (dict(covariance_prior=np.eye(3)), r"covariance_prior must be finite and of shape \(2, 2"),
        (dict(covariance_prior=np.ones((2, 2))), "symmetric and positive definite"),
        (dict(covariance_prior=[[1, 0.5], [0, 1]]), "symmetric and positive definite"),
        (dict(init_params="k-means"), "init_params must be one of"),
    ],
)
def test_bad_parameters_are_named(rng, params, message):
    with pytest.raises(ValueError, match=message):
        DPSVIGaussianMixture(**params).fit(rng.normal(size=(20, 2)))


def test_data_that_overflow_are_refused(rng):
    message = r"squares of X overflow, its largest value is [0-9.]+e[+]200"
    for X in (1e200 * rng.normal(size=(20, 2)), -1e200 * np.ones((2, 2)) * [[1], [2]]):
        with pytest.raises(ValueError, match=message), np.errstate(over="ignore"):
            DPSVIGaussianMixture().fit(X)


def test_scikit_learn_callbacks(rng, capsys):
    callback = pytest.importorskip("sklearn.callback")
    X, *_ = clusters(rng)

    class Scores:
        def __init__(self):
            self.scores = []

        def setup(self, estimator, context):
            pass

        def teardown(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
            self.scores.append(fitted_estimator.score(X))

    scores = Scores()
    plain = DPSVIGaussianMixture(3, max_iter=4, random_state=0).fit(X)
    watched = DPSVIGaussianMixture(3, max_iter=4, random_state=0)
    watched.set_callbacks(callback.ProgressBar(), scores).fit(X)
    assert len(scores.scores) == 5, "four passes and the fit"
    assert scores.scores[0] < scores.scores[3] == scores.scores[4] == plain.score(X)
    assert np.array_equal(plain.means_, watched.means_)
    assert "DPSVIGaussianMixture" in capsys.readouterr().out


@pytest.mark.parametrize("covariance_type", ["full", "diag"])
def test_weights_count_in_the_prior_and_in_the_start(covariance_type, rng):
    """A whole fit from data alone: one component needs no random start."""
    X, weight = rng.normal(size=(50, 3)) * [1, 5, 0.1] + 3, rng.integers(5, size=50)
    settings = dict(covariance_type=covariance_type, batch_size=1000, learning_rate=1.0)
    weighted = DPSVIGaussianMixture(1, **settings).fit(X, sample_weight=weight)
    repeated = DPSVIGaussianMixture(1, **settings).fit(np.repeat(X, weight, axis=0))
    assert weighted.lower_bound_ == pytest.approx(repeated.lower_bound_, rel=1e-9)
    for attribute in ("means_", "covariances_", "degrees_of_freedom_", "weight_concentration_"):
        np.testing.assert_allclose(getattr(weighted, attribute), getattr(repeated, attribute))


@pytest.mark.parametrize("init_params", ["merge", "kmeans"])
def test_weights_move_components(init_params, rng):
    """A tenth of the points count nine times as much as the others, and so are half of all."""
    X = np.concatenate([rng.normal(size=(900, 2)), rng.normal(size=(100, 2)) + 10])
    weight = np.repeat([0.1, 0.9], [900, 100])
    mixture = DPSVIGaussianMixture(2, init_params=init_params, random_state=0, validation_size=100)
    mixture.fit(X, sample_weight=weight)
    order = np.argsort(mixture.means_[:, 0])
    np.testing.assert_allclose(mixture.weights_[order], 0.5, atol=0.06)
    np.testing.assert_allclose(mixture.means_[order], [[0, 0], [10, 10]], atol=0.3)
    score = mixture.history_[-1]["score"]
    assert score == pytest.approx(np.average(mixture.score_samples(X), weights=weight), abs=0.3)


@pytest.mark.parametrize("diagonal", [False, True])
def test_weights_that_cancel_have_statistics(diagonal, rng):
    """Changes of responsibilities have any sign, and may sum to 0."""
    X, origins = rng.normal(size=(2, 3)), np.zeros((1, 3))
    one, other, both = (
        statistics(X, np.array(r)[:, None], origins, diagonal)
        for r in ([0.5, 0.0], [0.0, -0.5], [0.5, -0.5])
    )
    assert np.abs(both).max() > 0.1
    np.testing.assert_allclose(both, one + other, atol=1e-15)
