"""Posterior of the coefficients of one group in a probit regression, by Newton's method.

The equations are those of :mod:`dpsvi.models.hierarchical_probit`; groups are laid out as
:mod:`dpsvi.families.hierarchical.population` says.
"""

from __future__ import annotations

import numpy as np

from dpsvi.expfam.truncated_normal import log_cdf
from dpsvi.families.hierarchical.population import cholesky, invert, solve, start_at_prior, surprise
from dpsvi.kernels.jit import kernel

_CLOSE = 1e-12  # nats that a Newton step still promises; the one after it doubles the digits
_MOST_STEPS = 200  # of Newton's method, halved ones included; a few are the rule


@kernel
def find_mean(rows, group):
    """Fill the mean of a group whose prior is known; returns ``sum_i ln Phi(s_i x_i^T m_j)``.

    Each row counts as often as its last number, its weight, says.
    """
    n = group.mean.shape[0]
    precision, step = group.factor, group.step
    for d in range(n):
        group.mean[d], step[d] = group.prior_mean[d], 0.0
    best = -np.inf
    log_likelihood = 0.0
    for _ in range(_MOST_STEPS):
        start_at_prior(group)
        log_likelihood = 0.0
        for i in range(rows.shape[0]):
            t = 0.0
            for d in range(n):
                t += rows[i, d] * group.mean[d]
            value, ratio, curvature = log_cdf(rows[i, n] * t)
            weight = rows[i, n + 1]
            log_likelihood += weight * value
            for d in range(n):
                group.gradient[d] += weight * rows[i, n] * ratio * rows[i, d]
                weighted = weight * curvature * rows[i, d]
                for e in range(d + 1):
                    precision[d, e] += weighted * rows[i, e]
        here = log_likelihood - 0.5 * surprise(group)
        if here < best - 1e-9 * abs(best):  # too far: half the way back
            for d in range(n):
                step[d] *= 0.5
                group.mean[d] -= step[d]
            continue
        best = here
        for d in range(n):
            for e in range(n):
                shift = group.mean[e] - group.prior_mean[e]
                group.gradient[d] -= group.prior_precision[d, e] * shift
            step[d] = group.gradient[d]
        cholesky(precision)
        solve(precision, step)
        gain = 0.0
        for d in range(n):
            gain += group.gradient[d] * step[d]
        if gain < _CLOSE:
            break
        for d in range(n):
            group.mean[d] += step[d]
    return log_likelihood


@kernel
def infer_group(rows, group):
    """Fill mean and covariance of a group whose prior is known.

    Returns ``sum_i ln Phi(s_i x_i^T m_j)`` and ``ln|S_j|``.
    """
    precision = group.factor
    start_at_prior(group)
    for i in range(rows.shape[0]):
        for d in range(precision.shape[0]):
            weighted = rows[i, precision.shape[0] + 1] * rows[i, d]
            for e in range(d + 1):
                precision[d, e] += weighted * rows[i, e]
    log_det = cholesky(precision)
    invert(precision, group.covariance)
    return find_mean(rows, group), -log_det
