"""Learners: how the statistics of a local step change the parameters; one file each.

A learner is a module here with one function ``tables(model, rates, scale, batch_sizes, n_items)``,
found by the name that :attr:`dpsvi.base.Model.learner` gives.  Every learner makes its step a
decay of all rows, one number, and a sum over the touched rows,

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
"""

from __future__ import annotations

from functools import cache

from dpsvi.files import plugins


def names() -> list[str]:
    """Names of the learners, in alphabetical order."""
    return plugins.names(__name__)


@cache
def get(name: str):
    """The module of learner `name`; raises ValueError naming the known ones."""
    return plugins.load(__name__, name)
