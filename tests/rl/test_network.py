"""The compiled network beside NumPy and finite differences."""

import numpy as np
import pytest
from reference import actor_critic as plain
from threadpoolctl import threadpool_info, threadpool_limits

from dpsvi.rl.back_propagation import backward
from dpsvi.rl.layers import forward
from dpsvi.rl.network import Network, as_convolutions

NETWORKS = [
    Network((4,), (), 2),
    Network((5,), (7,), 3),
    Network((4,), (32, 20), 2),
    Network((3, 3), (16, 33, 5), 4),
    Network((5, 4, 2), (18,), 3, ((6, 3, 1),)),
    Network((4, 4, 1), (), 2, ((16, 2, 1),)),
    Network((9, 8, 2), (5,), 3, ((16, 3, 2), (7, 2, 1))),  # the stride leaves a column over
    Network((11, 12, 1), (), 2, ((3, 4, 2), (5, 3, 2), (4, 1, 1))),
]
PAPER = Network((84, 84, 4), (256,), 6, ((16, 8, 4), (32, 4, 2)))


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


def run_backward(network, theta, x, hidden, weights):
    n = len(x)
    wide = n * max(network.n_inputs, *network.widths, 1)
    found = np.zeros_like(theta)
    backward(
        theta, network.numbers(), x.ravel(), hidden, weights.ravel().copy(), n, found,
        np.full(wide, np.nan, np.float32), np.full(wide, np.nan, np.float32),
        np.full(network.n_transposed, np.nan, np.float32),
    )  # fmt: skip
    return found


@pytest.mark.parametrize("network", NETWORKS, ids=str)
def test_backward_is_that_of_finite_differences(network):
    theta, x = drawn(network, 10, 1)
    hidden, out = run_forward(network, theta, x)
    weights = np.random.default_rng(2).normal(size=out.shape).astype(np.float32)
    found = run_backward(network, theta, x, hidden, weights)
    want, step = np.zeros(len(theta)), 1e-6
    for k in range(len(theta)):
        both = []
        for sign in (1, -1):
            moved = theta.astype(np.float64)
            moved[k] += sign * step
            both.append((plain.outputs(network, moved, x) * weights).sum())
        want[k] = (both[0] - both[1]) / (2 * step)
    np.testing.assert_allclose(found, want, rtol=1e-3, atol=1e-3 * np.abs(want).max())


def test_the_papers_network_is_that_of_numpy_and_of_finite_differences():
    """Too many parameters for a difference of each: directions within the layers are tried."""
    assert PAPER.n_parameters == 677_943
    theta, x = drawn(PAPER, 3)
    hidden, out = run_forward(PAPER, theta, x)
    want = plain.outputs(PAPER, theta, x)
    np.testing.assert_allclose(out, want, rtol=1e-3, atol=1e-3 * np.abs(want).max())
    rng = np.random.default_rng(2)
    weights = rng.normal(size=out.shape).astype(np.float32)
    found = run_backward(PAPER, theta, x, hidden, weights)
    at, step = 0, 1e-6
    for (rows, columns), biases in PAPER.parts:
        for size in (rows * columns, biases):
            own = slice(at, at + size)
            direction = found[own] + rng.normal(0, np.abs(found[own]).mean(), size)
            direction /= np.linalg.norm(direction)
            both = []
            for sign in (1, -1):
                moved = theta.astype(np.float64)
                moved[own] += sign * step * direction
                both.append((plain.outputs(PAPER, moved, x) * weights).sum())
            slope = (both[0] - both[1]) / (2 * step)
            assert slope == pytest.approx(direction @ found[own], rel=2e-3)
            at += size


