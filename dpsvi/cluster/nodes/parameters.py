"""The master's parameters: what a worker reads of them, how an update changes them.

They are a :class:`dpsvi.training.state.State`, ``v = prior + scale * rows``, so that decay is one
number here too: reading and adding cost by the rows concerned, never by the size of the matrix.

A worker gets rows and scale as they are.  Where it is alone, the rows it ended at *are* the new
rows, bit for bit, and one worker is serial SVI exactly.

Only two things cost by the size of the matrix.  A stale decay that takes away about all that is
left of rows which nobody adds to: these rows end at the prior, where no common factor brings them.
And a reading of which the decays since have left next to nothing: the difference between what there
is and what was added since would be rounding errors, so what had been read is kept.
"""

from __future__ import annotations

import math

import numpy as np

from dpsvi.base import Reading, Update
from dpsvi.cluster.nodes import kernels
from dpsvi.cluster.nodes.change_log import Change, ChangeLog, total, union
from dpsvi.training.state import State

_BLOCK = 1024  # rows, so that what is made in between stays in the cache
_TINY_SCALE = 1e-12  # rows of a batch of updates in between may not outgrow float32
# No retraction leaves a smaller share of the scale: the rest of the rows is divided by it, and so
# are their rounding errors.
_LEAST_LEFT = 2.0**-6
# A reading is kept when less than this share of it is left: float32 has 24 bits for both it and
# what was added since.
_LEAST_KNOWN = 2.0**-10


