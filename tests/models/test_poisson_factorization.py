"""Hierarchical Poisson factorisation beside slow code that follows its equations one by one."""

import numpy as np
import pytest
import scipy.sparse
from scipy import stats
from scipy.optimize import brentq, linear_sum_assignment
from scipy.special import digamma, gammaln, polygamma

from dpsvi import DPSVIPoissonFactorization, VirtualCluster
from dpsvi.cluster.virtual import Timing
from dpsvi.expfam import gamma
from dpsvi.kernels.digamma import exp_digamma
from dpsvi.kernels.jit import kernel
from dpsvi.kernels.poisson import options_of, solve_rate
from dpsvi.models.poisson_factorization.model import completion, read

A, A1, B1, C, C1, D1 = 0.4, 0.5, 2.0, 0.6, 0.7, 3.0  # a, a', b', c, c', d'
PRIOR = dict(
    user_shape=A, user_rate_shape=A1, user_rate_mean=B1,
    item_shape=C, item_rate_shape=C1, item_rate_mean=D1,
)  # fmt: skip
EXACT = dict(max_user_iter=20_000, user_tol=1e-12)


def planted(rng, n_users, n_items=40, n_components=4):
    """Users and items that belong to few components each."""
    items = rng.gamma(0.2, 1.0, (n_items, n_components)) + 2.0 * (
        np.arange(n_items)[:, None] % n_components == np.arange(n_components)
    )
    users = rng.gamma(0.3, 1.0, (n_users, n_components))
    return rng.poisson(users @ items.T).astype(float), users, items


# --- pieces -----------------------------------------------------------------------------------


@kernel
def _exp_digamma(x, out):
    for i in range(x.shape[0]):
        out[i] = exp_digamma(x[i])


def test_exp_digamma(rng):
    x = 10 ** rng.uniform(-2, 12, 100_000)
    out = np.empty_like(x)
    _exp_digamma(x, out)
    np.testing.assert_allclose(out, np.exp(digamma(x)), rtol=1e-12)


def test_gamma_divergence_is_that_of_samples(rng):
    q, p = (2.3, 0.7), (0.9, 1.4)
    x = rng.gamma(q[0], 1 / q[1], 400_000)
    logs = stats.gamma.logpdf(x, q[0], scale=1 / q[1]) - stats.gamma.logpdf(x, p[0], scale=1 / p[1])
    error = logs.std() / np.sqrt(len(x))
    assert gamma.kl(*q, *p) == pytest.approx(logs.mean(), abs=5 * error)
    assert gamma.kl(*q, *q) == pytest.approx(0, abs=1e-12)


def log_gamma(x, shape, rate):
    return stats.gamma.logpdf(x, shape, scale=1 / rate)


def test_hierarchy_divergence_is_that_of_samples(rng):
    shape, rate = np.array([[0.8, 3.0]]), np.array([[1.5, 0.6]])
    top, n = (2.0, 1.7), 400_000
    rates = rng.gamma(top[0], 1 / top[1], n)
    x = rng.gamma(shape, 1 / rate, (n, 2))
    logs = log_gamma(rates, *top) + log_gamma(x, shape, rate).sum(axis=1)
    logs -= log_gamma(rates, C1, C1 / D1) + log_gamma(x, C, rates[:, None]).sum(axis=1)
    wanted = gamma.hierarchy_kl(shape, rate, C, *top, C1, C1 / D1)
    assert wanted[0] == pytest.approx(logs.mean(), abs=5 * logs.std() / np.sqrt(n))


def test_the_rate_of_a_row_is_the_root(rng):
    for _ in range(200):
        n = rng.integers(1, 6)
        shape, exposure = 10 ** rng.uniform(-2, 6, n), 10 ** rng.uniform(-6, 6, n)
        total, base = 10 ** rng.uniform(-2, 2, 2)

        def excess(e, shape=shape, exposure=exposure, total=total, base=base):
            return e * (base + (shape / (e + exposure)).sum()) - total

        wanted = brentq(excess, 0, total / base, xtol=1e-300, rtol=1e-14)
        assert solve_rate(shape, exposure, total, base) == pytest.approx(wanted, rel=1e-10)


# --- a step, the bound ------------------------------------------------------------------------


def settle(shape, exposure, prior_shape, top, base):
    """Rates of rows x_k ~ Ga(shape_k, e + exposure_k) and their e, by alternating updates."""
    e = np.ones(len(shape))
    for _ in range(3000):
        mean = (shape / (e[:, None] + exposure)).sum(axis=1)
        before, e = e, (top + shape.shape[1] * prior_shape) / (base + mean)
        if np.array_equal(before, e):
            break
    return e[:, None] + exposure, e


