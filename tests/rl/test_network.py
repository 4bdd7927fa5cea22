"""The compiled network beside NumPy and finite differences."""

import numpy as np
import pytest
from reference import actor_critic as plain

from dpsvi.rl.back_propagation import backward
from dpsvi.rl.layers import forward
from dpsvi.rl.network import Network

NETWORKS = [
    Network((4,), (), 2),
    Network((5,), (7,), 3),
    Network((4,), (32, 20), 2),
    Network((3, 3), (16, 33, 5), 4),
    Network((5, 4, 2), (18,), 3, (6, 3)),
    Network((4, 4, 1), (), 2, (16, 2)),
]


def drawn(network, n, seed=0):
    rng = np.random.default_rng(seed)
    theta = network.start(rng) + rng.normal(0, 0.1, network.n_parameters).astype(np.float32)
    x = rng.normal(size=(n, network.n_inputs)).astype(np.float32)
    x[rng.random(x.shape) < 0.5] = 0  # inputs that are 0 are passed over
    return theta, x


def run_forward(network, theta, x, lo=0, hi=None):
    n = len(x)
    hidden = np.full(n * sum(network.widths), np.nan, np.float32)
    out = np.full(n * (network.n_actions + 1), np.nan, np.float32)
    forward(theta, network.numbers(), x.ravel(), hidden, out, n, lo, n if hi is None else hi)
    return hidden, out.reshape(n, -1)


@pytest.mark.parametrize("network", NETWORKS, ids=str)
def test_forward_is_that_of_numpy(network):
    theta, x = drawn(network, 11)
    want = plain.outputs(network, theta, x)
    np.testing.assert_allclose(run_forward(network, theta, x)[1], want, rtol=1e-4, atol=1e-5)
    part = run_forward(network, theta, x, 3, 9)[1]
    np.testing.assert_allclose(part[3:9], want[3:9], rtol=1e-4, atol=1e-5)
    assert np.isnan(part[:3]).all() and np.isnan(part[9:]).all()
    np.testing.assert_allclose(network.apply(theta, x[2]), want[2], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("network", NETWORKS, ids=str)
def test_backward_is_that_of_finite_differences(network):
    n = 10
    theta, x = drawn(network, n, 1)
    hidden, out = run_forward(network, theta, x)
    weights = np.random.default_rng(2).normal(size=out.shape).astype(np.float32)
    wide = n * max(network.n_inputs, *network.widths, 1)
    found = np.zeros_like(theta)
    backward(
        theta, network.numbers(), x.ravel(), hidden, weights.ravel().copy(), n, found,
        np.full(wide, np.nan, np.float32), np.full(wide, np.nan, np.float32),
        np.zeros(network.largest, np.float32),
    )  # fmt: skip
    want, step = np.zeros(len(theta)), 1e-6
    for k in range(len(theta)):
        both = []
        for sign in (1, -1):
            moved = theta.astype(np.float64)
            moved[k] += sign * step
            both.append((plain.outputs(network, moved, x) * weights).sum())
        want[k] = (both[0] - both[1]) / (2 * step)
    np.testing.assert_allclose(found, want, rtol=1e-3, atol=1e-3 * np.abs(want).max())


def test_first_parameters_are_orthogonal_and_the_first_policy_is_even():
    network = Network((10, 10, 4), (64, 32), 3, (16, 3))
    theta = network.start(np.random.default_rng(0))
    (_, _), (W, b), (V, _), (U, _) = plain.layers(network, theta)
    assert not b.any()
    np.testing.assert_allclose(W.T @ W, 2 * np.eye(64), atol=1e-5)
    np.testing.assert_allclose(V.T @ V, 2 * np.eye(32), atol=1e-5)
    out = plain.outputs(network, theta, np.random.default_rng(1).random((5, 400)))
    assert np.ptp(out[:, :3]) < 0.1
    np.testing.assert_allclose(np.linalg.norm(U, axis=1), [0.01, 0.01, 0.01, 1], rtol=1e-5)


@pytest.mark.parametrize("network, match", [
    (Network((4,), (0,), 2), "hidden"),
    (Network((4,), (8,), 2, (16, 3)), "height, width, channels"),
    (Network((4, 4, 1), (8,), 2, (16, 5)), "size of the convolution"),
    (Network((4, 4, 1), (8,), 2, (0, 2)), "filters"),
])  # fmt: skip
def test_networks_that_there_are_not_are_refused(network, match):
    with pytest.raises(ValueError, match=match):
        network.check()
