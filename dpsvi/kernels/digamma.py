"""psi(x), psi'(x) and exp(psi(x)) in float64, to full precision, for kernels."""

from __future__ import annotations

import math

import numpy as np

from dpsvi.kernels.jit import double_from_bits, inline_kernel, kernel

# B_2n / (2 n) of the asymptotic series, for n = 1 ... 7 (Abramowitz and Stegun 1964, 6.3.18).
_SERIES = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)

# Of exp(psi(z + 1/2)) / z in powers of 1/z^2, from 0: the exponential of the series of
# psi(z + 1/2) - ln z, whose terms are (1 - 2^(1 - 2n)) B_2n / (2n) z^(-2n).
_EXP_SERIES = (
    1.0, 1 / 24, -37 / 5760, 10313 / 2903040, -5509121 / 1393459200,
    2709398569 / 367873228800, -499769010050743 / 24103053950976000,
)  # fmt: skip
# 1 / n! of Taylor's series of exp(r), |r| <= ln(2) / 2: the first that is left out adds 4e-18.
_TAYLOR = tuple(1 / math.factorial(n) for n in range(14))
_LN2_HIGH, _LN2_LOW = 0.693147180369123816490, 1.90821492927058770002e-10


@kernel
def digamma(x):
    """psi(x) for x > 0; error below 1e-14 max(1, abs(psi(x))).

    The recurrence psi(x) = psi(x + 1) - 1/x carries the argument to where the series converges.
    """
    shift = 0.0
    while x < 10.0:
        shift += 1.0 / x
        x += 1.0
    square = 1.0 / (x * x)
    series = 0.0
    for i in range(len(_SERIES) - 1, -1, -1):
        series = (series + _SERIES[i]) * square
    return math.log(x) - 0.5 / x - series - shift


@kernel
def trigamma(x):
    """psi'(x) for x > 0; relative error below 1e-13.  Recurrence and series as for psi."""
    shift = 0.0
    while x < 10.0:
        shift += 1.0 / (x * x)
        x += 1.0
    square = 1.0 / (x * x)
    series = 0.0
    for i in range(len(_SERIES) - 1, -1, -1):
        series = (series + 2 * (i + 1) * _SERIES[i]) * square
    return (1.0 + 0.5 / x + series) / x + shift


@inline_kernel
def exp_negative(x):
    """exp(x) for -700 < x <= 0: ``x = n ln 2 + r``, Taylor for r, n into the exponent bits."""
    n = np.int32(x * 1.4426950408889634 - 0.5)
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    p = _TAYLOR[13]
    for i in range(12, -1, -1):
        p = p * r + _TAYLOR[i]
    return p * double_from_bits((np.int64(n) + 1023) << 52)


@inline_kernel
def exp_digamma(x):
    """exp(psi(x)) for 0.01 <= x < 1e38; relative error below 1e-12.

    psi(x) = psi(x + 8) - sum_{j < 8} 1 / (x + j), and the series of exp(psi) at x + 8, which needs
    no logarithm.  Without a branch, so that a loop over x is one of vectors.
    """
    u = x * (x + 7.0)  # (x + j)(x + 7 - j) = u + j (7 - j)
    v, w = u * (u + 12.0), (u + 6.0) * (u + 10.0)
    q = (2.0 * x + 7.0) * ((2.0 * u + 12.0) * w + (2.0 * u + 16.0) * v) / (v * w)
    z = x + 7.5
    square = 1.0 / (z * z)
    series = _EXP_SERIES[6]
    for i in range(5, -1, -1):
        series = series * square + _EXP_SERIES[i]
    return z * series * exp_negative(-q)