class MasterParameters:
    """See :class:`dpsvi.base.Parameters`.

    Parameters
    ----------
    state : State
        Changed in place.
    log : bool
        Keep what each step added, as :meth:`retract` needs it, back to the oldest reading.
    project : bool
        Updates may leave the domain of a nonnegative model: bring them back after each step.

    Attributes
    ----------
    version : int
        Global steps so far.
    unit : float
        Logarithm of what the rows have been multiplied with so far.
    """

    def __init__(self, state: State, log: bool, project: bool = False):
        self.state, self.version = state, 0
        self._log = ChangeLog() if log else None
        self._added: list[np.ndarray] = []  # rows that this step has changed, to be projected
        self._project = project and state.model.nonnegative
        self._kept: dict[int, Change] = {}  # what was read long ago, by its clock
        self._folds: list[float] = []
        self.unit = 0.0
        self._one_total()

    @property
    def scale(self) -> float:
        """Current scale of ``v = prior + scale * rows``."""
        return self.state.scale

    @property
    def items(self) -> int:
        """Items visited so far."""
        return self.state.items

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
        clock = 0 if self._log is None else self._log.clock
        return Reading(self.version, clock, self.n_folds, self.scale, touched, self.totals.copy())

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
        since, so ``v - c (w - prior) = prior + (scale - c s) rows + c s L``: L is sparse.  If next
        to nothing, or less, would be left of the scale, or w was kept, the scale stays as it is,
        and c (w - prior) is taken from all rows.
        """
        reading = update.reading
        kept = reading.clock in self._kept
        since = [] if kept else self._log.since(reading.clock)
        if not (kept or since) and weight == 1 and self.scale == reading.scale:
            self.state.scale = update.scale
            return
        share = weight * (1 - update.decay)
        taken = share * self._scale_read(reading) / self.scale
        if kept or taken > 1 - _LEAST_LEFT:
            self._add_change(self._read(reading), -share / self.scale)
            return
        self.state.scale *= 1 - taken
        if since:
            self._add_change(total(since), taken / (1 - taken))

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
        if self._project:
            self._added.append(reading.touched)
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
            self._log.add(Change(reading.touched.copy(), delta, self.totals - old))

    def end_step(self) -> None:
        """Project onto the domain of the model what the updates of a global step have made."""
        step = [] if self._log is None else self._log.step
        if self._added:
            self._clip(union([*self._added, *(change.touched for change in step)]))
        self._added = []
        if self._log is not None:
            self._log.end_step()
        self.version += 1

    def like(self, empty: bool = False) -> MasterParameters:
        """See the protocol; without a log."""
        rows, totals = self.state.shared.rows, self.totals
        state = State.resume(self.state.model, np.zeros_like(rows) if empty else rows.copy(), 1)
        if not empty:
            state.scale, state.shared.totals[0] = self.scale, totals
        return MasterParameters(state, log=False, project=False)

    def combine(self, own: float, weight: float = 0.0, other: MasterParameters | None = None):
        """See the protocol."""
        if self.scale < _TINY_SCALE:
            self.renormalise()
        self.state.scale *= own
        if weight == 0:
            return
        factor = weight * other.scale / self.scale
        everything = np.arange(len(self.state.shared.rows), dtype=np.int32)
        kernels.add_scaled(self.state.shared.rows, everything, other.state.shared.rows, factor)
        self.totals[:] += factor * other.totals
        self.state.settle()
        if self._project and weight < 0:  # rounding errors may take away more than is there
            self._added.append(everything)

    def exchange(self, other: MasterParameters, share: float) -> None:
        """See the protocol."""
        self.renormalise()
        other.renormalise()
        mine, theirs = self.state.shared.rows, other.state.shared.rows
        for first in range(0, len(mine), _BLOCK):
            block = slice(first, first + _BLOCK)
            moved = mine.dtype.type(share) * (mine[block] - theirs[block])
            mine[block] -= moved
            theirs[block] += moved
        self.state.recount()
        other.state.recount()

    def content(self) -> dict:
        """See the protocol."""
        return {
            "rows": self.state.shared.rows, "totals": self.totals, "scale": self.scale,
        }  # fmt: skip

    def restore(self, content: dict) -> None:
        """See the protocol."""
        self.state.shared.rows[...] = content["rows"]
        self.state.shared.totals[0] = content["totals"]
        self.state.scale = float(content["scale"])

    def forget(self, readings) -> None:
        """Drop what none of these readings, all that are in use, needs any more."""
        if self._log is None:
            return
        kept = {}
        for reading in readings:
            if reading.clock in self._kept:
                kept[reading.clock] = self._kept[reading.clock]
            elif self.scale < _LEAST_KNOWN * self._scale_read(reading):
                kept[reading.clock] = self._read(reading)
        self._kept = kept
        self._log.forget(reading for reading in readings if reading.clock not in kept)

    def fold_if_small(self, at_once: bool = False) -> None:
        """Fold the scale into the rows before they outgrow their number type."""
        if at_once or self.state.small:
            self.renormalise()

    def renormalise(self) -> None:
        """Fold the scale into the rows; costs by the size of the matrix."""
        scale, totals = self.scale, self.totals * self.scale
        self.state.renormalise()
        self._one_total()
        self._folds.append(scale)
        self.unit += math.log(scale)
        if self._log is not None:
            # The totals have just been counted again.  What they were off by is off in those that
            # were read before, too; taken from all of them alike it would grow from fold to fold.
            self._log.fold(scale, self.totals - totals, self.state.shared.rows[:0])

    def _add_change(self, change, factor):
        change.delta[...] *= change.delta.dtype.type(factor)
        change.totals[...] *= factor
        kernels.add_scaled(self.state.shared.rows, change.touched, change.delta, 1.0)
        self.totals[:] += change.totals
        self._log.add(change)

    def _scale_read(self, reading):
        """The scale that was read, for rows as they are now."""
        return reading.scale / math.prod(self._folds[reading.folds :])

    def _read(self, reading):
        """``w - prior = s (rows - L)``, L the sum of the changes since, as a change of all rows."""
        if reading.clock in self._kept:
            kept = self._kept[reading.clock]
            return Change(kept.touched, kept.delta.copy(), kept.totals.copy())
        rows, totals = self.state.shared.rows.copy(), self.totals.copy()
        for change in self._log.since(reading.clock):
            kernels.add_scaled(rows, change.touched, change.delta, -1.0)
            totals -= change.totals
        scale = self._scale_read(reading)
        rows *= rows.dtype.type(scale)
        return Change(np.arange(len(rows), dtype=np.int32), rows, totals * scale)

    def _clip(self, touched):
        """``v <- max(v, prior)`` in the rows `touched`; the scale is positive."""
        rows = self.state.shared.rows
        touched = touched[kernels.any_below_zero(rows, touched)]
        if not len(touched):
            return
        before, old = rows[touched], self.totals.copy()
        if len(rows) == 1:
            np.maximum(self.totals, 0, out=self.totals)
            self.state.settle()
        else:
            rows[touched] = np.maximum(before, 0)
        delta = rows[touched] - before
        if len(rows) > 1:
            self.totals[:] += delta.sum(axis=0, dtype=np.float64)
        if self._log is not None:
            self._log.add(Change(touched, delta, self.totals - old))

    def _one_total(self):
        totals = self.state.shared.totals
        totals[0] = totals.sum(axis=0)
        totals[1:] = 0