def reference_step(X, shape, exposure):
    """Users given items until nothing changes, then the sums that the items need."""
    rate, _ = settle(shape, exposure, C, C1, C1 / D1)
    log_beta, size = digamma(shape) - np.log(rate), (shape / rate).sum(axis=0)
    n = shape.shape[1]
    users = A + X.sum(axis=1, keepdims=True) / n * np.ones(n)
    for _ in range(4000):
        user_rate, _ = settle_once(users, size)
        log_theta = digamma(users) - np.log(user_rate)
        phi = np.exp(log_theta[:, None, :] + log_beta[None])
        phi /= phi.sum(axis=2, keepdims=True)
        new = A + (X[:, :, None] * phi).sum(axis=1)
        if np.abs(new - users).max() < 1e-12:
            break
        users = new
    theta = users / settle_once(users, size)[0]
    return C + (X[:, :, None] * phi).sum(axis=0), theta.sum(axis=0)


def settle_once(users, size):
    """As :func:`settle` for users, by bisection: it is done in every iteration."""
    top, base = A1 + users.shape[1] * A, A1 / B1

    def root(row):
        return brentq(lambda e: e * (base + (row / (e + size)).sum()) - top, 0, top / base)

    e = np.array([root(row) for row in users])
    return e[:, None] + size, e


def sweep(X, shape, exposure, users):
    """One iteration over all users, then all items: the batch algorithm of Gopalan et al."""
    rate, _ = settle(shape, exposure, C, C1, C1 / D1)
    size = (shape / rate).sum(axis=0)
    log_theta = digamma(users) - np.log(settle_once(users, size)[0])
    phi = np.exp(log_theta[:, None, :] + (digamma(shape) - np.log(rate))[None])
    y_phi = X[:, :, None] * phi / phi.sum(axis=2, keepdims=True)
    users = A + y_phi.sum(axis=1)
    theta = users / settle_once(users, size)[0]
    return C + y_phi.sum(axis=0), theta.sum(axis=0), users


def full_batch(X, max_iter, n_components=3, **more):
    return DPSVIPoissonFactorization(
        n_components, batch_size=len(X), learning_rate=1.0, max_iter=max_iter, random_state=3,
        **PRIOR, **EXACT, **more,
    ).fit(X)  # fmt: skip


def sums(model):
    """s and t of a fitted model."""
    lam, n = model._state.natural(), model.n_components
    return lam[:-1, :n], lam[-1, :n]


def test_a_full_step_is_coordinate_ascent(rng):
    X = rng.poisson(1.0, (12, 7)).astype(float)
    before, after = full_batch(X, 1), full_batch(X, 2)
    shape, exposure = reference_step(X, *sums(before))
    np.testing.assert_allclose(sums(after)[0], shape, rtol=1e-7)
    np.testing.assert_allclose(sums(after)[1], exposure, rtol=1e-7)
    rate, e = settle(shape, exposure, C, C1, C1 / D1)
    np.testing.assert_allclose(after.components_, (shape / rate).T, rtol=1e-7)
    np.testing.assert_allclose(after.item_rates_, e, rtol=1e-7)


def test_users_go_on_where_the_last_visit_ended(rng):
    """One sweep a visit, then all items: the batch algorithm of Gopalan et al., step by step."""
    X = rng.poisson(1.0, (12, 7)).astype(float)
    seen = []

    def look(event):
        lam = event.state.natural()
        seen.append((lam[:-1, :3], lam[-1, :3], event.state.shared.item_memory[:, :3].copy()))

    DPSVIPoissonFactorization(
        3, batch_size=len(X), learning_rate=1.0, max_iter=400, random_state=3, callbacks=[look],
        **PRIOR, max_user_iter=1, user_tol=0,
    ).fit(X)  # fmt: skip

    for i in (0, 1, 5, 50, 398):
        for wanted, got in zip(sweep(X, *seen[i]), seen[i + 1], strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-7)
    # and so the last users are exact for the last items, however few sweeps a visit has
    shape, exposure, users = seen[-1]
    for _ in range(500):
        users = sweep(X, shape, exposure, users)[2]
    np.testing.assert_allclose(seen[-1][2], users, rtol=1e-3)


