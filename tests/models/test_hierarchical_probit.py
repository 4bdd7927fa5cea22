"""Hierarchical probit regression against slow numpy, Monte Carlo, integration and known truth."""

import math

import numpy as np
import pytest
from reference import hierarchical as reference
from scipy.optimize import minimize
from scipy.special import log_ndtr, ndtr
from scipy.stats import truncnorm

import dpsvi
from dpsvi import DPSVIHierarchicalProbit
from dpsvi.expfam.truncated_normal import log_cdf
from dpsvi.training.items import count


def population(rng, n_groups, n_rows, n_features=2):
    """Data of groups, the coefficients (intercept first) they were drawn with, and theirs."""
    mean = np.array([0.3, 1.0, -0.7])[: n_features + 1]
    covariance = np.diag([0.5, 0.3, 0.2][: n_features + 1])
    beta = rng.multivariate_normal(mean, covariance, size=n_groups)
    groups = np.repeat(np.arange(n_groups), n_rows)
    X = rng.normal(size=(len(groups), n_features))
    latent = beta[groups, 0] + (X * beta[groups, 1:]).sum(axis=1) + rng.normal(size=len(X))
    return {"X": X, "y": (latent > 0).astype(int), "groups": groups}, beta, mean, covariance


def ascent(**params):
    """An estimator whose every pass is one step of coordinate ascent."""
    return DPSVIHierarchicalProbit(batch_size=10**6, learning_rate=1.0, **params)


# --- coordinate ascent as in 7.7, written for reading -----------------------------------------


def local_step(q, X, y):
    """m_j, S_j and the term of the ELBO of one group; E[a] and m_j taken in turn."""
    kappa, m, w_inv, nu = q
    W, s = np.linalg.inv(w_inv), 2 * y - 1
    S = np.linalg.inv(nu * W + X.T @ X)
    mean = m
    for _ in range(5000):
        t = X @ mean
        a = t + s * np.exp(-(t**2) / 2 - log_ndtr(s * t)) / math.sqrt(2 * math.pi)
        mean = S @ (nu * W @ m + X.T @ a)
    bound = log_ndtr(s * (X @ mean)).sum() - np.trace(X @ S @ X.T) / 2
    return mean, S, bound + reference.coefficient_bound(q, mean, S)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_full_batches_are_coordinate_ascent(rng, fit_intercept):
    data, *_ = population(rng, 8, 9)
    n = 2 + fit_intercept
    root = rng.normal(size=(n, n))
    prior = 0.3, rng.normal(size=n), root @ root.T + np.eye(n), n + 2.0
    probit = ascent(
        mean_precision_prior=0.3, mean_prior=prior[1], covariance_prior=prior[2],
        fit_intercept=fit_intercept, warm_start=True, max_iter=0,
    ).fit(**data)  # fmt: skip
    X = np.column_stack([np.ones(len(data["X"])), data["X"]])[:, 1 - fit_intercept :]
    parts = [(X[data["groups"] == j], data["y"][data["groups"] == j]) for j in range(8)]
    q = reference.posterior(probit)
    for _ in range(4):
        means, covariances, _ = zip(*(local_step(q, *part) for part in parts), strict=True)
        q = reference.global_step(prior, means, covariances)
        probit.set_params(max_iter=1).fit(**data)
        for ours, wanted in zip(reference.posterior(probit), q, strict=True):
            np.testing.assert_allclose(ours, wanted, rtol=1e-6, atol=1e-7)
    bound = sum(local_step(q, *part)[2] for part in parts)
    bound -= reference.normal_wishart_kl(q, prior)
    assert probit.lower_bound_ == pytest.approx(bound, rel=1e-8)
    first = int(fit_intercept)
    np.testing.assert_allclose(probit.coef_[0], q[1][first:], rtol=1e-6, atol=1e-8)
    own = np.array([local_step(q, *part)[0] for part in parts])
    np.testing.assert_allclose(probit.group_coef_, own[:, first:], rtol=1e-6, atol=1e-7)


