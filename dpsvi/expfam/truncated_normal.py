"""The standard normal distribution function Phi near and far in its tail.

Of a ~ N(t, 1) it is known that a > 0.  All that probit models need follows from the inverse Mills
ratio ``r(t) = phi(t) / Phi(t)``: ``E[a] = t + r``, and ``ln Phi`` has the derivatives r and
``-r (r + t)``.
"""

from __future__ import annotations

import math

from dpsvi.kernels.jit import kernel

_FAR = -25.0  # the series below ends with a term of 11!! / 25^12 = 2e-13
_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


@kernel
def log_cdf(t):
    """``ln Phi(t)``, its derivative r and minus its second derivative, which is in [0, 1].

    Far in the tail both r and r + t are taken from the asymptotic series ``Phi(t) = phi(t) / |t|
    (1 - 1/t^2 + 3/t^4 - ...)`` (Abramowitz and Stegun 1964, 26.2.12): Phi underflows there, and
    r + t is a difference of large numbers.  Relative error below 1e-10.
    """
    if t < _FAR:
        u = 1.0 / (t * t)
        missing = u * (1 - 3 * u * (1 - 5 * u * (1 - 7 * u * (1 - 9 * u * (1 - 11 * u)))))
        ratio = -t / (1.0 - missing)
        return -0.5 * t * t - _HALF_LOG_2PI - math.log(ratio), ratio, missing * ratio * ratio
    phi, cdf = math.exp(-0.5 * t * t - _HALF_LOG_2PI), 0.5 * math.erfc(-t * math.sqrt(0.5))
    ratio = phi / cdf
    # 1 - Phi(-t) keeps the digits that ln Phi needs where Phi is nearly 1.
    value = math.log(cdf) if t < 0 else math.log1p(-0.5 * math.erfc(t * math.sqrt(0.5)))
    return value, ratio, ratio * (ratio + t)
