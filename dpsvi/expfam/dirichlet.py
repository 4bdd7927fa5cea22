"""Dirichlet distribution."""

from __future__ import annotations

import numpy as np


def kl(a, a0) -> float:
    """KL(Dir(a) || Dir(a0)) in nats.

    Parameters
    ----------
    a, a0 : float arrays, (n,), > 0
        Concentrations.
    """
    from scipy.special import digamma, gammaln

    expected_log = digamma(a) - digamma(np.sum(a))
    return float(
        gammaln(np.sum(a)) - np.sum(gammaln(a)) - gammaln(np.sum(a0)) + np.sum(gammaln(a0))
        + np.sum((a - a0) * expected_log)
    )  # fmt: skip
