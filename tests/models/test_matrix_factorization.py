"""Gaussian matrix factorisation beside slow code that follows its equations one by one."""

import numpy as np
import pytest
import scipy.sparse
from scipy import stats

from dpsvi import DPSVIMatrixFactorization
from dpsvi.kernels.normal import all_moments, n_columns
from dpsvi.models.matrix_factorization.model import read

ALPHA_X, ALPHA_V, A0, B0 = 1.5, 0.7, 2.0, 3.0
PRIOR = dict(user_precision=ALPHA_X, item_precision=ALPHA_V, noise_shape=A0, noise_rate=B0)


def planted(rng, n_users, n_items=30, n_components=3, noise=0.5, share=0.5):
    """Ratings of low rank around 3, NaN where there is none, and what they are without noise."""
    clean = 3.0 + rng.normal(size=(n_users, n_components)) @ rng.normal(
        size=(n_components, n_items)
    )
    ratings = clean + noise * rng.normal(size=clean.shape)
    return np.where(rng.random(clean.shape) < share, ratings, np.nan), clean


def svec(matrix):
    """Lower triangle, what is off the diagonal times sqrt(2)."""
    rows, columns = np.tril_indices(len(matrix))
    return matrix[rows, columns] * np.where(rows == columns, 1.0, np.sqrt(2))


def smat(vector, n):
    """The matrix of :func:`svec`."""
    rows, columns = np.tril_indices(n)
    matrix = np.zeros((n, n))
    matrix[rows, columns] = vector * np.where(rows == columns, 1.0, np.sqrt(0.5))
    return matrix + np.tril(matrix, -1).T