def test_log_cdf_and_its_derivatives():
    t = np.concatenate([-np.geomspace(1e-8, 1e8, 400), np.geomspace(1e-8, 30, 100), [0.0]])
    value, ratio, curvature = np.array([log_cdf(x) for x in t]).T
    np.testing.assert_allclose(value, log_ndtr(t), rtol=1e-12, atol=1e-300)
    near = t > -1e4  # beyond, the logarithm has no digits left for the ratio
    log_phi = -(t**2) / 2 - math.log(2 * math.pi) / 2
    np.testing.assert_allclose(
        ratio[near], np.exp(log_phi - log_ndtr(t))[near], rtol=1e-7, atol=1e-300
    )
    near = abs(t) < 20
    np.testing.assert_allclose(
        curvature[near], 1 - truncnorm(-t[near], np.inf, loc=t[near]).var(), atol=1e-7
    )
    assert (curvature >= 0).all() and (curvature <= 1 + 1e-14).all()
    far = t < -1e3
    np.testing.assert_allclose(curvature[far], 1 - 1 / t[far] ** 2, rtol=1e-8)
    np.testing.assert_allclose(ratio[far], -t[far] - 1 / t[far], rtol=1e-8)


# Rows s_i x_i, precision and mean of the prior: whole steps of Newton's method go round in circles.
CIRCLES = [
    ([[-20.0, 17.0], [298.3, 51.6], [-76.1, 8.8], [231.2, 21.6]], 1e-3, [5.5, 6.0]),
    ([[91.7, -199.0], [77.4, -80.0], [-78.9, 198.6]], 0.1, [12.0, 23.6]),
    ([[237.2, 40.5], [118.3, 3.6], [-357.5, 25.4]], 1e-5, [-11.9, 39.2]),
    ([[310.2, -8.3], [206.2, -8.5], [-254.2, 4.3], [-782.0, -2.1]], 1e-3, [35.8, -33.4]),
]


def test_hard_groups_reach_the_maximum(rng):
    """No other point is better, and the gradient is 0 but for rounding."""
    from dpsvi.families.hierarchical.population import as_group, scratch_size
    from dpsvi.families.hierarchical.probit import find_mean

    cases = list(CIRCLES)
    for _ in range(100):
        d, n = rng.integers(1, 5), rng.integers(1, 30)
        rows = rng.normal(size=(n, d)) * 10 ** rng.uniform(-1, 2, size=d)
        center = rng.normal(size=d) * 10 ** rng.uniform(-2, 2)
        cases.append((rows, 10 ** rng.uniform(-4, 3), center))
    for rows, precision, center in cases:
        rows, d = np.asarray(rows), len(center)
        group = as_group(np.zeros(scratch_size(d)), d)
        group.prior_mean[:] = center
        group.prior_precision[:] = precision * np.eye(d)
        log_likelihood = find_mean(np.column_stack([rows, np.ones((len(rows), 2))]), group)

        def loss(beta, rows=rows, precision=precision, center=center):
            return precision * ((beta - center) ** 2).sum() / 2 - log_ndtr(rows @ beta).sum()

        best = loss(group.mean)
        assert log_likelihood == pytest.approx(log_ndtr(rows @ group.mean).sum(), rel=1e-9)
        found = minimize(loss, group.mean, method="Nelder-Mead").fun
        assert found >= best - 1e-9 * max(1.0, abs(best))
        t = rows @ group.mean
        pull, curvature = np.array([log_cdf(x)[1:] for x in t]).T
        gradient = rows.T @ pull - precision * (group.mean - center)
        hessian = precision * np.eye(d) + (rows.T * curvature) @ rows
        assert gradient @ np.linalg.solve(hessian, gradient) < 1e-9


