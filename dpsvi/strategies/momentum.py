"""Heavy-ball momentum at the master: earlier updates go on moving the parameters.

A global step of M updates is, with momentum mu, rate gamma and the two parts of a velocity
(:mod:`dpsvi.strategies._velocity`)::

    c <- mu c + sum_b (1 - a_b)        B <- mu B + sum_b b_b
    v <- v + min(gamma, 1 / c) (B - c (v - prior))

As min(gamma, 1 / c) c is at most 1, the step is convex: v becomes a mixture of itself and of
``prior + B / c``, and stays a valid natural parameter.

Without decay (a = 1, as for weights that follow a gradient) this is the heavy ball on the
displacements: ``V <- mu V + sum_b (u_b - w_b)``, ``v <- v + gamma V``.

In the long run an update counts ``gamma / (1 - mu)``: a gamma of ``1 - mu`` is as fast as no
momentum.  A global step costs by the size of the matrix, not by the rows of the updates.
"""

from __future__ import annotations

from dpsvi.base import Parameters, Star, Update
from dpsvi.errors import check_number
from dpsvi.strategies._velocity import Velocity, check_momentum


class Strategy(Star):
    """See :class:`dpsvi.base.Star`.

    Parameters
    ----------
    rate : float, in (0, 1]
        gamma.
    momentum : float, in [0, 1)
        mu; 0 merges as without a velocity.
    """

    incremental = False  # a change would be added several times
    as_sent = False

    def __init__(self, rate: float = 1.0, momentum: float = 0.9):
        check_number("global_rate of the momentum strategy", rate, low=0, high=1, open_low=True)
        check_momentum(momentum)
        self.rate, self.momentum = rate, momentum
        self.as_sent = momentum == 0
        self._velocity: Velocity | None = None

    def begin(self, parameters: Parameters, n_workers: int, state: dict | None) -> None:
        """Start with no velocity, or with that of a checkpoint."""
        if self.momentum:
            self._velocity = Velocity.begin(parameters, state)

    def __call__(self, parameters: Parameters, updates: list[Update]) -> None:
        """Apply all updates as one step of the heavy ball."""
        if self._velocity is None:
            for update in updates:
                parameters.decay(update, self.rate)
                parameters.add(update, self.rate)
            return
        self._velocity.add(self.momentum, updates, [1.0] * len(updates))
        self._velocity.move(parameters, self.rate)

    def state(self) -> dict:
        """The velocity."""
        return {} if self._velocity is None else self._velocity.content()
