"""Gamma distribution with a shape and a rate."""

from __future__ import annotations

import numpy as np


def kl(shape, rate, shape0, rate0):
    """KL(Gamma(shape, rate) || Gamma(shape0, rate0)) in nats; all > 0, arrays broadcast."""
    from scipy.special import digamma, gammaln

    return (
        (shape - shape0) * digamma(shape) - gammaln(shape) + gammaln(shape0)
        + shape0 * np.log(rate / rate0) + shape * (rate0 - rate) / rate
    )  # fmt: skip