def test_bounds_of_groups_are_the_mean_of_log_ratios(rng):
    """The identity of 7.7: E ln p(y, a, beta | mu, Lambda) - ln q(a) - ln q(beta) over draws."""
    data, *_ = population(rng, 6, 5)
    probit = ascent(max_iter=3, degrees_of_freedom_prior=6.0).fit(**data)
    q = reference.posterior(probit)
    bound = probit._bounds(probit._state, probit._read(**data, reset=False))[2]
    draws = 100_000
    mu, precision = reference.draw_population(q, draws, rng)
    X, y = np.column_stack([np.ones(5), data["X"][10:15]]), data["y"][10:15]
    mean, S, _ = local_step(q, X, y)
    beta = rng.multivariate_normal(mean, S, size=draws)
    center, s = X @ mean, 2 * y - 1
    low, high = np.where(s > 0, -center, -np.inf), np.where(s > 0, np.inf, -center)
    a = truncnorm(low, high, loc=center).rvs((draws, 5), random_state=rng)
    assert ((a > 0) == (y > 0)).all()
    log_q = truncnorm(low, high, loc=center).logpdf(a).sum(axis=1)
    log_p = (-((a - beta @ X.T) ** 2) / 2 - math.log(2 * math.pi) / 2).sum(axis=1)
    sample = log_p - log_q + reference.log_ratio(beta, mean, S, mu, precision)
    reference.assert_mean(sample, bound)


def test_natural_gradient_is_the_fisher_matrix_times_the_step(rng):
    """dL / dlam = F (lam-hat - lam), by finite differences (45)."""
    data, *_ = population(rng, 10, 6)
    probit = ascent(max_iter=2).fit(**data)
    items, state = probit._read(**data, reset=False), probit._state
    state.renormalise()
    rows, lam = state.shared.rows.copy(), state.natural()[0]
    after = ascent(max_iter=1, warm_start=True)
    vars(after).update({k: v for k, v in vars(probit).items() if k not in probit.get_params()})
    hat = after.fit(**data)._state.natural()[0]

    def bound(change):
        state.shared.rows[0] = rows[0] + change
        state.recount()
        return probit._lower_bound(state, items, count(items))

    gradient = reference.finite_differences(bound, lam)
    fisher = reference.normal_wishart_fisher(lam, 3)
    np.testing.assert_allclose(gradient, fisher @ (hat - lam), rtol=1e-3, atol=1e-3)


# --- what users see ---------------------------------------------------------------------------


def test_truth_is_recovered(rng):
    """With many rows a group; with few the factorised posterior is too sure of itself."""
    data, beta, mean, covariance = population(rng, 150, 600)
    probit = DPSVIHierarchicalProbit(random_state=0).fit(**data)
    own = np.append(probit.intercept_, probit.coef_)
    assert (abs(own - mean) < 4 * np.sqrt(np.diag(covariance) / 150) + 0.05).all()
    np.testing.assert_allclose(
        np.diag(probit.population_covariance_), np.diag(covariance), rtol=0.4
    )
    assert np.sqrt(np.mean((probit.group_coef_ - beta[:, 1:]) ** 2)) < 0.15


def test_small_groups_gain_from_the_others(rng):
    """Held-out log-likelihood: better than a model of each group alone and of all rows alike.

    A quarter of the groups is looked at.
    """
    data, beta, *_ = population(rng, 200, 12)
    X, groups = rng.normal(size=(4000, 2)), rng.integers(50, size=4000)
    latent = beta[groups, 0] + (X * beta[groups, 1:]).sum(axis=1)
    y = (latent + rng.normal(size=4000) > 0).astype(int)

    def score(proba):
        return np.log(proba[np.arange(4000), y]).mean()

    ours = DPSVIHierarchicalProbit(random_state=0).fit(**data)
    pooled = DPSVIHierarchicalProbit(random_state=0).fit(data["X"], data["y"])
    alone = np.empty((4000, 2))
    for j in range(50):
        here, there = data["groups"] == j, groups == j
        if len(set(data["y"][here])) == 1:
            alone[there] = ours.predict_proba(X[there])
            continue
        one = ascent().fit(data["X"][here], data["y"][here])
        alone[there] = one.predict_proba(X[there])
    best = score(ours.predict_proba(X, groups))
    assert best > score(pooled.predict_proba(X)) + 0.01
    assert best > score(alone) + 0.01


