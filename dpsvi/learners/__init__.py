"""Learners: how the statistics of a local step change the parameters; one file each.

A learner is a module here with a function ``tables(model, rates, scale, batch_sizes, n_items)`` and
constants ``COUNTS_ONCE`` and ``ESTIMATES``, found by the name that :attr:`dpsvi.base.Model.learner`
gives.  Every learner makes its step a decay of all rows, one number, and a sum over touched rows,

    rows += gain * statistics,    scale_{t+1} = (1 - decay_t) scale_t,

so that the compiled loop, every engine and every strategy serve all of them unchanged.

``tables`` takes

* ``model``: a :class:`dpsvi.base.Model`;
* ``rates``: float array, (n_steps,), step sizes;
* ``scale``: float, the scale before the first of these steps;
* ``batch_sizes``: int array, (n_steps,), items of each step;
* ``n_items``: float, N, the size of the data set

and returns

* ``scales``: float64 array, (n + 1,): scales[t] holds before step t, scales[-1] after the last one;
* ``gains``: float64 array, (n,);
* ``n_safe``: int, n or fewer: at most this many of the steps may run before
  :meth:`dpsvi.training.state.State.renormalise`.

``COUNTS_ONCE`` says whether the parameters are a sum of all statistics, each of which must be added
exactly once: not every strategy can do that.

``ESTIMATES`` says whether statistics estimate all of ``lam - prior``, to be mixed in at a rate.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from dpsvi.files import plugins

# `rows` grows as 1/scale.  e^30 = 1e13 leaves room for 1e25 pseudo-counts in float32.
_MAX_LOG_SCALE = 30.0


def names() -> list[str]:
    """Names of the learners, in alphabetical order."""
    return plugins.names(__name__)


@cache
def get(name: str):
    """The module of learner `name`; raises ValueError naming the known ones."""
    return plugins.load(__name__, name, "tables", "COUNTS_ONCE", "ESTIMATES")


def decayed_scales(decays, scale: float):
    """Scales of consecutive steps, and the number of steps before a renormalisation.

    Parameters
    ----------
    decays : float array, (n_steps,), in [0, 1)
        What each step takes away of all rows, as a share.
    scale : float
        The scale before the first of these steps.

    Returns
    -------
    scales : float64 array, (n_safe + 1,)
        scales[t] holds before step t, scales[-1] after the last one.
    n_safe : int
        At most this many steps may run before a :meth:`dpsvi.training.state.State.renormalise`.
    """
    log_scales = np.concatenate([[math.log(scale)], np.log1p(-decays)]).cumsum()
    n_safe = max(1, int(np.searchsorted(-log_scales, _MAX_LOG_SCALE)) - 1)
    n_safe = min(n_safe, len(decays))
    return np.exp(log_scales[: n_safe + 1]), n_safe
