"""The master's parameters: what a worker reads of them, how an update changes them.

They are a :class:`dpsvi.training.state.State`, ``v = prior + scale * rows``, so that decay is one
number here too: reading and adding cost by the rows concerned, never by the size of the matrix.

A worker gets rows and scale as they are.  Where it is alone, the rows it ended at *are* the new
rows, bit for bit, and one worker is serial SVI exactly.
"""

from __future__ import annotations

import math
from collections import deque
from typing import NamedTuple

import numpy as np

from dpsvi.base import Reading, Update
from dpsvi.cluster.nodes import kernels
from dpsvi.training.driver import SMALL_SCALE
from dpsvi.training.state import State

_TINY_SCALE = 1e-12  # rows of a batch of updates in between may not outgrow float32


class _Entry(NamedTuple):
    """What one change added to the rows."""

    touched: np.ndarray
    delta: np.ndarray
    totals: np.ndarray


class MasterParameters:
    """See :class:`dpsvi.base.Parameters`.

    Parameters
    ----------
    state : State
        Changed in place.
    log : bool
        Keep what each change added, as :meth:`retract` needs it, back to the oldest reading.

    Attributes
    ----------
    version : int
        Global steps so far.
    unit : float
        Logarithm of what the rows have been multiplied with so far.
    """

    def __init__(self, state: State, log: bool):
        self.state, self.version = state, 0
        self._log: deque[_Entry] | None = deque() if log else None
        self._logged = 0  # entries ever
        self._folds: list[float] = []
        self.unit = 0.0
        self._one_total()

    @property
    def scale(self) -> float:
        """Current scale of ``v = prior + scale * rows``."""
        return self.state.scale

    @property
    def totals(self) -> np.ndarray:
        """Column sums of the rows, float64, (n_columns,)."""
        return self.state.shared.totals[0]

    @property
    def n_folds(self) -> int:
        """How often all rows have been multiplied with the scale."""
        return len(self._folds)

    def read(self, touched: np.ndarray) -> Reading:
        """What it means to read the rows `touched` now."""
        return Reading(
            self.version, self._logged, self.n_folds, self.scale, touched, self.totals.copy()
        )

    def decay(self, update: Update, weight: float) -> None:
        """See the protocol."""
        if self.scale < _TINY_SCALE:
            self.renormalise()
        if weight == 1 and self.scale == update.reading.scale:
            self.state.scale = update.scale  # the same number without a rounding
        else:
            self.state.scale *= 1 - weight * (1 - update.decay)

    def retract(self, update: Update, weight: float) -> None:
        """See the protocol.

        ``w = prior + s (rows - L)``, with s the scale that was read and L what has been added
        since, so ``v - c (w - prior) = prior + (scale - c s) rows + c s L``: L is sparse.
        """
        reading = update.reading
        since = list(self._log)[len(self._log) - (self._logged - reading.clock) :]
        if not since and weight == 1 and self.scale == reading.scale:
            self.state.scale = update.scale
            return
        taken = weight * self.share(update) * self.scale
        self.state.scale -= taken
        if since:
            self._add_entry(_total(since), taken / self.scale)

    def share(self, update: Update) -> float:
        """See the protocol."""
        scale = update.reading.scale / math.prod(self._folds[update.reading.folds :])
        return (1 - update.decay) * scale / self.scale

    def add(self, update: Update, weight: float) -> None:
        """See the protocol."""
        reading, rows = update.reading, self.state.shared.rows
        factor = weight * update.scale / self.scale
        if update.end is not None:  # weight and factor are 1
            kernels.scatter(rows, reading.touched, update.end)
            self.totals[:] = update.totals
            self.state.settle()
            return
        if self._log is not None:
            before = rows[reading.touched]
        if update.change.dtype == np.uint16:
            kernels.merge_bfloat16(rows, reading.touched, update.change, factor)
        else:
            kernels.add_scaled(rows, reading.touched, update.change, factor)
        old = self.totals.copy()
        if factor == 1:
            self.totals[:] = update.totals + (old - reading.totals)
        else:
            self.totals[:] += factor * (update.totals - reading.totals)
        # A worker gives its single row what its totals know.  If ours did not, its next change
        # would hold the difference between the two, and stale changes (factor > 1) blow it up.
        self.state.settle()
        if self._log is not None:
            delta = rows[reading.touched] - before
            self._remember(_Entry(reading.touched.copy(), delta, self.totals - old))

    def forget(self, readings) -> None:
        """Drop what none of these readings, all that are in use, needs any more."""
        if self._log is not None:
            oldest = min((r.clock for r in readings), default=self._logged)
            while len(self._log) > self._logged - oldest:
                self._log.popleft()

    def fold_if_small(self, at_once: bool = False) -> None:
        """Fold the scale into the rows before they outgrow their number type."""
        if at_once or self.scale < SMALL_SCALE:
            self.renormalise()

    def renormalise(self) -> None:
        """Fold the scale into the rows; costs by the size of the matrix."""
        scale = self.scale
        self.state.renormalise()
        self._one_total()
        self._folds.append(scale)
        self.unit += math.log(scale)
        for entry in self._log or ():
            entry.delta[...] *= entry.delta.dtype.type(scale)
            entry.totals[...] *= scale

    def _add_entry(self, entry, factor):
        entry.delta[...] *= entry.delta.dtype.type(factor)
        entry.totals[...] *= factor
        kernels.add_scaled(self.state.shared.rows, entry.touched, entry.delta, 1.0)
        self.totals[:] += entry.totals
        self._remember(entry)

    def _remember(self, entry):
        self._log.append(entry)
        self._logged += 1

    def _one_total(self):
        totals = self.state.shared.totals
        totals[0] = totals.sum(axis=0)
        totals[1:] = 0


def _total(entries) -> _Entry:
    """The sum of several entries, as a new one."""
    touched = np.unique(np.concatenate([entry.touched for entry in entries]))
    first = entries[0]
    delta = np.zeros((len(touched), first.delta.shape[1]), first.delta.dtype)
    for entry in entries:
        places = np.searchsorted(touched, entry.touched).astype(np.int32)
        kernels.add_scaled(delta, places, entry.delta, 1.0)
    return _Entry(touched, delta, sum(entry.totals for entry in entries))