@pytest.mark.parametrize("n", [1, 2, 7])
def test_moments(rng, n):
    roots, g = rng.normal(size=(5, n, n + 1)), rng.normal(size=(5, n))
    A = roots @ roots.swapaxes(1, 2)
    A[0], g[0] = 0, 0
    natural = np.array([np.concatenate([svec(a), b]) for a, b in zip(A, g, strict=True)])
    assert natural.shape[1] == n_columns(n)
    out, log_dets = np.empty(natural.shape), np.empty(5)
    all_moments(natural, 0.3, 2.0, n, out, log_dets)
    P = 0.3 * np.eye(n) + 2.0 * A
    S = np.linalg.inv(P)
    m = np.einsum("nij,nj->ni", S, 2.0 * g)
    seconds = S + m[:, :, None] * m[:, None, :]
    np.testing.assert_allclose(out[:, -n:], m, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(out[:, :-n], [svec(x) for x in seconds], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(log_dets, np.linalg.slogdet(P)[1], rtol=1e-10, atol=1e-12)


# --- a step, the bound ------------------------------------------------------------------------


def full_batch(X, max_iter, n_components=2):
    return DPSVIMatrixFactorization(
        n_components, batch_size=len(X), learning_rate=1.0, max_iter=max_iter, random_state=3,
        **PRIOR,
    ).fit(X)  # fmt: skip


def sums(model):
    """A, g, number of ratings and their squared errors of a fitted model."""
    lam, n = model._state.natural(), model.n_components
    A = np.array([smat(row[:-n], n) for row in lam[:-1]])
    return A, lam[:-1, -n:], lam[-1, 0], lam[-1, 1]


def items_of(A, g, noise):
    """Means and covariances of the items."""
    S = np.linalg.inv(ALPHA_V * np.eye(A.shape[1]) + noise * A)
    return np.einsum("nij,nj->ni", S, noise * g), S


def users_of(X, m, S, noise):
    """Means and covariances of the users."""
    n = m.shape[1]
    means, covariances = np.zeros((len(X), n)), np.zeros((len(X), n, n))
    for u, row in enumerate(X):
        P, h = ALPHA_X * np.eye(n), np.zeros(n)
        for i in np.flatnonzero(~np.isnan(row)):
            P += noise * (S[i] + np.outer(m[i], m[i]))
            h += noise * row[i] * m[i]
        covariances[u] = np.linalg.inv(P)
        means[u] = covariances[u] @ h
    return means, covariances


def squared_error(r, m, S, v, V):
    """E[(r - x^T v)^2] as paper.md, 7.4, has it."""
    return (r - m @ v) ** 2 + m @ V @ m + v @ S @ v + np.trace(S @ V)


def reference_step(X, A, g, n, E):
    """The next sums, given X without its mean."""
    noise = (A0 + n / 2) / (B0 + E / 2)
    v, V = items_of(A, g, noise)
    m, S = users_of(X, v, V, noise)
    A, g, E = np.zeros_like(A), np.zeros_like(g), 0.0
    for u, i in np.argwhere(~np.isnan(X)):
        A[i] += S[u] + np.outer(m[u], m[u])
        g[i] += X[u, i] * m[u]
        E += squared_error(X[u, i], m[u], S[u], v[i], V[i])
    return A, g, (~np.isnan(X)).sum(), E


def test_a_full_step_is_coordinate_ascent(rng):
    X, _ = planted(rng, 12, 7)
    before, after = full_batch(X, 2), full_batch(X, 3)
    A, g, n, E = reference_step(X - np.nanmean(X), *sums(before))
    for ours, wanted in zip(sums(after), (A, g, n, E), strict=True):
        np.testing.assert_allclose(ours, wanted, rtol=1e-8, atol=1e-10)
    noise = (A0 + n / 2) / (B0 + E / 2)
    np.testing.assert_allclose(after.components_.T, items_of(A, g, noise)[0], rtol=1e-8)
    assert after.noise_variance_ == pytest.approx(1 / noise, rel=1e-8)
    assert after.mean_ == pytest.approx(np.nanmean(X))


def test_the_bound_is_that_of_samples(rng):
    X, _ = planted(rng, 6, 5)
    model, n = full_batch(X, 3), 20_000
    A, g, n_ratings, E = sums(model)
    shape, rate = A0 + n_ratings / 2, B0 + E / 2
    v, V = items_of(A, g, shape / rate)
    centred = X - np.nanmean(X)
    m, S = users_of(centred, v, V, shape / rate)
    tau = rng.gamma(shape, 1 / rate, n)
    logs = stats.gamma.logpdf(tau, A0, scale=1 / B0) - stats.gamma.logpdf(
        tau, shape, scale=1 / rate
    )
    drawn = {}
    for name, means, covariances, alpha in (("x", m, S, ALPHA_X), ("v", v, V, ALPHA_V)):
        drawn[name] = []
        for mean, covariance in zip(means, covariances, strict=True):
            z = rng.multivariate_normal(mean, covariance, n)
            logs += stats.norm.logpdf(z, 0, alpha**-0.5).sum(axis=1)
            logs -= stats.multivariate_normal.logpdf(z, mean, covariance)
            drawn[name].append(z)
    for u, i in np.argwhere(~np.isnan(X)):
        product = (drawn["x"][u] * drawn["v"][i]).sum(axis=1)
        logs += stats.norm.logpdf(centred[u, i], product, tau**-0.5)
    error = logs.std() / np.sqrt(n)
    assert error < 0.1
    assert model.lower_bound_ == pytest.approx(logs.mean(), abs=5 * error)


def test_the_bound_is_below_the_evidence(rng):
    X, n = np.array([[1.0, -0.5], [np.nan, 0.7]]), 1_000_000
    model = full_batch(X, 200, n_components=1)
    x, v = rng.normal(0, ALPHA_X**-0.5, (n, 2)), rng.normal(0, ALPHA_V**-0.5, (n, 2))
    tau = rng.gamma(A0, 1 / B0, n)
    weights = np.ones(n)
    for u, i in np.argwhere(~np.isnan(X)):
        residual = X[u, i] - np.nanmean(X) - x[:, u] * v[:, i]
        weights *= stats.norm.pdf(residual, 0, tau**-0.5)
    evidence, error = np.log(weights.mean()), weights.std() / weights.mean() / np.sqrt(n)
    assert error < 0.05
    assert evidence - 3 < model.lower_bound_ < evidence + 5 * error


def test_the_natural_gradient_by_finite_differences(rng):
    """dL / d(A_i, g_i) by ``dL = tr((P - P-hat) dS) / 2 + (h-hat - P-hat m)^T dm`` of N(m, S)."""
    X, _ = planted(rng, 15, 4)
    model = full_batch(X, 3)
    items, state = model._read(X, reset=False), model._state
    state.renormalise()
    rows = state.shared.rows.copy()
    rows[:-1] *= rng.uniform(0.7, 1.4, (4, 1))  # away from the optimum
    state.shared.rows[...] = rows
    A, g, n, E = sums(model)
    noise = (A0 + n / 2) / (B0 + E / 2)
    A_hat, g_hat, *_ = reference_step(X - np.nanmean(X), A, g, n, E)
    m, S = items_of(A, g, noise)

    def bound(i, step):
        state.shared.rows[...] = rows
        state.shared.rows[i] += step
        state.recount()
        return model._lower_bound(state, items, 15)

    for i in range(4):
        P, P_hat = (ALPHA_V * np.eye(2) + noise * a[i] for a in (A, A_hat))
        root = rng.normal(size=(2, 2))
        dA, dg = root @ root.T, rng.normal(size=2)
        dS = -S[i] @ (noise * dA) @ S[i]
        dm = S[i] @ (noise * dg) - S[i] @ (noise * dA) @ m[i]
        wanted = 0.5 * np.trace((P - P_hat) @ dS) + (noise * g_hat[i] - P_hat @ m[i]) @ dm
        step = 1e-4 * np.concatenate([svec(dA), dg])
        slope = (bound(i, step) - bound(i, -step)) / 2e-4
        assert slope == pytest.approx(wanted, rel=1e-4)


# --- what users see ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted():
    X, clean = planted(np.random.default_rng(0), 3000)
    model = DPSVIMatrixFactorization(3, max_iter=30, batch_size=100, random_state=0)
    return model.fit(X[:2500]), X, clean


def test_planted_factors_are_found(fitted):
    model, X, clean = fitted
    assert model.noise_variance_ == pytest.approx(0.25, rel=0.05)
    assert model.mean_ == pytest.approx(3.0, abs=0.1)
    unseen = np.isnan(X[2500:])
    errors = (model.predict_ratings(X[2500:]) - clean[2500:])[unseen]
    # 15 ratings with noise of variance 0.25 leave 3 unknowns with about 0.25 / 15 each
    assert (errors**2).mean() < 0.1 < 0.05 * clean.var()
    # Components are those of the truth up to a rotation: they explain all of it.
    basis = np.linalg.qr(model.components_.T)[0]
    centred = clean - 3.0
    assert ((centred - centred @ basis @ basis.T) ** 2).mean() < 0.01 * centred.var()


def test_score_by_hand(fitted):
    model, X, _ = fitted
    X = X[2500:2540]
    known = ~np.isnan(X)
    chosen = np.random.default_rng(0).random(known.sum()) < 0.5
    first = X.copy()
    first[known] = np.where(chosen, X[known], np.nan)
    q, n = read(model._state), 3
    v = q.expected[:, -n:]
    V = np.array([smat(row[:-n], n) for row in q.expected]) - v[:, :, None] * v[:, None, :]
    m, S = np.zeros((40, n)), np.zeros((40, n, n))
    for u in range(40):
        P, h = np.eye(n), np.zeros(n)
        for i in np.flatnonzero(~np.isnan(first[u])):
            P += q.noise * (V[i] + np.outer(v[i], v[i]))
            h += q.noise * (X[u, i] - model.mean_) * v[i]
        S[u] = np.linalg.inv(P)
        m[u] = S[u] @ h
    logs = []
    for u, i in np.argwhere(known & np.isnan(first)):
        variance = 1 / q.noise + squared_error(0.0, m[u], S[u], v[i], V[i]) - (m[u] @ v[i]) ** 2
        mean = model.mean_ + m[u] @ v[i]
        logs.append(stats.norm.logpdf(X[u, i], mean, np.sqrt(variance)))
    assert model.score(X) == pytest.approx(np.mean(logs), rel=1e-8)


def test_held_out_score_is_near_that_of_the_truth(fitted):
    model, X, clean = fitted
    known = ~np.isnan(X[2500:])
    residuals = (X[2500:] - clean[2500:])[known]
    truth = stats.norm.logpdf(residuals, 0, 0.5).mean()
    constant = stats.norm.logpdf(X[2500:][known], 3.0, np.nanstd(X)).mean()
    assert constant + 0.6 < model.score(X[2500:]) < truth


def test_stored_values_are_ratings(rng):
    X, _ = planted(rng, 40, 6)
    X = np.where(np.isnan(X), X, np.round(X - 3))
    known = ~np.isnan(X)
    users, items = np.nonzero(known)
    assert (X[known] == 0).any()
    sparse = scipy.sparse.csr_array((X[known], (users, items)), X.shape)
    with_nan = scipy.sparse.csr_array((X.ravel(), np.indices(X.shape)[1].ravel(),
                                       np.arange(0, 241, 6)), X.shape)  # fmt: skip
    model = DPSVIMatrixFactorization(2, max_iter=3, random_state=0)
    wanted = model.fit(X).components_
    for other in (sparse, with_nan, scipy.sparse.csc_array(sparse)):
        assert np.array_equal(model.fit(other).components_, wanted)
    dropped = sparse.copy()
    dropped.eliminate_zeros()
    assert not np.allclose(model.fit(dropped).components_, wanted)


def test_rated_items_are_not_recommended(fitted):
    model, X, _ = fitted
    items, scores = model.recommend(X[:200], n=10)
    expected = model.predict_ratings(X[:200])
    expected[~np.isnan(X[:200])] = -np.inf
    for u in range(200):
        assert np.isnan(X[u, items[u][items[u] >= 0]]).all()
    np.testing.assert_allclose(scores, -np.sort(-expected, axis=1)[:, :10])


def test_scale_and_origin_of_ratings_do_not_matter(rng):
    X, _ = planted(rng, 100)
    model = DPSVIMatrixFactorization(3, max_iter=5, random_state=0)
    plain = model.fit(X).predict_ratings(X)
    other = model.fit(1000.0 + 20.0 * X).predict_ratings(1000.0 + 20.0 * X)
    np.testing.assert_allclose((other - 1000.0) / 20.0, plain, rtol=1e-6)


@pytest.mark.parametrize("origin", [2e6, 1e9])
def test_ratings_far_from_0_are_not_taken_for_constant(origin, rng):
    X, _ = planted(rng, 200)
    model = DPSVIMatrixFactorization(3, max_iter=5, random_state=0)
    plain = model.fit(X).score(X)
    assert model.fit(origin + X).score(origin + X) == pytest.approx(plain, abs=1e-4)


def test_masked_ratings_are_missing(rng):
    X, _ = planted(rng, 60)
    masked = np.ma.masked_invalid(X)
    masked.data[masked.mask] = 999.0
    model = DPSVIMatrixFactorization(3, max_iter=2, random_state=0)
    np.testing.assert_array_equal(model.fit(X).components_, model.fit(masked).components_)
    whole = np.ma.masked_array(np.arange(12).reshape(4, 3), np.eye(4, 3))
    assert DPSVIMatrixFactorization(1, max_iter=1).fit(whole).mean_ == pytest.approx(whole.mean())


def test_overflow_is_refused():
    for largest in (1e200, -1e200):
        with pytest.raises(ValueError, match=r"of ratings overflow, the largest is 1e\+200"):
            DPSVIMatrixFactorization(2).fit(np.array([[largest, 0.0]]))
