"""Heavy-ball momentum at the master: earlier updates go on moving the parameters.

B~ local steps decay by ``a`` and add statistics ``b``, so a displacement is ``b - (1 - a) (v -
prior)``.  The velocity ``V = B - c (v - prior)`` keeps its two parts apart, and a global step of M
updates is, with momentum mu and rate gamma::

    c <- mu c + sum_b (1 - a_b)        B <- mu B + sum_b b_b
    v <- v + min(gamma, 1 / c) (B - c (v - prior))

Without decay (a = 1, as for weights that follow a gradient) this is the heavy ball on the
displacements: ``V <- mu V + sum_b (u_b - w_b)``, ``v <- v + gamma V``.  With decay the part ``c``
of V acts on the parameters that are there now, not on those of earlier steps.  So v becomes a
convex mixture of what it was and of ``prior + B / c``, a mean of targets that workers sent: it
stays a valid natural parameter, which a plain heavy ball, an extrapolation, does not.  For the same
reason gamma is reduced where ``gamma c`` is above 1: more than everything cannot be forgotten.

In the long run an update counts ``gamma / (1 - mu)``: a gamma of ``1 - mu`` is as fast as no
momentum.  A global step costs by the size of the matrix, not by the rows of the updates.
"""

from __future__ import annotations

import numpy as np

from dpsvi.base import Parameters, Star, Update
from dpsvi.errors import check_number


class Strategy(Star):
    """See :class:`dpsvi.base.Star`.

    Parameters
    ----------
    rate : float, in (0, 1]
        gamma.
    momentum : float, in [0, 1)
        mu; 0 merges as without a velocity.
    """

    bears = 3.0  # as without momentum: nothing in an update can be stale but its statistics
    incremental = False  # a change would be added several times
    as_sent = False

    def __init__(self, rate: float = 1.0, momentum: float = 0.9):
        check_number("global_rate of the momentum strategy", rate, low=0, high=1, open_low=True)
        check_number("momentum", momentum, low=0)
        if momentum >= 1:
            raise ValueError(f"momentum must be a number >= 0 and < 1, got {momentum!r}")
        self.rate, self.momentum = rate, momentum
        self.as_sent = momentum == 0
        self._velocity: Parameters | None = None
        self._decay = 0.0  # c

    def begin(self, parameters: Parameters, n_workers: int, state: dict | None) -> None:
        """Start with no velocity, or with that of a checkpoint."""
        if self.momentum == 0:
            return
        self._velocity = parameters.like(empty=True)
        if state:
            self._decay = float(state["decay"])
            self._velocity.restore({k: state[f"velocity_{k}"] for k in ("rows", "totals", "scale")})

    def __call__(self, parameters: Parameters, updates: list[Update]) -> None:
        """Apply all updates as one step of the heavy ball."""
        if self._velocity is None:
            for update in updates:
                parameters.decay(update, self.rate)
                parameters.add(update, self.rate)
            return
        self._velocity.combine(self.momentum)
        self._decay *= self.momentum
        for update in updates:
            self._velocity.add(update, 1.0)
            self._decay += 1 - update.decay
        # One rounding error of memory stays, as in the steps themselves: a scale of 0 is no number
        # to divide by.
        most = (1 - np.finfo(np.float32).eps) / self._decay if self._decay else np.inf
        rate = min(self.rate, most)
        parameters.combine(1 - rate * self._decay, rate, self._velocity)

    def state(self) -> dict:
        """The velocity."""
        if self._velocity is None:
            return {}
        velocity = {f"velocity_{k}": v for k, v in self._velocity.content().items()}
        return {"decay": self._decay, **velocity}
