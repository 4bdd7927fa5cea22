"""DiLoCo (Douillard et al. 2023): rounds of local steps, and Nesterov momentum between them.

Rounds are those of :mod:`dpsvi.strategies.local_sgd`.  The mean displacement of a round is the
gradient of an outer step with Nesterov's momentum, whose rate is eta and momentum mu::

    d <- sum_i n_i (u_i - v) / sum_i n_i        m <- mu m + d        v <- v + eta (d + mu m)

The two parts of m are kept apart (:mod:`dpsvi.strategies._velocity`), and eta is reduced where more
than all of v would be taken away: so the outer step is convex, as the mean of a round is, and v
stays a valid natural parameter.

In the long run a round counts ``eta / (1 - mu)`` times: the authors' 0.7 and 0.9 want inner steps
that are small.
"""

from __future__ import annotations

from dpsvi.base import Parameters, Update
from dpsvi.errors import check_number
from dpsvi.strategies import local_sgd
from dpsvi.strategies._velocity import Velocity, check_momentum


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
        check_momentum(momentum)
        super().__init__()
        self.outer_rate, self.momentum = outer_rate, momentum

    def begin(self, parameters: Parameters, n_workers: int, state: dict | None) -> None:
        """Start with no velocity, or with that of a checkpoint."""
        self._velocity = Velocity.begin(parameters, state)

    def __call__(self, parameters: Parameters, updates: list[Update]) -> None:
        """One outer step."""
        weights = local_sgd.shares_of(updates)
        step = self._velocity.nesterov(self.momentum, updates, weights)
        step.move(parameters, self.outer_rate)

    def state(self) -> dict:
        """The velocity."""
        return self._velocity.content()
