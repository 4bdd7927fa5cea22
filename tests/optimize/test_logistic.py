"""Logistic regression by DPSGD: its gradient, its optimum, its estimator."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.sparse import csr_array, random
from scipy.special import expit, log_softmax, softmax
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from dpsvi import DPSGD, DPSGDLogisticRegression, VirtualCluster, engines
from dpsvi.cluster.virtual import Timing
from dpsvi.errors import DivergedError
from dpsvi.optimize import logistic

N, D, K = 80, 12, 4
CLUSTERS = {"simulated": VirtualCluster(timing=Timing(step=1.0, value=0.0))}


@pytest.fixture
def data(rng):
    X = csr_array(random(N, D, density=0.3, random_state=0))
    X.data[:] = rng.normal(size=X.nnz)
    X.data[X.indptr[3] : X.indptr[4]] = 0
    X.eliminate_zeros()
    assert X.indptr[3] == X.indptr[4], "an item without features"
    y = (X.toarray() @ rng.normal(size=(D, K)) + rng.normal(size=(N, K))).argmax(axis=1)
    return X, y


def dense_loss(x, X, y, loss, c=1.0, items=slice(None)):
    """The mean loss, written as in a textbook."""
    x = x.reshape(D + 1, K)
    score, one_hot = X.toarray()[items] @ x[:-1] + c * x[-1], np.eye(K)[y[items]]
    if loss == "multinomial":
        return -np.mean((one_hot * log_softmax(score, axis=1)).sum(axis=1))
    return -np.mean(np.sum(np.log(np.where(one_hot, expit(score), expit(-score))), axis=1))


def dense_gradient(x, X, y, loss, penalty, items):
    """Of the loss, and what takes the penalty away from the bias."""
    Z = np.column_stack([X.toarray()[items], np.ones(len(items))])
    p = softmax(Z @ x, axis=1) if loss == "multinomial" else expit(Z @ x)
    found = Z.T @ (p - np.eye(K)[y[items]]) / len(items)
    found[-1] -= penalty * x[-1]
    return found


@pytest.mark.parametrize("c", [1.0, 0.1])
@pytest.mark.parametrize("loss", logistic.LOSSES)
def test_gradient_is_that_of_finite_differences(loss, c, data, rng):
    """A step of rate 1 over all items is minus the gradient; the bias has no penalty."""
    X, y = data
    objective, x0 = logistic.objective(X, y, K, loss, c), rng.normal(size=(D + 1, K))
    for penalty in (0.0, 0.3):
        optimizer = DPSGD(learning_rate=1.0, batch_size=N, max_iter=1, weight_decay=penalty)
        found = x0 - optimizer.minimize(objective, x0).x
        expected = approx_fprime(x0.ravel(), dense_loss, 1e-7, X, y, loss, c).reshape(x0.shape)
        expected[:-1] += penalty * x0[:-1]
        np.testing.assert_allclose(found, expected, atol=1e-6)
    assert logistic.mean_loss(x0, X, y, loss, c) == pytest.approx(dense_loss(x0, X, y, loss, c))


@pytest.mark.parametrize("engine", engines.names())
@pytest.mark.parametrize("penalty", [0.0, 0.2])
@pytest.mark.parametrize("loss", logistic.LOSSES)
def test_compiled_is_the_python_callable(loss, penalty, engine, data, rng):
    X, y = data
    x0 = rng.normal(size=(D + 1, K))
    settings = dict(learning_rate=0.3, learning_decay=0.3, batch_size=7, max_iter=5)
    settings |= dict(weight_decay=penalty, random_state=3)
    slow = DPSGD(engine="serial", **settings).minimize(
        lambda x, items: dense_gradient(x, X, y, loss, penalty, items), x0, N
    )
    fast = DPSGD(engine=engine, cluster=CLUSTERS.get(engine), **settings).minimize(
        logistic.objective(X, y, K, loss), x0
    )
    np.testing.assert_allclose(fast.x, slow.x, rtol=1e-9, atol=1e-12)
    assert fast.njev == slow.njev == 5 * 12


@pytest.mark.parametrize("engine, n_jobs", [("threads", 1), ("threads", 2), ("mpi", 2)])
@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_threads_find_the_optimum(engine, n_jobs, real, data):
    X, y = data
    alpha, x0 = 0.05, np.zeros((D + 1, K), real)

    def penalised(x):
        weights = x.reshape(D + 1, K)[:-1]
        return dense_loss(x, X, y, "multinomial") + alpha / 2 * np.sum(weights**2)

    best = minimize(penalised, np.zeros(x0.size)).fun
    optimizer = DPSGD(
        learning_rate=0.5, learning_decay=1.0, learning_offset=200.0, weight_decay=alpha,
        batch_size=2, max_iter=200, engine=engine, n_jobs=n_jobs, random_state=0,
    )  # fmt: skip
    found = optimizer.minimize(logistic.objective(X.astype(real), y, K), x0)
    assert found.x.dtype == real
    first, last = penalised(x0.ravel()), penalised(found.x.astype(float).ravel())
    assert best - 1e-6 <= last < best + 0.005 * (first - best)


def test_a_step_changes_the_rows_of_its_items_only(data):
    X, y = data
    objective = logistic.objective(X[:5], y[:5], K)
    found = DPSGD(learning_rate=0.1, batch_size=2, max_iter=1).minimize(
        objective, np.ones((D + 1, K))
    )
    changed = np.any(found.x != 1, axis=1)
    assert np.array_equal(changed[:-1], np.diff(X[:5].tocsc().indptr) > 0) and changed[-1]
    assert not changed.all()


def test_objective_checks_its_data(data):
    X, y = data
    for bad in (y + 1, y - 1, y + 0.5):
        with pytest.raises(ValueError, match="integers from 0 to 3, got"):
            logistic.objective(X, bad, K)
    with pytest.raises(ValueError, match=r"y must have shape \(80,\), got \(79,\)"):
        logistic.objective(X, y[1:], K)
    with pytest.raises(ValueError, match="loss must be one of"):
        logistic.objective(X, y, K, "hinge")
    objective = logistic.objective(X, y, K)
    with pytest.raises(ValueError, match=r"x0 must have shape \(13, 4\), got \(12, 4\)"):
        DPSGD().minimize(objective, np.zeros((D, K)))
    with pytest.raises(ValueError, match="n_items must be None for an Objective, got 80"):
        DPSGD().minimize(objective, np.zeros((D + 1, K)), N)
    with pytest.raises(DivergedError, match="multinomial logistic regression"):
        huge = logistic.objective(X * 1e200, y, K)
        DPSGD(learning_rate=1e200).minimize(huge, np.ones((D + 1, K)))


# --- the estimator -----------------------------------------------------------------------------


@parametrize_with_checks(
    [DPSGDLogisticRegression(random_state=0), DPSGDLogisticRegression(loss="ovr", random_state=0)]
)
def test_scikit_learn_estimator(estimator, check):
    check(estimator)


LONG = DPSGD(
    learning_rate=0.5, learning_decay=1.0, learning_offset=300.0, batch_size=2, max_iter=300,
    random_state=0,
)  # fmt: skip


def test_coefficients_are_those_of_scikit_learn(data):
    X, y = data
    labels = np.array(["d", "a", "c", "b"])[y]
    mine = DPSGDLogisticRegression(alpha=0.05, optimizer=LONG).fit(X, labels)
    other = LogisticRegression(C=1 / (0.05 * N), tol=1e-8, max_iter=1000).fit(X, labels)
    assert np.array_equal(mine.classes_, other.classes_)
    np.testing.assert_allclose(mine.coef_, other.coef_, atol=0.03)
    np.testing.assert_allclose(mine.predict_proba(X), other.predict_proba(X), atol=0.02)
    np.testing.assert_allclose(mine.decision_function(X), X @ mine.coef_.T + mine.intercept_)
    assert mine.n_iter_ == 300 and mine.score(X, labels) == pytest.approx(
        other.score(X, labels), abs=0.03
    )


def test_one_against_the_rest_is_the_loss_of_sgd_classifier(data):
    X, y = data
    mine = DPSGDLogisticRegression(alpha=0.05, loss="ovr", optimizer=LONG).fit(X, y)
    other = SGDClassifier(
        loss="log_loss", alpha=0.05, max_iter=2000, tol=None, random_state=0,
        learning_rate="invscaling", eta0=0.5, power_t=0.6,
    ).fit(X.toarray(), y)  # fmt: skip
    np.testing.assert_allclose(mine.coef_, other.coef_, atol=0.03)
    np.testing.assert_allclose(mine.intercept_, other.intercept_, atol=0.05)
    np.testing.assert_allclose(mine.predict_proba(X), other.predict_proba(X), atol=0.02)


def test_estimator_checks_its_parameters(data):
    with pytest.raises(ValueError, match="alpha=1000: .*must be < 1"):
        DPSGDLogisticRegression(alpha=1000).fit(*data)
    with pytest.raises(ValueError, match="alpha must be a number >= 0, got -1"):
        DPSGDLogisticRegression(alpha=-1).fit(*data)
    with pytest.raises(TypeError, match="optimizer must be a DPSGD or None, got 'adam'"):
        DPSGDLogisticRegression(optimizer="adam").fit(*data)
