"""Incremental inference: statistics are *changes*, to be summed as they are.

    lam <- lam + (new statistics of the items - those at their last visit)

Nothing decays and rates have no effect; the local step remembers what it said of every item.
"""

from __future__ import annotations

import numpy as np

COUNTS_ONCE = True
ESTIMATES = False


def tables(model, rates, scale, batch_sizes, n_items):
    """See :mod:`dpsvi.learners`."""
    n_steps = len(rates)
    return np.full(n_steps + 1, scale), np.full(n_steps, 1.0 / scale), n_steps
