"""From rows and lengths to items: whole sequences, or the buffered windows of long ones.

Foti et al. (2014) draw windows of a chain at random places and have to scale transitions and
emissions apart, since a window of L steps holds L - 1 transitions.  Here windows *tile* a sequence
and own the transition into their first step, which their buffer has the other end of.  So each
step and each transition counts once, N/S is all the scaling there is, the ends of the chain count
like its middle, and one chain may as well be many.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpsvi.base import Items
from dpsvi.models.hmm.chunk import BEGINS, INSIDE
from dpsvi.training.items import count, dense_items


def holds_sequences(X: list | tuple) -> bool:
    """Whether X holds sequences instead of steps, or rows of several lengths."""
    try:
        return len(np.shape(X)) > 2
    except ValueError:  # it is no array
        return True


def offsets_of(lengths, n_rows: int) -> np.ndarray:
    """Where each sequence begins among the rows, and the end; int64, (n_sequences + 1,).

    Raises
    ------
    ValueError
        `lengths` are not integers of at least 1 that sum to `n_rows`.
    """
    if lengths is None:
        return np.array([0, n_rows])
    given = np.asarray(lengths)
    whole = given.ndim == 1 and given.size and np.issubdtype(given.dtype, np.integer)
    # A sum may wrap around: it is that of the lengths only if none is larger than it is to be.
    if not whole or given.min() < 1 or given.max() > n_rows or given.sum() != n_rows:
        raise ValueError(
            f"lengths must be integers >= 1 that sum to the {n_rows} rows of X, got {lengths!r}"
        )
    return np.concatenate([[0], np.cumsum(given, dtype=np.int64)])


def windows(X, offsets, window: int, buffer: int) -> Items:
    """Windows of sequences with a buffer on both sides, every step preceded by its mark.

    Parameters
    ----------
    X : float array, (n, D)
    offsets : int array, (n_sequences + 1,)
    window : int, >= 1
        Most steps whose statistics count; those of one sequence are cut as evenly as can be.
    buffer : int, >= 1
        Steps before and after them that only the messages see, as far as the sequence goes.
    """
    starts, stops, lows, highs = [], [], [], []
    for begin, end in zip(offsets[:-1], offsets[1:], strict=True):
        n_windows = -(-(end - begin) // window)
        cuts = begin + np.arange(n_windows + 1) * (end - begin) // n_windows
        starts.append(cuts[:-1])
        stops.append(cuts[1:])
        lows.append(np.maximum(cuts[:-1] - buffer, begin))
        highs.append(np.minimum(cuts[1:] + buffer, end))
    starts, stops, lows, highs = map(np.concatenate, (starts, stops, lows, highs))
    places = np.concatenate([[0], np.cumsum(highs - lows)])
    rows = np.arange(places[-1]) + np.repeat(lows - places[:-1], highs - lows)
    marked = np.empty((len(rows), X.shape[1] + 1))
    marked[:, 1:] = X[rows]
    inside = (rows >= np.repeat(starts, highs - lows)) & (rows < np.repeat(stops, highs - lows))
    marked[:, 0] = INSIDE * inside + BEGINS * np.isin(rows, offsets[:-1])
    return dense_items(marked, places)


class Steps(NamedTuple):
    """The steps of some items, for looking at them before the fit."""

    X: np.ndarray  # (n, D), buffers too
    counts: np.ndarray  # bool, (n,): not of a buffer
    offsets: np.ndarray  # (n_items + 1,)
    n_begun: int  # sequences that begin in them

    @classmethod
    def of(cls, items: Items, n_features: int, marked: bool) -> Steps:
        """All steps of `items`; X is a view."""
        rows = items.value.reshape(-1, n_features + marked)
        offsets = items.offsets // (n_features + marked)
        if not marked:
            return cls(rows, np.ones(len(rows), bool), offsets, count(items))
        mark = rows[:, 0].astype(np.int8)
        return cls(rows[:, 1:], (mark & INSIDE) > 0, offsets, int((mark >= BEGINS + INSIDE).sum()))

    def sample(self, size: int, rng):
        """Numbers of at most `size` steps, ascending, and of those whose item goes on after them.

        Returns
        -------
        steps : int array, (n,)
        goes_on : bool array, (n,)
        """
        steps = np.flatnonzero(self.counts)
        if len(steps) > size:
            steps = np.sort(rng.choice(steps, size, replace=False))
        last = self.offsets[np.searchsorted(self.offsets, steps, side="right")] - 1
        return steps, steps < last
