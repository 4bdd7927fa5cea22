"""Hierarchical linear regression against slow numpy, Monte Carlo, scikit-learn and known truth."""

import math

import numpy as np
import pytest
from members import SECOND
from reference import hierarchical as reference
from scipy.special import digamma, gammaln, polygamma
from sklearn.linear_model import BayesianRidge, LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dpsvi
from dpsvi import DPSVIHierarchicalRegressor, VirtualCluster
from dpsvi.errors import DivergedError
from dpsvi.training.items import count


def population(rng, n_groups, n_rows, noise=0.5, n_features=2):
    """Data of groups, the coefficients (intercept first) they were drawn with, and theirs."""
    mean = rng.normal(size=n_features + 1)
    root = rng.normal(size=(n_features + 1, n_features + 1)) / math.sqrt(n_features + 1)
    covariance = root @ root.T + 0.1 * np.eye(n_features + 1)
    beta = rng.multivariate_normal(mean, covariance, size=n_groups)
    groups = np.repeat(np.arange(n_groups), n_rows)
    X = rng.normal(size=(len(groups), n_features))
    y = beta[groups, 0] + (X * beta[groups, 1:]).sum(axis=1) + noise * rng.normal(size=len(X))
    return {"X": X, "y": y, "groups": groups}, beta, mean, covariance


def ascent(**params):
    """An estimator whose every pass is one step of coordinate ascent."""
    return DPSVIHierarchicalRegressor(batch_size=10**6, learning_rate=1.0, **params)


# --- coordinate ascent as in 7.6, written for reading -----------------------------------------


def local_step(q, tau, X, y):
    """m_j, S_j and the term of the ELBO of one group."""
    kappa, m, w_inv, nu = q
    a, b = tau
    W = np.linalg.inv(w_inv)
    n, d = X.shape
    S = np.linalg.inv(nu * W + a / b * X.T @ X)
    mean = S @ (nu * W @ m + a / b * X.T @ y)
    square = ((y - X @ mean) ** 2).sum() + np.trace(X.T @ X @ S)
    bound = n / 2 * (digamma(a) - math.log(b) - math.log(2 * math.pi)) - a / b * square / 2
    return mean, S, square, bound + reference.coefficient_bound(q, mean, S)


def global_step(prior, tau0, means, covariances, squares, n_rows):
    tau = tau0[0] + n_rows / 2, tau0[1] + sum(squares) / 2
    return reference.global_step(prior, means, covariances), tau


def gamma_kl(a, b, a0, b0):
    return (
        (a - a0) * digamma(a) - gammaln(a) + gammaln(a0) + a0 * math.log(b / b0) + a * (b0 - b) / b
    )


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_full_batches_are_coordinate_ascent(rng, fit_intercept):
    data, *_ = population(rng, 12, 7)
    n = 2 + fit_intercept
    root = rng.normal(size=(n, n))
    prior = 0.3, rng.normal(size=n), root @ root.T + np.eye(n), n + 2.0
    settings = dict(
        mean_precision_prior=0.3, mean_prior=prior[1], covariance_prior=prior[2],
        noise_shape_prior=2.0, noise_rate_prior=3.0, fit_intercept=fit_intercept,
        degrees_of_freedom_prior=prior[3], warm_start=True, max_iter=1,
    )  # fmt: skip
    X = np.column_stack([np.ones(len(data["X"])), data["X"]])[:, 1 - fit_intercept :]
    parts = [(X[data["groups"] == j], data["y"][data["groups"] == j]) for j in range(12)]
    regressor = ascent(**settings).set_params(max_iter=0).fit(**data)
    q, tau = reference.posterior(regressor), regressor._state.natural()[0, -2:]
    for _ in range(5):
        means, covariances, squares, _ = zip(
            *(local_step(q, tau, *part) for part in parts), strict=True
        )
        q, tau = global_step(prior, (2.0, 3.0), means, covariances, squares, len(X))
        regressor.set_params(max_iter=1).fit(**data)
        for ours, wanted in zip(reference.posterior(regressor), q, strict=True):
            np.testing.assert_allclose(ours, wanted, rtol=1e-7, atol=1e-8)
        np.testing.assert_allclose(regressor._state.natural()[0, -2:], tau, rtol=1e-9)
    bound = sum(local_step(q, tau, *part)[3] for part in parts)
    bound -= reference.normal_wishart_kl(q, prior) + gamma_kl(*tau, 2.0, 3.0)
    assert regressor.lower_bound_ == pytest.approx(bound, rel=1e-9)
    first = 0 if not fit_intercept else 1
    np.testing.assert_allclose(regressor.coef_, q[1][first:], rtol=1e-7)
    own = np.array([local_step(q, tau, *part)[0] for part in parts])
    np.testing.assert_allclose(regressor.group_coef_, own[:, first:], rtol=1e-7, atol=1e-9)
    if fit_intercept:
        assert regressor.intercept_ == pytest.approx(q[1][0], rel=1e-7)
        np.testing.assert_allclose(regressor.group_intercept_, own[:, 0], rtol=1e-7, atol=1e-9)
    spread = q[2] / (q[3] - n - 1)
    np.testing.assert_allclose(regressor.population_covariance_, spread, rtol=1e-7, atol=1e-8)


