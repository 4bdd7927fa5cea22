"""exp and exp(digamma) in float32: the error bounds that their docstrings state."""

import numba
import numpy as np
import pytest
from scipy.special import psi

from dpsvi.kernels.special import (
    LEAST,
    exp_digamma,
    exp_digamma_row,
    exp_expected_log,
    exp_negative,
)
from dpsvi.kernels.special import psi as fast_psi


@numba.njit
def exp_digamma_rows(x):
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            x[i, k] = exp_digamma(x[i, k])


@numba.njit
def _exp_digamma_row(x, n, out):
    return exp_digamma_row(x, n, out)


@numba.njit
def _psi(x, out):
    for i in range(len(x)):
        out[i] = fast_psi(x[i])


@numba.njit
def _exp_negative(x, out):
    for i in range(len(x)):
        out[i] = exp_negative(x[i])


def relative_error(value, exact):
    return np.max(np.abs(value.astype(np.float64) / exact - 1))


@pytest.mark.parametrize(
    "x",
    [
        -np.logspace(-30, np.log10(86.99), 200_001),
        np.linspace(-86.99, 0, 1_000_001),
        np.log(2) * (-np.arange(0, 125) - 0.5)[:, None] + np.linspace(-1e-4, 1e-4, 101),
    ],
    ids=["logarithmic", "even", "where n changes"],
)
def test_exp_negative(x):
    x = x.ravel().astype(np.float32)
    out = np.empty_like(x)
    _exp_negative(x, out)
    error = relative_error(out, np.exp(x.astype(np.float64)))
    assert error < 2e-7


def test_exp_negative_of_zero():
    out = np.empty(1, np.float32)
    _exp_negative(np.zeros(1, np.float32), out)
    assert out[0] == 1


@pytest.mark.parametrize(
    ("low", "high", "bound"),
    [(1.0, 1e12, 6e-7), (0.03, 1.0, 2e-5)],
)
def test_exp_digamma(low, high, bound):
    x = np.geomspace(low, high, 1_000_002)[1:].astype(np.float32)[:, None]
    value = x.copy()
    exp_digamma_rows(value)
    error = relative_error(value, np.exp(psi(x.astype(np.float64))))
    assert error < bound


def test_small_arguments_stay_in_range():
    x = np.array([[1e-30, 1e-3, 0.015]], np.float32)
    exp_digamma_rows(x)
    np.testing.assert_allclose(x, 3.5 * np.exp(LEAST), rtol=0.2)
    assert np.all(x**2 > np.finfo(np.float32).tiny)


@pytest.mark.parametrize("most", [1e-30, 1e-4, 0.02, 0.3, 5.0, 1e9])
def test_a_row_is_in_units_near_its_largest(most):
    """Ratios are right wherever they matter, however small all arguments are."""
    x = (most * np.array([1.0, 0.9, 0.5, 0.1, 1e-3, 1.0])).astype(np.float32)
    out = np.full(6, -1, np.float32)
    shift = _exp_digamma_row(x, 5, out)
    exact = psi(x[:5].astype(np.float64))
    ratios = np.exp(exact - exact[0])
    assert np.all(out[:5] > 0) and np.all(np.isfinite(out[:5])) and out[5] == -1
    np.testing.assert_allclose(out[:5] / out[0], ratios, rtol=1e-3, atol=1e-15)
    assert np.log(out[0]) - shift == pytest.approx(exact[0], rel=1e-5, abs=1e-4)
    assert out[0] >= 0.3, "the unit is near the largest"


def test_nan_is_not_hidden():
    x = np.array([[np.nan, 1.0]], np.float32)
    exp_digamma_rows(x)
    assert np.isnan(x[0, 0]) and np.isfinite(x[0, 1])


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64])
def test_scalars_of_other_types(kind):
    assert float(exp_digamma(kind(3))) == pytest.approx(np.exp(psi(3.0)), rel=5e-7)


def test_psi_is_exact_for_small_arguments_too():
    x = np.geomspace(1e-6, 1e6, 100_000).astype(np.float32)
    value = np.empty_like(x)
    _psi(x, value)
    exact = psi(x.astype(np.float64))
    assert np.max(np.abs(value - exact) / np.maximum(1, np.abs(exact))) < 2e-6


@pytest.mark.parametrize("smallest", [1e-4, 0.01, 1.0])
def test_exp_expected_log(smallest, rng):
    """The largest of a row is 1; `shift` says what is missing."""
    lam = (smallest + rng.gamma(0.1, 50, (300, 7))).astype(np.float32)
    lam[5] = smallest
    expected = psi(lam.astype(np.float64)) - psi(lam.sum(axis=0, dtype=np.float64))
    basis, shift = lam.copy(), np.empty(300)
    exp_expected_log(basis, lam.sum(axis=0, dtype=np.float64).astype(np.float32), shift)
    assert np.all(basis.max(axis=1) == 1)
    np.testing.assert_allclose(shift, expected.max(axis=1), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(basis, np.exp(expected - shift[:, None]), rtol=1e-2, atol=1e-6)
    least = exp_digamma(np.float32(1e-4), np.float32(1))  # the smallest weight of a topic
    assert np.all((basis == 0) | (basis * least >= np.finfo(np.float32).tiny))