@pytest.mark.parametrize("engine", ["serial", "simulated"])
def test_incremental_passes_end_where_the_batch_algorithm_does(engine, rng):
    X, seen = rng.poisson(1.0, (40, 7)).astype(float), []
    four = VirtualCluster(n_workers=4, timing=Timing(step=1e-3, value=0.0))

    def look(event):
        lam = event.state.natural()
        seen.append((lam[:-1, :3], lam[-1, :3], event.state.shared.item_memory[:40, :3].copy()))

    DPSVIPoissonFactorization(
        3, batch_size=8, max_iter=800, random_state=3, incremental=True, callbacks=[look],
        engine=engine, cluster=four if engine == "simulated" else None,
        **PRIOR, max_user_iter=1, user_tol=0,
    ).fit(X)  # fmt: skip
    for wanted, got in zip(sweep(X, *seen[-1]), seen[-1], strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=1e-3)  # kept in 16 bits


@pytest.mark.parametrize("engines", [("serial", "mpi"), ("mpi", "serial")], ids="-".join)
def test_engines_go_on_with_each_other(engines, rng, tmp_path):
    """A checkpoint of workers does not hold their users, who begin evenly then."""
    X, *_ = planted(rng, 200)
    looks = []

    def interrupt(event):
        looks.append(len(event.state.shared.item_memory))
        if len(looks) == 2:
            raise KeyboardInterrupt

    settings = dict(
        max_iter=4, batch_size=20, random_state=0, checkpoint_dir=tmp_path, checkpoint_seconds=0.0
    )
    part = DPSVIPoissonFactorization(4, engine=engines[0], callbacks=[interrupt], **settings)
    with pytest.raises(KeyboardInterrupt):
        part.fit(X)
    assert looks == [200, 200]
    whole = DPSVIPoissonFactorization(4, engine=engines[1], **settings).resume(X)
    assert whole.n_batch_iter_ == 40 and len(whole._state.shared.item_memory) == 0
    longer = whole.lower_bound_
    whole.set_params(engine=engines[0], warm_start=True, checkpoint_dir=None).fit(X)
    assert whole.n_batch_iter_ == 80 and whole.lower_bound_ > longer - 0.01 * abs(longer)


def test_workers_keep_users(rng):
    """As a serial fit does; nodes without a master begin anew, which needs more iterations."""
    X, *_ = planted(rng, 200)

    def bound(**more):
        return DPSVIPoissonFactorization(
            4, batch_size=10, max_iter=30, max_user_iter=1, random_state=0, **more
        ).fit(X).lower_bound_  # fmt: skip

    serial, anew = bound(engine="serial"), bound(engine="simulated", cluster=cluster("gossip"))
    for strategy in ("decay", "displacement"):
        workers = bound(engine="simulated", cluster=cluster(strategy))
        assert abs(workers - serial) < 0.2 * (serial - anew)


def cluster(strategy):
    return VirtualCluster(n_workers=4, strategy=strategy, timing=Timing(step=1.0, value=0.0))


def test_the_bound_is_that_of_samples(rng):
    X = rng.poisson(1.5, (6, 5)).astype(float)
    model, n = full_batch(X, 2), 40_000
    q = read(model._state)
    size = (q.shape / q.rate).sum(axis=0)
    log_beta = digamma(q.shape) - np.log(q.rate)
    # q of the users, as in the reference, at the same items
    users = A + X.sum(axis=1, keepdims=True) / 3 * np.ones(3)
    for _ in range(4000):
        rate, e = settle_once(users, size)
        phi = np.exp((digamma(users) - np.log(rate))[:, None, :] + log_beta)
        phi /= phi.sum(axis=2, keepdims=True)
        before, users = users, A + (X[:, :, None] * phi).sum(axis=1)
        if np.abs(users - before).max() < 1e-12:
            break
    theta = rng.gamma(users, 1 / rate, (n, 6, 3))
    beta = rng.gamma(q.shape, 1 / q.rate, (n, 5, 3))
    xi_q = A1 + 3 * A, A1 / B1 + (users / rate).sum(axis=1)
    eta_q = C1 + 3 * C, C1 / D1 + (q.shape / q.rate).sum(axis=1)
    xi, eta = rng.gamma(xi_q[0], 1 / xi_q[1], (n, 6)), rng.gamma(eta_q[0], 1 / eta_q[1], (n, 5))
    y_phi = X[:, :, None] * phi
    logs = np.einsum("uik,nuk->n", y_phi, np.log(theta)) - gammaln(X + 1).sum()
    logs += np.einsum("uik,nik->n", y_phi, np.log(beta)) - (y_phi * np.log(phi)).sum()
    logs -= np.einsum("nuk,nik->n", theta, beta)
    logs += log_gamma(theta, A, xi[:, :, None]).sum(axis=(1, 2)) + log_gamma(xi, A1, A1 / B1).sum(1)
    logs += log_gamma(beta, C, eta[:, :, None]).sum(axis=(1, 2)) + log_gamma(eta, C1, C1 / D1).sum(
        1
    )
    logs -= log_gamma(theta, users, rate).sum(axis=(1, 2)) + log_gamma(xi, *xi_q).sum(axis=1)
    logs -= log_gamma(beta, q.shape, q.rate).sum(axis=(1, 2)) + log_gamma(eta, *eta_q).sum(axis=1)
    error = logs.std() / np.sqrt(n)
    assert error < 0.05
    assert model.lower_bound_ == pytest.approx(logs.mean(), abs=5 * error)