def test_probabilities_integrate_the_uncertainty(rng):
    data, *_ = population(rng, 30, 15)
    probit = DPSVIHierarchicalProbit(random_state=0).fit(**data)
    X = np.array([[1.0, 2.0], [-1.0, 0.5]])
    for place, asked in ((4, [4, 4]), (-1, [99, 99])):
        mean, S = probit._means[place], probit._covariances[place]
        beta = rng.multivariate_normal(mean, S, size=200_000)
        sample = ndtr(beta @ np.column_stack([np.ones(2), X - probit._shift]).T)
        proba = probit.predict_proba(X, asked)
        np.testing.assert_allclose(proba.sum(axis=1), 1)
        for i in range(2):
            reference.assert_mean(sample[:, i], proba[i, 1])


def test_one_group_is_near_numerical_integration(rng):
    """One coefficient, the prior of the population nearly a point: p(beta | y) on a grid."""
    X = rng.normal(size=(60, 1))
    y = (1.2 * X[:, 0] + rng.normal(size=60) > 0).astype(int)
    probit = ascent(
        fit_intercept=False, mean_precision_prior=1e8, degrees_of_freedom_prior=1e6,
        covariance_prior=[[2.0]], mean_prior=[0.0], max_iter=50,
    ).fit(X, y)  # fmt: skip
    grid = np.linspace(-3, 6, 4001)
    log_p = log_ndtr(np.outer(grid, (2 * y - 1) * X[:, 0])).sum(axis=1) - grid**2 / 4
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    mode, mean = grid[log_p.argmax()], p @ grid
    spread = math.sqrt(p @ (grid - mean) ** 2)
    assert probit.coef_[0, 0] == pytest.approx(mode, abs=5e-3)
    assert probit.coef_[0, 0] == pytest.approx(mean, abs=0.3 * spread)
    for x in (-1.0, 0.5, 2.0):
        exact = p @ ndtr(grid * x)
        assert probit.predict_proba([[x]])[0, 1] == pytest.approx(exact, abs=0.03)


@pytest.mark.parametrize("labels", [["yes", "no"], [3, -1], [True, False]])
def test_classes(rng, tmp_path, labels):
    data, *_ = population(rng, 10, 30)
    named = np.array(labels)[1 - data["y"]]
    probit = DPSVIHierarchicalProbit(random_state=0).fit(data["X"], named, data["groups"])
    assert probit.classes_.tolist() == sorted(labels)
    predicted = probit.predict(data["X"], data["groups"])
    assert set(predicted.tolist()) == set(labels)
    assert (
        probit.score(data["X"], named, groups=data["groups"]) == np.mean(predicted == named) > 0.7
    )
    with pytest.raises(TypeError, match="positional"):  # not to be taken for weights
        probit.score(data["X"], named, data["groups"])
    probit.save(tmp_path / "model")
    loaded = dpsvi.load(tmp_path / "model")
    assert loaded.predict(data["X"], data["groups"]).tolist() == predicted.tolist()


def test_classes_are_two(rng):
    X = rng.normal(size=(6, 2))
    with pytest.raises(ValueError, match=r"two classes are needed, got 1 class: \['a'\]"):
        DPSVIHierarchicalProbit().fit(X, ["a"] * 6)
    with pytest.raises(ValueError, match="The type of the target is multiclass"):
        DPSVIHierarchicalProbit().fit(X, [0, 1, 2, 0, 1, 2])
    stream = DPSVIHierarchicalProbit().partial_fit(X, [1] * 6, classes=[0, 1])
    assert stream.classes_.tolist() == [0, 1]
    with pytest.raises(ValueError, match=r"y must hold the classes \[0, 1\] only, it has \[2\]"):
        stream.partial_fit(X, [2, 1, 0, 0, 0, 0])
    with pytest.raises(
        ValueError, match=r"classes were \[0, 1\] when the fit started, got \[5, 6\]"
    ):
        stream.partial_fit(X, [1] * 6, classes=[5, 6])
    stream.partial_fit(X, [1] * 6, classes=[1, 0])
