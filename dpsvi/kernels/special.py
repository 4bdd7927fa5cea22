"""exp(digamma(x)) for the inner loops: branch-free, so that a whole row is one vector loop.

An LDA step needs one for every (word, topic) that it touches.  scipy's psi is computed value by
value; the functions here are a few fused operations.
"""

from __future__ import annotations

import numpy as np

from dpsvi.kernels.jit import float_from_bits, inline_kernel, kernel

# exp(psi(x) + shift) is kept above exp(LEAST) or so: a product of two such factors then stays in
# the range of float32, and a word whose every factor vanished would otherwise divide by zero.
LEAST = -42.0


@inline_kernel
def exp_negative(x):
    """exp(x) for -87 < x <= 0 in float32, relative error below 2e-7.

    ``x = n ln 2 + r`` with ``|r| <= ln(2)/2``; exp(r) by the polynomial of degree 6 that has the
    least largest relative error among those that begin with 1 + r (3e-9 before rounding; Taylor's
    has 1.7e-7), and 2**n by writing n into the exponent bits.
    """
    n = np.int32(x * np.float32(1.4426950408889634) - np.float32(0.5))
    nf = np.float32(n)
    r = x - nf * np.float32(0.693359375)
    r = r + nf * np.float32(2.12194440e-4)
    p = np.float32(0.00138145)
    p = p * r + np.float32(0.00836875)
    p = p * r + np.float32(0.04166839)
    p = p * r + np.float32(0.1666652)
    p = p * r + np.float32(0.49999993)
    p = p * r + np.float32(1)
    p = p * r + np.float32(1)
    return p * float_from_bits(np.int32((n + np.int32(127)) << np.int32(23)))


@inline_kernel
def exp_digamma(x, shift=0.0):
    """exp(psi(x) + shift) for x > 0; an exponent below about `LEAST` counts as `LEAST`.

    With the recurrence psi(x) = psi(x + 4) - q, q = 1/x + 1/(x+1) + 1/(x+2) + 1/(x+3), and the
    asymptotic series of exp(psi(z + 1/2)) in odd powers of 1/z, which needs no logarithm.
    Relative error in float32: 6e-7 above 1, 2e-5 at 0.03.
    """
    x = np.float32(x)
    u = x * x + np.float32(3) * x
    q = (np.float32(2) * x + np.float32(3)) * (np.float32(2) * u + np.float32(2))
    q = q / (u * (u + np.float32(2)))
    z = x + np.float32(3.5)
    r = np.float32(1) / z
    r2 = r * r
    series = np.float32(10313 / 2903040) * r2 - np.float32(37 / 5760)
    series = series * r2 + np.float32(1 / 24)
    return (z + series * r) * exp_negative(max(np.float32(shift) - q, np.float32(LEAST)))


@inline_kernel
def exp_digamma_row(x, n, out):
    """``out_k = exp(psi(x_k) + shift)`` of the first `n` entries; returns shift = 1 / max(x).

    exp(psi(x)) of every small x underflows float32; psi(x) + 1/x is above -0.6, so the largest
    entry of the row does not, and a factor that is common to a row cancels in phi.  `out` may be x.
    """
    top = np.float32(0)
    for k in range(n):
        top = max(top, x[k])
    shift = np.float32(1) / top
    for k in range(n):
        out[k] = exp_digamma(x[k], shift)
    return shift


@inline_kernel
def exp_or_zero(x):
    """exp(x) for x <= 0 of a row whose largest entry is 1, or 0 if it is below exp(`LEAST`).

    Products of what is smaller leave the range of normal float32, and arithmetic with subnormal
    numbers takes many times as long.
    """
    least = np.float32(LEAST)
    return np.exp(max(x, least)) * np.float32(x > least)


@inline_kernel
def psi(x):
    """digamma(x) for x > 0 by one step of its recurrence, which keeps small x exact."""
    return np.log(exp_digamma(x + np.float32(1))) - np.float32(1) / x


@kernel
def exp_expected_log(lam, size, shift):
    """``exp(psi(lam_wk) - psi(size_k) - shift_w)`` in place of `lam`, the largest of a row being 1.

    ``exp(E log beta)`` of a rare word underflows; what matters for a document are its ratios, and
    `shift`, which is written, says what is missing.

    Parameters
    ----------
    lam : float32 array, (n_words, n_topics)
        Dirichlet parameters of topics; overwritten.
    size : float32 array, (n_topics,)
        Their sums over words.
    shift : float64 array, (n_words,)
        Written: ``max_k E log beta_wk``.
    """
    log_size = np.empty_like(size)
    for k in range(size.shape[0]):
        log_size[k] = psi(size[k])
    for w in range(lam.shape[0]):
        row = lam[w]
        top = np.float32(-np.inf)
        for k in range(size.shape[0]):
            row[k] = psi(row[k]) - log_size[k]
            top = max(top, row[k])
        for k in range(size.shape[0]):
            row[k] = exp_or_zero(row[k] - top)
        shift[w] = top