def test_bounds_of_groups_are_the_mean_of_log_ratios(rng):
    """E ln p(y_j, beta_j | mu, Lambda, tau) - ln q(beta_j) over draws of all of them."""
    data, *_ = population(rng, 6, 5)
    regressor = ascent(max_iter=3, degrees_of_freedom_prior=6.0).fit(**data)
    q, (a, b) = reference.posterior(regressor), regressor._state.natural()[0, -2:]
    items = regressor._read(**data, reset=False)
    bound = regressor._bounds(regressor._state, items)
    draws = 100_000
    mu, precision = reference.draw_population(q, draws, rng)
    tau = rng.gamma(a, 1 / b, size=draws)
    X = np.column_stack([np.ones(5), data["X"][10:15]])
    mean, S = local_step(q, (a, b), X, data["y"][10:15])[:2]
    beta = rng.multivariate_normal(mean, S, size=draws)
    error = data["y"][10:15] - beta @ X.T
    log_p = 2.5 * np.log(tau / (2 * math.pi)) - tau * (error**2).sum(axis=1) / 2
    reference.assert_mean(log_p + reference.log_ratio(beta, mean, S, mu, precision), bound[2])


def test_natural_gradient_is_the_fisher_matrix_times_the_step(rng):
    """dL / dlam = F (lam-hat - lam), of the Gamma block by finite differences (45)."""
    data, *_ = population(rng, 10, 6)
    regressor = ascent(max_iter=2).fit(**data)
    items = regressor._read(**data, reset=False)
    state = regressor._state
    state.renormalise()
    rows, lam = state.shared.rows.copy(), state.natural()[0]
    target = ascent(max_iter=1, warm_start=True)
    vars(target).update(vars(regressor))
    hat = target.set_params(max_iter=1, warm_start=True).fit(**data)._state.natural()[0]

    def bound(change):
        state.shared.rows[0] = rows[0] + change
        state.recount()
        return regressor._lower_bound(state, items, count(items))

    gradient = reference.finite_differences(bound, lam)
    a, b = lam[-2:]
    # of the Gamma distribution in (shape, rate): natural but for constants
    fisher = np.array([[polygamma(1, a), -1 / b], [-1 / b, a / b**2]])
    np.testing.assert_allclose(gradient[-2:], fisher @ (hat - lam)[-2:], rtol=1e-4)
    step = (hat - lam)[: len(lam) - 2]
    fisher = reference.normal_wishart_fisher(lam[:-2], 3)
    np.testing.assert_allclose(gradient[:-2], fisher @ step, rtol=1e-3, atol=1e-3)


# --- what users see ---------------------------------------------------------------------------


def test_truth_is_recovered(rng):
    data, beta, mean, covariance = population(rng, 600, 25)
    regressor = DPSVIHierarchicalRegressor(random_state=0).fit(**data)
    error = np.sqrt(np.diag(covariance) / 600)
    own = np.append(regressor.intercept_, regressor.coef_)
    assert (abs(own - mean) < 4 * error).all()
    np.testing.assert_allclose(
        regressor.population_covariance_, covariance, atol=5 * np.diag(covariance).max() / 25
    )
    assert regressor.noise_precision_ == pytest.approx(1 / 0.5**2, rel=0.05)
    assert np.sqrt(np.mean((regressor.group_coef_ - beta[:, 1:]) ** 2)) < 0.5 / math.sqrt(20)