def test_the_bound_is_below_the_evidence(rng):
    X, n = np.array([[2.0, 0.0], [1.0, 3.0]]), 1_000_000
    model = full_batch(X, 200, n_components=1)
    theta = rng.gamma(A, 1 / rng.gamma(A1, B1 / A1, (n, 2)))
    beta = rng.gamma(C, 1 / rng.gamma(C1, D1 / C1, (n, 2)))
    weights = np.ones(n)
    for u in range(2):
        for i in range(2):
            weights *= stats.poisson.pmf(X[u, i], theta[:, u] * beta[:, i])
    error = weights.std() / weights.mean() / np.sqrt(n)
    assert error < 0.05
    evidence = np.log(weights.mean())
    assert evidence - 5 < model.lower_bound_ < evidence + 5 * error


def test_the_natural_gradient_by_finite_differences(rng):
    """dL / d(s, t) from lam-hat - lam: the Fisher matrix of the gammas, and the way by which e
    follows s and t."""
    X = rng.poisson(1.0, (15, 4)).astype(float)
    model = full_batch(X, 2)
    items, state = model._read(X, reset=False), model._state
    state.renormalise()
    rows = state.shared.rows.copy()
    rows[:, :3] *= rng.uniform(0.5, 1.5, (5, 3))  # away from the optimum

    def bound(matrix):
        state.shared.rows[...] = matrix
        state.recount()
        return model._lower_bound(state, items, 15)

    bound(rows)
    s, t = sums(model)
    rate, e = settle(s, t, C, C1, C1 / D1)
    s_hat, t_hat = reference_step(X, s, t)
    by_shape = polygamma(1, s) * (s_hat - s) - (t_hat - t) / rate
    by_rate = s / rate**2 * (t_hat - t) - (s_hat - s) / rate
    # e (c'/d' + sum s / (e + t)) is constant
    slope = C1 / D1 + (s * t / rate**2).sum(axis=1, keepdims=True)
    e_by_s, e_by_t = -e[:, None] / rate / slope, e[:, None] * s / rate**2 / slope
    total = by_rate.sum(axis=1, keepdims=True)
    wanted = np.concatenate([by_shape + total * e_by_s, [(by_rate + total * e_by_t).sum(axis=0)]])
    for i, k in [(0, 0), (1, 2), (3, 1), (4, 0), (4, 2)]:
        h = 1e-4 * rows[i, k]
        up, down = rows.copy(), rows.copy()
        up[i, k] += h
        down[i, k] -= h
        assert (bound(up) - bound(down)) / (2 * h) == pytest.approx(wanted[i, k], rel=1e-4)


# --- what users see ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted():
    X, users, items = planted(np.random.default_rng(0), 3000)
    model = DPSVIPoissonFactorization(4, max_iter=30, batch_size=100, random_state=0)
    return model.fit(X[:2500]), X, users, items


def test_planted_factors_are_found(fitted):
    model, X, users, items = fitted
    similar = np.corrcoef(model.components_, items.T)[:4, 4:]
    places = linear_sum_assignment(-similar)
    assert (similar[places] > 0.95).all()
    theta = model.transform(X[:500])[:, np.argsort(places[1])]
    assert np.corrcoef(theta.ravel(), users[:500].ravel())[0, 1] > 0.8


def test_held_out_score_is_near_that_of_the_truth(fitted):
    model, X, _, items = fitted
    test = scipy.sparse.csr_array(X[2500:])
    truth = completion(test, items)
    assert model.score(test) > truth - 0.02 * abs(truth)
    constant = completion(test, np.full((40, 1), 1.0))
    assert model.score(test) > constant + 0.1


def test_iterations_may_change_while_a_fit_goes_on(fitted):
    """As many as today's parameters say, for the fit that goes on only."""
    _, X, *_ = fitted
    model = DPSVIPoissonFactorization(4, max_iter=1, max_user_iter=1, user_tol=0, random_state=0)
    model.fit(X[:500])
    before = model._state
    model.set_params(max_user_iter=7, warm_start=True).fit(X[:500])
    now, then = (options_of(state.model.hyper) for state in (model._state, before))
    assert now.n_sweeps == 7 and then.n_sweeps == 1


