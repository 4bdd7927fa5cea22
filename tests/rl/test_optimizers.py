"""The optimisers beside their published formulas, step by step."""

import numpy as np
import pytest

from dpsvi.rl.optimizers import KEPT, NAMES, direct

N, STEPS = 50, 40


def sgd(gradients, first, second, epsilon):
    velocity = 0.0
    for g in gradients:
        velocity = first * velocity + g
        yield velocity


sgd_momentum = sgd


def rmsprop(gradients, first, second, epsilon):
    square = 1.0
    for g in gradients:
        square = second * square + (1 - second) * g**2
        yield g / np.sqrt(square + epsilon)


def adam(gradients, first, second, epsilon):
    mean = square = 0.0
    for t, g in enumerate(gradients, 1):
        mean = first * mean + (1 - first) * g
        square = second * square + (1 - second) * g**2
        yield mean / (1 - first**t) / (np.sqrt(square / (1 - second**t)) + epsilon)


@pytest.mark.parametrize("name", NAMES)
def test_directions_are_those_of_the_formulas(name):
    gradients = np.random.default_rng(0).normal(0, 1e-3, (STEPS, N))
    kept = np.zeros(KEPT[name] * N, np.float32)
    for g, want in zip(gradients, globals()[name](gradients, 0.9, 0.99, 1e-5), strict=True):
        found = (4 * g).astype(np.float32)
        direct(NAMES.index(name), found, 0.25, kept, 0.9, 0.99, 1e-5)
        np.testing.assert_allclose(found, -want, rtol=2e-4, atol=1e-7)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_kept_of_weights_without_gradients_ends_at_zero(name):
    """Subnormal numbers would stay for ever, and cost some processors much; NaN must stay."""
    kept, gradient = np.zeros(KEPT[name] * N, np.float32), np.full(N, 1e-3, np.float32)
    gradient[-1] = np.nan
    for _ in range(2_000):
        direct(NAMES.index(name), gradient, 1.0, kept, 0.9, 0.95, 1e-5)
        gradient[:-1] = 0
    kept = kept[: (2 if name == "adam" else 1) * N].reshape(-1, N)
    assert not kept[:, :-1].any() and np.isnan(kept[:, -1]).all()