def test_small_groups_are_pulled_to_the_population(rng):
    """Each group alone is fitted worse than with the others' help, the more so the fewer rows."""
    data, beta, *_ = population(rng, 300, 6, noise=1.0)
    regressor = DPSVIHierarchicalRegressor(random_state=0).fit(**data)
    alone = np.array([
        LinearRegression().fit(data["X"][g], data["y"][g]).coef_
        for g in np.split(np.arange(1800), 300)
    ])  # fmt: skip
    ours = np.mean((regressor.group_coef_ - beta[:, 1:]) ** 2)
    assert ours < 0.6 * np.mean((alone - beta[:, 1:]) ** 2)
    center = regressor.coef_
    far = np.linalg.norm(alone - center, axis=1)
    assert np.linalg.norm(regressor.group_coef_ - center, axis=1).mean() < 0.9 * far.mean()
    pooled = LinearRegression().fit(data["X"], data["y"]).coef_
    assert ours < 0.6 * np.mean((pooled - beta[:, 1:]) ** 2)


def test_standard_deviations_cover(rng):
    """Shares of new rows within z standard deviations are those of the normal distribution."""
    data, beta, mean, covariance = population(rng, 400, 8, noise=0.7)
    regressor = DPSVIHierarchicalRegressor(random_state=0).fit(**data)
    X, groups = rng.normal(size=(8000, 2)), rng.integers(400, size=8000)
    new = rng.multivariate_normal(mean, covariance, size=8000)
    for own, asked in ((beta[groups], groups), (new, np.full(8000, -1))):
        y = own[:, 0] + (X * own[:, 1:]).sum(axis=1) + 0.7 * rng.normal(size=8000)
        predicted, std = regressor.predict(X, asked, return_std=True)
        for z in (1, 2):
            share = np.mean(abs(y - predicted) < z * std)
            assert share == pytest.approx(math.erf(z / math.sqrt(2)), abs=0.02)
    known, unknown = (regressor.predict(X, g, return_std=True)[1] for g in (groups, None))
    assert (known < unknown).mean() > 0.99


def test_without_groups_it_is_bayesian_regression(rng):
    X = 3 + rng.normal(size=(400, 5)) @ rng.normal(size=(5, 5))
    y = X @ rng.normal(size=5) + 7 + 0.5 * rng.normal(size=400)
    ours = ascent().fit(X, y)
    theirs = BayesianRidge().fit(X, y)
    error = np.sqrt(np.diag(theirs.sigma_))
    assert (abs(ours.coef_ - LinearRegression().fit(X, y).coef_) < 0.01 * error).all()
    assert (abs(ours.coef_ - theirs.coef_) < 0.3 * error).all(), "its prior pulls to 0"
    assert ours.noise_precision_ == pytest.approx(theirs.alpha_, rel=0.05)
    centred = X - X.mean(axis=0)  # which `predict` of scikit-learn 1.6 leaves out
    std = np.sqrt(1 / theirs.alpha_ + np.einsum("ni,ij,nj->n", centred, theirs.sigma_, centred))
    np.testing.assert_allclose(ours.predict(X, return_std=True)[1], std, rtol=0.05)
    assert ours.groups_ is None and ours.group_coef_.shape == (1, 5)
    assert ours.score(X, y) == pytest.approx(theirs.score(X, y), abs=1e-4)
    weight = rng.random(400)
    expected = theirs.score(X, y, sample_weight=weight)
    assert ours.score(X, y, sample_weight=weight) == pytest.approx(expected, abs=1e-4)
    with pytest.raises(TypeError, match="positional"):  # they might be meant as groups
        ours.score(X, y, weight)
    with pytest.raises(ValueError, match="fitted without groups"):
        ours.predict(X, groups=np.zeros(400))


