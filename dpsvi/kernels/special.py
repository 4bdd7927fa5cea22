"""exp(digamma(x)) for the inner loops: branch-free, so that a whole row is one vector loop.

scipy's psi followed by numpy's exp costs 10-17 ns a value; an LDA step needs one for every
(word, topic) it touches.  Both functions here are a few fused operations.
"""

from __future__ import annotations

import numpy as np

from dpsvi.jit import float_from_bits, inline_kernel, kernel

# exp(psi(0.02)) is about 3e-23.  Anything smaller would let a product of two such factors leave
# the range of float32, and a word whose every factor vanished would then divide by zero.
SMALLEST = 0.02


@inline_kernel
def exp_negative(x):
    """exp(x) for -87 < x <= 0 in float32, relative error below 2e-7.

    ``x = n ln 2 + r`` with ``|r| <= ln(2)/2``; exp(r) by its Taylor polynomial of degree 6 and
    2**n by writing n into the exponent bits.
    """
    n = np.int32(x * np.float32(1.4426950408889634) - np.float32(0.5))
    nf = np.float32(n)
    r = x - nf * np.float32(0.693359375)
    r = r + nf * np.float32(2.12194440e-4)
    p = np.float32(1 / 720)
    p = p * r + np.float32(1 / 120)
    p = p * r + np.float32(1 / 24)
    p = p * r + np.float32(1 / 6)
    p = p * r + np.float32(0.5)
    p = p * r + np.float32(1)
    p = p * r + np.float32(1)
    return p * float_from_bits(np.int32((n + np.int32(127)) << np.int32(23)))


@inline_kernel
def exp_digamma(x):
    """exp(psi(x)) for x > 0; arguments below `SMALLEST` count as `SMALLEST`.

    With the recurrence psi(x) = psi(x + 4) - q, q = 1/x + 1/(x+1) + 1/(x+2) + 1/(x+3), and the
    asymptotic series of exp(psi(z + 1/2)) in odd powers of 1/z, which needs no logarithm.
    Relative error in float32: 5e-7 above 1, 2e-5 at 0.02.
    """
    x = max(np.float32(x), np.float32(SMALLEST))
    u = x * x + np.float32(3) * x
    q = (np.float32(2) * x + np.float32(3)) * (np.float32(2) * u + np.float32(2))
    q = q / (u * (u + np.float32(2)))
    z = x + np.float32(3.5)
    r = np.float32(1) / z
    r2 = r * r
    series = np.float32(10313 / 2903040) * r2 - np.float32(37 / 5760)
    series = series * r2 + np.float32(1 / 24)
    return (z + series * r) * exp_negative(-q)


@kernel
def exp_digamma_rows(x):
    """exp(psi(x)) of every entry of a float32 matrix, in place."""
    for i in range(x.shape[0]):
        row = x[i]
        for k in range(row.shape[0]):
            row[k] = exp_digamma(row[k])
