"""DOWNPOUR (Dean et al. 2012): each displacement is added as it comes, whole.

A worker reads ``w = v``, makes its local steps, which lead to u, and the master adds what came of
them to what others have made of v meanwhile; then the worker reads again::

    v <- v + (u - w)

This is :mod:`dpsvi.strategies.displacement` with gamma = M = 1: convex in natural parameters only
where nobody has changed v meanwhile, else projected, where the model can be, and as stable: where
an update is too stale for a gamma of 1 it is added in part, or refused.
"""

from __future__ import annotations

from typing import ClassVar

from dpsvi.strategies import displacement


class Strategy(displacement.Strategy):
    """See :class:`dpsvi.base.Star`.

    Parameters
    ----------
    strict : bool
        Raise :class:`~dpsvi.errors.UnstableError` instead of adding a part.
    """

    refuses: ClassVar[dict[str, str]] = {
        "master_batch": "each displacement is added as it comes",
        "global_rate": "displacements are added whole",
    }

    def __init__(self, strict: bool = False):
        super().__init__(1.0, strict)
