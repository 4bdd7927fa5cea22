"""Gamma distribution."""

from __future__ import annotations


def kl(shape, rate, shape0, rate0):
    """KL(Gamma(shape, rate) || Gamma(shape0, rate0)) in nats; arrays > 0 that broadcast."""
    import numpy as np
    from scipy.special import digamma, gammaln

    return (
        (shape - shape0) * digamma(shape) - gammaln(shape) + gammaln(shape0)
        + shape0 * np.log(rate / rate0) + shape * (rate0 / rate - 1)
    )  # fmt: skip
