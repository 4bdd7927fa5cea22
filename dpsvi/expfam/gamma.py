"""Gamma distribution, by shape and rate."""

from __future__ import annotations

import numpy as np


def kl(shape, rate, shape0, rate0):
    """KL(Ga(shape, rate) || Ga(shape0, rate0)) in nats, elementwise.

    Parameters
    ----------
    shape, rate, shape0, rate0 : floats or arrays that broadcast, > 0
    """
    from scipy.special import digamma, gammaln

    return (
        (shape - shape0) * digamma(shape) - gammaln(shape) + gammaln(shape0)
        + shape0 * (np.log(rate) - np.log(rate0)) + shape * (rate0 - rate) / rate
    )  # fmt: skip


def expected_log(shape, rate):
    """E[ln x] under Ga(shape, rate), elementwise."""
    from scipy.special import digamma

    return digamma(shape) - np.log(rate)


def hierarchy_kl(shape, rate, shape0, top_shape, top_rate, top_shape0, top_rate0):
    """KL of rows of gamma variables and of their common random rate from their prior, in nats.

    ``lambda ~ Ga(top_shape0, top_rate0)``, ``x_k ~ Ga(shape0, lambda)`` in the prior,
    ``Ga(top_shape, top_rate)`` times ``Ga(shape_k, rate_k)`` in the posterior.

    Parameters
    ----------
    shape, rate : float arrays, (n, K)
    shape0 : float
    top_shape, top_rate : floats or float arrays, (n,)
    top_shape0, top_rate0 : floats

    Returns
    -------
    float64 array, (n,)
    """
    from scipy.special import gammaln

    log_x, mean_x = expected_log(shape, rate), shape / rate
    log_top = expected_log(top_shape, top_rate)[..., None]
    mean_top = np.asarray(top_shape / top_rate)[..., None]
    prior = shape0 * log_top - gammaln(shape0) + (shape0 - 1) * log_x - mean_top * mean_x
    posterior = shape * np.log(rate) - gammaln(shape) + (shape - 1) * log_x - shape
    return (posterior - prior).sum(axis=-1) + kl(top_shape, top_rate, top_shape0, top_rate0)
