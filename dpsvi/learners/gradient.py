"""Stochastic gradient descent with an L2 penalty, the local step of the paper's Alg. 2.

Statistics are minus the sum of the gradients of a batch's items, the prior is 0:

    v <- (1 - rho d) v - rho (1 / S) sum_i grad f_i(v),    d = `Model.weight_decay`.

This is a step on ``mean_i f_i(v) + d / 2 |v|^2``.  The penalty is a decay of all rows, so on
``v = scale * rows`` it is one number, and a step costs by the rows that its items touch.  Without a
penalty nothing decays: what a worker pushes is its displacement, and both strategies add it up.
"""

from __future__ import annotations

import numpy as np

from dpsvi.learners import decayed_scales

COUNTS_ONCE = False
ESTIMATES = False


def tables(model, rates, scale, batch_sizes, n_items):
    """See :mod:`dpsvi.learners`; rates are > 0.

    Raises
    ------
    ValueError
        A rate times ``model.weight_decay`` is 1 or more: the step would change the sign of v.
    """
    decays = rates * model.weight_decay
    if np.any(decays >= 1):
        raise ValueError(
            f"learning rate * weight_decay must be < 1, got {np.max(rates):g} * "
            f"{model.weight_decay:g}"
        )
    scales, n_safe = decayed_scales(decays, scale)
    gains = rates[:n_safe] / scales[1:] / np.asarray(batch_sizes)[:n_safe]
    return scales, gains, n_safe
