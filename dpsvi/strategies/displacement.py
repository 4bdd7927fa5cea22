"""The paper's aggregation: add up the displacements of M workers (Alg. 1, line 4; eq. 4)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpsvi.base import Update


class Displacement(NamedTuple):
    """``v <- v + rate * sum_b (u_b - w_b)``.

    Parameters
    ----------
    rate : float, > 0
        gamma; 1 adds the displacements, 1/M averages them.
    """

    rate: float = 1.0

    def __call__(
        self, rows: np.ndarray, bases: list[np.ndarray], updates: list[Update]
    ) -> None:
        """See :class:`dpsvi.base.Strategy`.  The decay is that of the rows the worker had read."""
        real = rows.dtype.type
        for base, update in zip(bases, updates, strict=True):
            rows -= real(self.rate * (1.0 - update.decay)) * base
            rows[update.touched] += real(self.rate) * update.change
