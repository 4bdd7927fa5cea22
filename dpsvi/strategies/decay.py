"""Decay and add: a natural-gradient step taken apart, so that nothing in it can be stale.

B~ steps of (52) are ``u - prior = a (w - prior) + b``: a decay ``a``, known exactly, and additive
statistics ``b``.  The master decays the parameters that are there *now* and adds b::

    v - prior <- (1 - gamma (1 - a)) (v - prior) + gamma b

Both terms are convex for gamma <= 1, so v stays a valid natural parameter at any staleness; only b
was computed at older parameters.  A worker sends the touched rows and one number, as for the
displacement, and the master needs no log of what others did meanwhile.
"""

from __future__ import annotations

from dpsvi.base import Parameters, Star, Update
from dpsvi.errors import check_number


class Strategy(Star):
    """See :class:`dpsvi.base.Star`.

    Parameters
    ----------
    rate : float, in (0, 1]
        gamma; 1 makes every update count as if it had been made alone, 1/M averages M of them.
    strict : bool
        Of no effect: there is no unstable rate.
    """

    def __init__(self, rate: float = 1.0, strict: bool = False):
        check_number("global_rate of the decay strategy", rate, low=0, high=1, open_low=True)
        self.rate = rate

    def __call__(self, parameters: Parameters, updates: list[Update]) -> None:
        """Apply the updates one after the other; their order does not matter to first order."""
        for update in updates:
            parameters.decay(update, self.rate)
            parameters.add(update, self.rate)
