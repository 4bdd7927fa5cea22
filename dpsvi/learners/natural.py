"""Stochastic natural-gradient steps of variational inference (Hoffman et al. 2013).

Statistics are a fresh estimate of the natural parameters, mixed in at the schedule's rate (52),

    lam <- (1 - rho) lam + rho (prior + (N / S) stats),

which on ``lam = prior + scale * rows`` is ``rows += rho / scale_{t+1} * (N / S) * stats`` on the
touched rows: the prior never decays, because (1 - rho) prior + rho prior = prior.
"""

from __future__ import annotations

import numpy as np

from dpsvi.learners import decayed_scales

COUNTS_ONCE = False
ESTIMATES = True


def tables(model, rates, scale, batch_sizes, n_items):
    """See :mod:`dpsvi.learners`; rates are in (0, 1]."""
    # rho = 1 forgets everything, scale 0; one rounding error of memory keeps the form (and is
    # below the resolution of the parameters).
    rates = np.minimum(rates, 1.0 - np.finfo(model.real).eps)
    scales, n_safe = decayed_scales(rates, scale)
    gains = rates[:n_safe] / scales[1:] * (n_items / np.asarray(batch_sizes)[:n_safe])
    return scales, gains, n_safe