@pytest.mark.parametrize("network", [*NETWORKS, PAPER], ids=str)
def test_both_ways_are_those_of_torch(network):
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    theta, x = drawn(network, 7)
    hidden, out = run_forward(network, theta, x)
    weights = np.random.default_rng(2).normal(size=out.shape).astype(np.float32)
    found = run_backward(network, theta, x, hidden, weights)
    peer = torch.tensor(theta, dtype=torch.float64, requires_grad=True)
    h = torch.tensor(x, dtype=torch.float64)
    *below, (U, c) = plain.layers(network, peer)
    for (W, b), (filters, size, stride) in zip(below, network.convolutions, strict=False):
        seen = network.shape if h.ndim == 2 else h.shape[1:]
        pictures = h.reshape(len(x), *seen).permute(0, 3, 1, 2)
        kernel = W.reshape(size, size, seen[2], filters).permute(3, 2, 0, 1)
        h = torch.nn.functional.conv2d(pictures, kernel, b, stride).relu().permute(0, 2, 3, 1)
    h = h.reshape(len(x), -1)
    for W, b in below[len(network.convolutions) :]:
        h = torch.nn.functional.linear(h, W.T, b).relu()
    theirs = torch.nn.functional.linear(h, U, c)
    (theirs * torch.tensor(weights)).sum().backward()
    want, gradient = theirs.detach().numpy(), peer.grad.numpy()
    np.testing.assert_allclose(out, want, rtol=1e-4, atol=1e-4 * np.abs(want).max())
    np.testing.assert_allclose(found, gradient, rtol=1e-3, atol=1e-4 * np.abs(gradient).max())


def test_first_parameters_are_orthogonal_and_the_first_policy_is_even():
    network = Network((10, 10, 4), (64, 32), 3, ((16, 3, 1),))
    theta = network.start(np.random.default_rng(0))
    (_, _), (W, b), (V, _), (U, _) = plain.layers(network, theta)
    assert not b.any()
    np.testing.assert_allclose(W.T @ W, 2 * np.eye(64), atol=1e-5)
    np.testing.assert_allclose(V.T @ V, 2 * np.eye(32), atol=1e-5)
    out = plain.outputs(network, theta, np.random.default_rng(1).random((5, 400)))
    assert np.ptp(out[:, :3]) < 0.1
    np.testing.assert_allclose(np.linalg.norm(U, axis=1), [0.01, 0.01, 0.01, 1], rtol=1e-5)


def test_first_parameters_are_made_by_one_thread(monkeypatch):
    qr, threads = np.linalg.qr, []

    def watched(matrix):
        threads.extend(pool["num_threads"] for pool in threadpool_info() if is_blas(pool))
        return qr(matrix)

    def is_blas(pool):
        return pool["user_api"] == "blas"

    monkeypatch.setattr(np.linalg, "qr", watched)
    with threadpool_limits(2, "blas"):
        before = threadpool_info()
        assert {pool["num_threads"] for pool in before if is_blas(pool)} == {2}
        PAPER.start(np.random.default_rng(0))
        assert threadpool_info() == before
    assert set(threads) == {1}


@pytest.mark.parametrize("network, match", [
    (Network((4,), (0,), 2), "hidden"),
    (Network((4,), (8,), 2, ((16, 3, 1),)), "height, width, channels"),
    (Network((4, 4, 1), (8,), 2, ((16, 5, 1),)), "size of the convolution"),
    (Network((9, 9, 1), (8,), 2, ((16, 5, 2), (8, 4, 1))), "size of the convolution"),
    (Network((4, 4, 1), (8,), 2, ((0, 2, 1),)), "filters"),
    (Network((4, 4, 1), (8,), 2, ((8, 2, 0),)), "stride"),
])  # fmt: skip
def test_networks_that_there_are_not_are_refused(network, match):
    with pytest.raises(ValueError, match=match):
        network.check()


def test_one_convolution_and_several():
    assert as_convolutions(()) == ()
    assert as_convolutions((16, 3)) == as_convolutions([[16, 3, 1]]) == ((16, 3, 1),)
    assert as_convolutions(((16, 8, 4), (32, 4))) == ((16, 8, 4), (32, 4, 1))
    for bad in ((16,), ((16, 8, 4, 1),), ("conv",)):
        with pytest.raises(ValueError, match=r"convolution must be \(filters, size\[, stride\]\)"):
            as_convolutions(bad)
    with pytest.raises(TypeError, match="convolution must be"):
        as_convolutions(16)
