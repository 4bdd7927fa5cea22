"""psi(x) and psi'(x) in float64, for kernels that need few of them, and to full precision."""

from __future__ import annotations

import math

from dpsvi.jit import kernel

# B_2n / (2 n) of the asymptotic series, for n = 1 ... 7 (Abramowitz and Stegun 1964, 6.3.18).
_SERIES = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)


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
