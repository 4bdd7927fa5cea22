"""A velocity at the master: a running sum of updates, in which earlier ones count less and less.

Local steps decay by ``a`` and add statistics ``b``, so a displacement is ``b - (1 - a) (v -
prior)``.  The velocity ``B - c (v - prior)`` keeps its two parts apart::

    c <- mu c + sum_b weight_b (1 - a_b)        B <- mu B + sum_b weight_b b_b

The part c acts on the parameters that are there when it is applied, not on those of earlier steps.
So v becomes a convex mixture of what it was and of ``prior + B / c``, a mean of targets that
workers sent: it stays a valid natural parameter, which a plain heavy ball, an extrapolation, does
not.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dpsvi.base import Parameters, Update
from dpsvi.errors import check_number


def check_momentum(mu) -> None:
    """Raise ValueError or TypeError unless `mu` is in [0, 1)."""
    check_number("momentum", mu, low=0)
    if mu >= 1:
        raise ValueError(f"momentum must be a number >= 0 and < 1, got {mu!r}")


class Velocity:
    """See the module.

    Parameters
    ----------
    statistics : Parameters
        B; changed in place.
    decay : float
        c.
    """

    def __init__(self, statistics: Parameters, decay: float = 0.0):
        self.statistics, self.decay = statistics, decay

    @classmethod
    def begin(cls, parameters: Parameters, state: dict | None) -> Velocity:
        """One of 0 for `parameters`, or what :meth:`content` gave for a checkpoint."""
        self = cls(parameters.like(empty=True))
        if state:
            self.decay = float(state["decay"])
            self.statistics.restore(
                {name: state[f"velocity_{name}"] for name in ("rows", "totals", "scale")}
            )
        return self

    def add(self, mu: float, updates: list[Update], weights: Iterable[float]) -> None:
        """One step of c and B."""
        if mu == 0:  # a scale of 0 is no number to divide by
            self.statistics = self.statistics.like(empty=True)
        else:
            self.statistics.combine(mu)
        self.decay *= mu
        for weight, update in zip(weights, updates, strict=True):
            self.statistics.add(update, weight)
            self.decay += weight * (1 - update.decay)

    def nesterov(self, mu: float, updates: list[Update], weights: Iterable[float]) -> Velocity:
        """Add `updates`; the step ``d + mu m`` of Nesterov, of which m already holds d."""
        self.add(mu, updates, weights)
        step = Velocity(self.statistics.like(), self.decay)
        step.add(mu, updates, weights)
        return step

    def move(self, parameters: Parameters, rate: float) -> None:
        """``v <- v + min(rate, 1 / c) (B - c (v - prior))``: no more than all can be forgotten."""
        # One rounding error of memory stays: a scale of 0 is no number to divide by.
        most = (1 - float(np.finfo(np.float32).eps)) / self.decay if self.decay else np.inf
        rate = min(rate, most)
        parameters.combine(1 - rate * self.decay, rate, self.statistics)

    def content(self) -> dict:
        """What :meth:`begin` needs: arrays and numbers by name."""
        statistics = {f"velocity_{k}": v for k, v in self.statistics.content().items()}
        return {"decay": self.decay, **statistics}
