"""DiLoCo (Douillard et al. 2023): rounds of local steps, and Nesterov momentum between them.

Rounds are those of :mod:`dpsvi.strategies.local_sgd`.  The mean displacement of a round is the
gradient of an outer step with Nesterov's momentum, whose rate is eta and momentum mu::

    d <- sum_i n_i (u_i - v) / sum_i n_i        m <- mu m + d        v <- v + eta (d + mu m)

As in :mod:`dpsvi.strategies.momentum` the two parts of a displacement are kept apart: the
statistics that it adds, and the share of v that it takes away, which acts on the v that is there
now.  So v becomes a convex mixture of itself and of targets that workers sent and stays a valid
natural parameter; and eta is reduced where more than all of v would be taken away.

In the long run a round counts ``eta / (1 - mu)`` times: the authors' 0.7 and 0.9 want inner steps
that are small.
"""

from __future__ import annotations

import numpy as np

from dpsvi.base import Parameters, Update
from dpsvi.errors import check_number
from dpsvi.strategies import local_sgd


class Strategy(local_sgd.Strategy):
    """See :class:`dpsvi.base.Star`.

    Parameters
    ----------
    outer_rate : float, in (0, 1]
        eta.
    momentum : float, in [0, 1)
        mu.
    """

    as_sent = False

    def __init__(self, outer_rate: float = 0.7, momentum: float = 0.9):
        check_number("outer_rate", outer_rate, low=0, high=1, open_low=True)
        check_number("momentum", momentum, low=0)
        if momentum >= 1:
            raise ValueError(f"momentum must be a number >= 0 and < 1, got {momentum!r}")
        self.outer_rate, self.momentum = outer_rate, momentum
        self._velocity: Parameters | None = None  # the statistics of m
        self._decay = 0.0  # the share that m takes away

    def begin(self, parameters: Parameters, n_workers: int, state: dict | None) -> None:
        """Start with no velocity, or with that of a checkpoint."""
        self._velocity = parameters.like(empty=True)
        if state:
            self._decay = float(state["decay"])
            self._velocity.restore({k: state[f"velocity_{k}"] for k in ("rows", "totals", "scale")})

    def __call__(self, parameters: Parameters, updates: list[Update]) -> None:
        """One outer step."""
        weights = local_sgd.shares_of(updates)
        taken = 1 - float(weights @ [update.decay for update in updates])
        mu = self.momentum
        velocity = self._velocity = _added(self._velocity, mu, weights, updates)
        self._decay = mu * self._decay + taken
        # d + mu m: m already holds d.
        step, decay = _added(velocity.like(), mu, weights, updates), taken + mu * self._decay
        # One rounding error of memory stays, for the same reason as below.
        most = (1 - np.finfo(np.float32).eps) / decay if decay else np.inf
        rate = min(self.outer_rate, most)
        parameters.combine(1 - rate * decay, rate, step)

    def state(self) -> dict:
        """The velocity."""
        velocity = {f"velocity_{k}": v for k, v in self._velocity.content().items()}
        return {"decay": self._decay, **velocity}


def _added(old: Parameters, mu: float, weights, updates: list[Update]) -> Parameters:
    """The statistics of the updates, and `mu` times those of `old`, which is changed in place."""
    if mu == 0:  # a scale of 0 is no number to divide by
        old = old.like(empty=True)
    else:
        old.combine(mu)
    for weight, update in zip(weights, updates, strict=True):
        old.add(update, weight)
    return old
