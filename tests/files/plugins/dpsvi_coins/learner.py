"""A learner of its own: the natural-gradient step (52), one step at a time."""

import numpy as np

COUNTS_ONCE = False
ESTIMATES = True


def tables(model, rates, scale, batch_sizes, n_items):
    """See :mod:`dpsvi.learners`; the scale is folded in after every step."""
    rate = min(float(rates[0]), 1 - 1e-15)
    after = scale * (1 - rate)
    return np.array([scale, after]), np.array([rate / after * n_items / batch_sizes[0]]), 1
