"""The paper's aggregation: add up the displacements of M workers (Alg. 1, line 4; eq. 4).

``v <- v + gamma sum_b (u_b - w_b)``.  A displacement holds the decay of the parameters that the
worker had *read*.  The step is convex in natural parameters only where nobody has changed them
meanwhile, and gamma M is at most 1.  Else this takes away too much or too little, and with enough
staleness the recursion is unstable: around a fixed point it is ``x_{t+1} = x_t - a x_{t-D'}`` with
``a = gamma sum_b (1 - decay_b)``, stable if and only if ``a < 2 cos(D' pi / (2 D' + 1))``.  Well
below that bound it already overshoots: what is taken away from a word that no worker meets for a
while may be more than is there.  The master projects such parameters back to their prior where the
model has one to project to (``Model.nonnegative``).
"""

from __future__ import annotations

import logging
import math

from dpsvi.base import Parameters, Star, Update
from dpsvi.errors import UnstableError, check_number

log = logging.getLogger(__name__)
_REDUCED_TO = 0.5  # of the largest stable rate: close to it oscillations hardly die down


def stable_below(staleness: int) -> float:
    """Largest product of rate and decay that is stable at this staleness D'.

    Examples
    --------
    >>> [round(stable_below(d), 3) for d in range(5)]
    [2.0, 1.0, 0.618, 0.445, 0.347]
    """
    return 2 * math.cos(staleness * math.pi / (2 * staleness + 1))


class Strategy(Star):
    """See :class:`dpsvi.base.Star`.

    Parameters
    ----------
    rate : float, > 0
        gamma; 1 adds the displacements, 1/M averages them.
    strict : bool
        Raise :class:`~dpsvi.errors.UnstableError` instead of reducing an unstable rate.
    """

    needs_log = True

    def __init__(self, rate: float = 1.0, strict: bool = False):
        check_number("global_rate", rate, low=0, open_low=True)
        self.rate, self.strict, self.reduced = rate, strict, 0

    def __call__(self, parameters: Parameters, updates: list[Update]) -> None:
        """Apply the displacements of all updates."""
        rate = self._stable_rate(parameters, updates)
        for update in updates:
            parameters.retract(update, rate)
            parameters.add(update, rate)

    def _stable_rate(self, parameters, updates):
        staleness = max(parameters.version - u.reading.version for u in updates)
        blind = sum(1 - u.decay for u in updates)
        if self.rate * blind < stable_below(staleness):
            return self.rate
        limit = stable_below(staleness) / blind
        said = (
            f"displacements of {len(updates)} updates of staleness {staleness}: "
            f"global_rate {self.rate:g} is too large, less than {limit:.3g} is stable"
        )
        if self.strict:
            raise UnstableError(f"{said}; use fewer local steps or a smaller rate")
        if not self.reduced:
            log.warning("%s; it is reduced to half of that where this happens", said)
        self.reduced += 1
        return _REDUCED_TO * limit