def test_groups_of_two_kinds_are_refused():
    """NumPy would write numbers of a list out, and then refuse them in `predict`."""
    X, y = np.ones((4, 1)), [1.0, 2.0, 3.0, 4.0]
    with pytest.raises(ValueError, match="all of one kind: got text and 1"):
        DPSVIHierarchicalRegressor().fit(X, y, [1, 1, "a", "a"])
    assert DPSVIHierarchicalRegressor(max_iter=1).fit(X, y, ["b", "b", "a", "a"]).groups_[0] == "a"


def test_far_from_zero(rng):
    """Shifts of features and target change the intercepts and nothing else."""
    data, *_ = population(rng, 40, 10)
    near = DPSVIHierarchicalRegressor(random_state=0).fit(**data)
    far = DPSVIHierarchicalRegressor(random_state=0).fit(
        data["X"] + 2.0**20, data["y"] - 2.0**20, data["groups"]
    )
    np.testing.assert_allclose(far.group_coef_, near.group_coef_, atol=1e-6)
    asked = data["X"], data["groups"], True
    (a, a_std), (b, b_std) = (
        near.predict(*asked), far.predict(data["X"] + 2.0**20, data["groups"], True)
    )  # fmt: skip
    np.testing.assert_allclose(b + 2.0**20, a, atol=1e-6)
    np.testing.assert_allclose(b_std, a_std, rtol=1e-6)
    assert far.lower_bound_ == pytest.approx(near.lower_bound_, rel=1e-7)


@pytest.mark.parametrize("labels", [["b", "a", "c"], [3, -1, 2], [0.5, 1.5, -2.0]])
def test_labels_of_groups(rng, tmp_path, labels):
    data, *_ = population(rng, 3, 20)
    plain = DPSVIHierarchicalRegressor(random_state=0).fit(**data)
    order = rng.permutation(60)
    named = np.array(labels)[data["groups"]]
    regressor = DPSVIHierarchicalRegressor(random_state=0)
    regressor.fit(data["X"][order], data["y"][order], named[order])
    assert regressor.groups_.tolist() == sorted(labels)
    places = np.argsort(labels)
    np.testing.assert_allclose(regressor.group_coef_, plain.group_coef_[places], rtol=1e-2)
    regressor.save(tmp_path / "model")
    loaded = dpsvi.load(tmp_path / "model")
    assert loaded.groups_.tolist() == sorted(labels)
    asked = np.append(named[:5], labels[0])
    X = np.concatenate([data["X"][:5], [[1.0, 1.0]]])
    np.testing.assert_allclose(loaded.predict(X, asked), regressor.predict(X, asked), rtol=1e-12)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([0, 1], r"groups must have shape \(10,\) as X has, got \(2,\)"),
        ([None, "a"] * 5, "groups must be numbers or text"),
        ([np.nan, 1.0] * 5, "groups has missing labels"),
        ([[0, 1]] * 10, r"groups must have shape \(10,\) as X has, got \(10, 2\)"),
        ([b"a", b"b"] * 5, "groups must be numbers or text, got .*b'a'"),
        (np.array(["2020-01-01"] * 10, "datetime64[s]"), "groups must be numbers or text, got"),
    ],
)
def test_bad_groups_are_refused(rng, groups, message):
    with pytest.raises(ValueError, match=message):
        DPSVIHierarchicalRegressor().fit(rng.normal(size=(10, 2)), np.arange(10.0), groups)


@pytest.mark.parametrize(("known", "asked"), [(["a", "b"], [0, 1]), ([0, 1], ["0", "1"])])
def test_labels_of_another_kind_are_refused(rng, known, asked):
    """They would all be unknown groups."""
    regressor = DPSVIHierarchicalRegressor().fit(rng.normal(size=(10, 1)), np.ones(10), known * 5)
    with pytest.raises(ValueError, match=f"as {known[0]!r}; got {asked[0]!r}"):
        regressor.predict(np.zeros((2, 1)), groups=asked)


def test_text_is_no_target(rng):
    with pytest.raises(ValueError, match="y must be numbers, got .*'a'"):
        DPSVIHierarchicalRegressor().fit(rng.normal(size=(10, 2)), ["a", "b"] * 5)


