"""The network with one hidden layer by DPSGD: its gradient, its training, its estimator."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.special import log_softmax
from sklearn.datasets import load_digits
from sklearn.utils.estimator_checks import parametrize_with_checks

from dpsvi import DPSGD, DPSGDMLPClassifier, VirtualCluster, engines
from dpsvi.cluster.virtual import Timing
from dpsvi.optimize import network

N, D, H, K = 40, 5, 6, 3
CLUSTERS = {"simulated": VirtualCluster(timing=Timing(step=1.0, value=0.0))}


@pytest.fixture
def data(rng):
    return rng.normal(size=(N, D)), rng.integers(K, size=N)


def dense_loss(x, X, y, activation, items=slice(None)):
    """The mean loss, weights and biases cut out of x by hand."""
    x = x.reshape(H + 1, D + 1 + K)
    hidden = X[items] @ x[:H, :D].T + x[:H, D]
    hidden = np.tanh(hidden) if activation == "tanh" else hidden * (hidden > 0)
    score = log_softmax(hidden @ x[:H, D + 1 :] + x[H, D + 1 :], axis=1)
    return -np.mean(score[np.arange(len(score)), y[items]])


def biases():
    mask = np.zeros((H + 1, D + 1 + K), bool)
    mask[:H, D] = mask[H] = True
    return mask


@pytest.mark.parametrize("n", [1, 2, 7, N])  # four are computed together
@pytest.mark.parametrize("activation", network.ACTIVATIONS)
def test_gradient_is_that_of_finite_differences(activation, n, data, rng):
    X, y = data[0][:n], data[1][:n]
    objective = network.objective(X, y, K, H, activation)
    x0 = network.start(D, K, H, rng) + 0.1 * biases()
    x0[H, : D + 1] = 0
    for penalty in (0.0, 0.3):
        optimizer = DPSGD(learning_rate=1.0, batch_size=n, max_iter=1, weight_decay=penalty)
        found = x0 - optimizer.minimize(objective, x0).x
        expected = approx_fprime(x0.ravel(), dense_loss, 1e-7, X, y, activation).reshape(x0.shape)
        np.testing.assert_allclose(found, expected + penalty * x0 * ~biases(), atol=1e-6)
    assert network.mean_loss(x0, X, y, K, activation) == pytest.approx(
        dense_loss(x0, X, y, activation)
    )


@pytest.mark.parametrize("engine", engines.names())
def test_compiled_is_the_python_callable(engine, data, rng):
    """With a gradient by finite differences, so to few digits; five steps."""
    X, y = data
    x0 = network.start(D, K, H, rng)
    settings = dict(learning_rate=0.5, batch_size=8, max_iter=1, random_state=3)
    slow = DPSGD(engine="serial", **settings).minimize(
        lambda x, items: approx_fprime(
            x.ravel(), dense_loss, 1e-7, X, y, "tanh", items
        ).reshape(x0.shape), x0, N,
    )  # fmt: skip
    fast = DPSGD(engine=engine, cluster=CLUSTERS.get(engine), **settings).minimize(
        network.objective(X, y, K, H), x0
    )
    np.testing.assert_allclose(fast.x, slow.x, atol=1e-5)


@pytest.mark.parametrize("activation", network.ACTIVATIONS)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_threads_learn_digits(activation, n_jobs):
    X, y = load_digits(return_X_y=True)
    X, test = X.astype(np.float32) / 16, np.arange(len(X)) % 4 == 0
    classifier = DPSGDMLPClassifier(
        32, activation=activation, random_state=0,
        optimizer=DPSGD(learning_rate=0.2, batch_size=8, max_iter=20, n_jobs=n_jobs,
                        random_state=0),
    ).fit(X[~test], y[~test])  # fmt: skip
    assert classifier.score(X[test], y[test]) > 0.95
    assert classifier.score(X[~test], y[~test]) > 0.98
    assert classifier.coefs_[0].dtype == np.float32


def test_layers_are_views(rng):
    x = network.start(D, K, H, rng)
    W, b, U, c = network.layers(x, K)
    assert [part.shape for part in (W, b, U, c)] == [(H, D), (H,), (H, K), (K,)]
    assert np.all(b == 0) and np.all(c == 0) and not np.any(x[H])
    assert 0 < np.abs(W).max() <= np.sqrt(6 / (H + D)) and len(np.unique(W)) == W.size
    W[0, 0] = 7
    assert x[0, 0] == 7


@parametrize_with_checks([DPSGDMLPClassifier(10, random_state=0)])
def test_scikit_learn_estimator(estimator, check):
    check(estimator)


def test_parameters_are_checked(data):
    with pytest.raises(ValueError, match="n_hidden must be an integer >= 1, got 0"):
        DPSGDMLPClassifier(0).fit(*data)
    with pytest.raises(ValueError, match="activation must be one of"):
        DPSGDMLPClassifier(activation="sine").fit(*data)