def test_score_by_hand(fitted, monkeypatch):
    model, X, *_ = fitted
    X = X[2500:2530]
    first = np.floor(X / 2)
    known = scipy.sparse.csr_array(X)
    module = "dpsvi.models.poisson_factorization.model.split_tokens"
    monkeypatch.setattr(module, lambda value: (np.floor(value / 2), value - np.floor(value / 2)))
    q = read(model._state)
    size = (q.shape / q.rate).sum(axis=0) / 2
    log_beta = digamma(q.shape) - np.log(q.rate)
    users = 0.3 + first.sum(axis=1, keepdims=True) / 4 * np.ones(4)
    top, base = 0.3 + 4 * 0.3, 0.3
    for _ in range(2000):
        e = np.ones(len(users))
        for _ in range(60):
            e = top / (base + (users / (e[:, None] + size)).sum(axis=1))
        phi = np.exp((digamma(users) - np.log(e[:, None] + size))[:, None, :] + log_beta)
        users = 0.3 + (first[:, :, None] * phi / phi.sum(axis=2, keepdims=True)).sum(axis=1)
    rates = users / (e[:, None] + size) @ (q.shape / q.rate).T / 2
    second = X - first
    wanted = stats.poisson.logpmf(second, rates).sum() / (second > 0).sum()
    assert model.score(known) == pytest.approx(wanted, rel=2e-3)


def test_zeros_need_not_be_stored(rng):
    X = rng.poisson(0.5, (40, 6)).astype(float)
    model = DPSVIPoissonFactorization(2, max_iter=3, random_state=0)
    wanted = model.fit(scipy.sparse.csr_array(X)).components_
    users, items = np.indices(X.shape)
    stored = scipy.sparse.csr_array((X.ravel(), items.ravel(), np.arange(0, 241, 6)), X.shape)
    assert stored.nnz == 240
    twice = scipy.sparse.coo_array(
        (np.tile(X.ravel() / 2, 2), (np.tile(users.ravel(), 2), np.tile(items.ravel(), 2))), X.shape
    )
    for other in (X, stored, twice, scipy.sparse.csc_matrix(X)):
        assert np.array_equal(model.fit(other).components_, wanted)
    assert stored.nnz == 240, "what is given is not changed"


def test_negative_counts_are_refused():
    with pytest.raises(ValueError, match="Negative values"):
        DPSVIPoissonFactorization(2).fit(np.array([[1.0, -1.0]]))


def test_seen_items_are_not_recommended(fitted):
    model, X, *_ = fitted
    items, scores = model.recommend(X[:200], n=15)
    assert items.shape == scores.shape == (200, 15)
    seen = X[:200] > 0
    for u in range(200):
        real = items[u] >= 0
        assert len(set(items[u][real])) == real.sum() == min(15, (~seen[u]).sum())
        assert not seen[u, items[u][real]].any()
        assert (scores[u, 1:] <= scores[u, :-1]).all()
        assert (scores[u, ~real] == -np.inf).all()
    expected = model.predict_ratings(X[:200])
    all_items, all_scores = model.recommend(X[:200], n=40, exclude_seen=False)
    assert (np.sort(all_items, axis=1) == np.arange(40)).all()
    np.testing.assert_allclose(np.take_along_axis(expected, all_items, axis=1), all_scores)
    everything, nothing = model.recommend(np.ones((1, 40)), n=2)
    assert (everything == -1).all() and (nothing == -np.inf).all()


def test_pairs_are_predicted_as_in_the_whole_matrix(fitted):
    model, X, *_ = fitted
    whole = model.predict_ratings(X[:20])
    np.testing.assert_allclose(whole, model.transform(X[:20]) @ model.components_)
    users, items = np.array([3, 0, 19]), np.array([39, 1, 1])
    pairs = model.predict_ratings(X[:20], users, items)
    np.testing.assert_allclose(pairs, whole[users, items])
    for bad, message in (
        (([20], [0]), r"users must be in 0\.\.19, got 20\.\.20"),
        (([0], [-1]), r"items must be in 0\.\.39, got -1\.\.-1"),
        (([0, 1], [0]), "pairs, got 2 and 1"),
        (([0.5], [0]), "users must be a vector of whole numbers"),
        ((None, [0]), "users must be a vector of whole numbers"),
    ):
        with pytest.raises(ValueError, match=message):
            model.predict_ratings(X[:20], *bad)


def test_nothing_to_predict_is_said(fitted):
    with pytest.raises(ValueError, match="no rating is left to predict in 0 ratings"):
        fitted[0].score(np.zeros((3, 40)))