def test_data_that_overflow_are_refused(rng):
    with pytest.raises(ValueError, match="squares of X or y overflow"), np.errstate(over="ignore"):
        DPSVIHierarchicalRegressor().fit(1e200 * rng.normal(size=(9, 2)), np.arange(9.0))


def test_groups_are_routed_through_a_pipeline(rng):
    from sklearn import config_context

    data, *_ = population(rng, 5, 20)
    with config_context(enable_metadata_routing=True):
        regressor = DPSVIHierarchicalRegressor(random_state=0)
        regressor.set_fit_request(groups=True).set_predict_request(groups=True)
        pipeline = make_pipeline(StandardScaler(), regressor)
        pipeline.fit(data["X"], data["y"], groups=data["groups"])
        predicted = pipeline.predict(data["X"], groups=data["groups"])
    assert pipeline[-1].groups_.tolist() == [0, 1, 2, 3, 4]
    assert np.mean((predicted - data["y"]) ** 2) < 0.5


def test_damaged_parameters_end_the_fit(rng):
    data, *_ = population(rng, 10, 5)
    regressor = DPSVIHierarchicalRegressor(max_iter=1, warm_start=True).fit(**data)
    regressor._state.shared.totals[0, 4] = np.nan
    with pytest.raises(DivergedError, match="NaN"):
        regressor.fit(**data)


def test_counts_stay_exact_when_workers_are_stale(rng):
    """kappa counts groups: 1 a group and the prior, whatever was stale and for how many steps."""
    data, *_ = population(rng, 200, 4)
    regressor = DPSVIHierarchicalRegressor(
        engine="simulated", cluster=VirtualCluster(n_workers=3, timing=SECOND), batch_size=8,
        max_iter=20, random_state=0,
    ).fit(**data)  # fmt: skip
    assert regressor.n_batch_iter_ == 500
    assert regressor._state.natural()[0, 0] == pytest.approx(200.01, rel=1e-9)


def test_scikit_learn_callbacks_see_a_fitted_model(rng):
    pytest.importorskip("sklearn.callback")
    data, *_ = population(rng, 20, 10)

    class Scores:
        scores: list = []

        def setup(self, estimator, context):
            pass

        def teardown(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
            predicted = fitted_estimator.predict(data["X"], data["groups"])
            self.scores.append(np.mean((predicted - data["y"]) ** 2))

    scores = Scores()
    regressor = DPSVIHierarchicalRegressor(max_iter=3, random_state=0)
    regressor.set_callbacks(scores).fit(**data)
    assert len(scores.scores) == 4, "three passes and the fit"
    predicted = regressor.predict(data["X"], data["groups"])
    assert scores.scores[-1] == np.mean((predicted - data["y"]) ** 2)


def test_without_groups_the_coefficients_drawn_are_those_of_the_one_group(rng):
    """A flat population beside much data: least squares, and its usual errors."""
    X = rng.normal(size=(400, 2)) + [0.0, 50.0]
    y = X @ [1.0, -2.0] + 3.0 + rng.normal(size=400)
    settings = dict(batch_size=1, learning_rate=1.0, max_iter=50, random_state=0)
    wide = dict(covariance_prior=1e4 * np.eye(3), degrees_of_freedom_prior=1e3)
    drawn = DPSVIHierarchicalRegressor(**wide, **settings).fit(X, y).posterior_samples(4000)
    joined = np.column_stack([drawn["intercept"], drawn["coef"]])
    assert np.array_equal(drawn["group_coef"][:, 0], drawn["coef"])
    design = np.column_stack([np.ones(400), X])
    inverse = np.linalg.inv(design.T @ design)
    best = inverse @ design.T @ y
    errors = np.sqrt(np.diag(inverse) * np.sum((y - design @ best) ** 2) / 397)
    np.testing.assert_allclose(joined.std(axis=0), errors, rtol=0.05)
    assert (np.abs(joined.mean(axis=0) - best) < 0.1 * errors).all()
    constant = DPSVIHierarchicalRegressor(fit_intercept=False, **settings).fit(X, y)
    assert not constant.posterior_samples(10)["intercept"].any()
