"""The state of a fit: a row-sparse, lazily decayed parameter matrix and its clock.

A step of any learner (:mod:`dpsvi.learners`) decays every entry of lam, although a batch has
statistics for a few rows only.  Writing

    lam = prior + scale * rows,        scale_{t+1} = (1 - decay_t) scale_t,

the decay is one number and the rest a sum, ``rows += gain_t * stats`` on the touched rows.  Scales
and gains of all steps are tables made beforehand, so threads never write them and the update is a
pure sum, whose order does not matter.  A step therefore costs by the rows of its batch, never by
the size of the matrix.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsvi import learners
from dpsvi.base import Model, Shared
from dpsvi.kernels.memory import aligned, as_aligned

_SMALL_SCALE = 1e-6  # well before rows outgrow their number type


def own_memories(model: Model, n_threads: int) -> tuple[np.ndarray, np.ndarray]:
    """The last two of :class:`dpsvi.base.Shared`, empty: of each process, worker or peer."""
    n_rows, n_columns = model.shape
    return (
        np.zeros((n_threads, model.thread_memory)),
        aligned((model.optimizer * n_rows, n_columns), model.real),
    )


@dataclass
class State:
    """Parameters and clock of a fit: everything that must be kept to go on with it.

    Attributes
    ----------
    model : Model
    shared : Shared
        The arrays that threads write.
    scale : float
        Current ``scale`` of ``lam = prior + scale * rows``.
    step, items : int
        Steps done and items visited since the start.
    """

    model: Model
    shared: Shared
    scale: float = 1.0
    step: int = 0
    items: int = 0

    @classmethod
    def start(cls, model: Model, rng, n_threads: int, n_items: int = 0, n_values: int = 0):
        """First state of a fit: random rows from the model, empty memories."""
        rows = np.asarray(model.init(rng), dtype=model.real)
        return cls.resume(model, rows, n_threads, n_items, n_values)

    @classmethod
    def resume(cls, model, rows, n_threads, n_items=0, n_values=0, step=0, items=0):
        """A state that goes on from ``lam = prior + rows``, and may write `rows`."""
        shared = Shared(
            as_aligned(rows),
            np.zeros((n_threads, model.shape[1])),
            np.zeros((n_items if model.item_memory else 0, model.item_memory), model.real),
            np.zeros((n_values if model.value_memory else 0, model.value_memory), np.uint16),
            *own_memories(model, n_threads),
        )
        state = cls(model, shared, step=step, items=items)
        state.recount()
        return state

    @property
    def small(self) -> bool:
        """Whether the scale is so small that it must be folded into the rows before more steps."""
        return self.scale < _SMALL_SCALE

    @property
    def remembers(self) -> bool:
        """Whether anything is kept of items between their visits."""
        return bool(len(self.shared.item_memory) or len(self.shared.value_memory))

    @property
    def sums_memory(self) -> bool:
        """Whether statistics are changes of what is remembered: the parameters are its sum."""
        return self.remembers and learners.get(self.model.learner).COUNTS_ONCE

    def recount(self) -> None:
        """Recompute the column totals from the rows: ends the drift that lost writes cause."""
        totals = self.shared.totals
        totals[:] = 0
        totals[0] = self.shared.rows.sum(axis=0, dtype=np.float64)

    def renormalise(self) -> None:
        """Fold the scale into the rows.  Costs one pass over the matrix; no thread may run."""
        self.shared.rows[...] *= self.model.real.type(self.scale)
        self.scale = 1.0
        self.recount()

    def settle(self) -> None:
        """Give a single row what its totals know.

        All threads write the row of a one-row model, and lose some of their writes; each has its
        own totals, which lose none and are, over one row, the row itself.
        """
        if len(self.shared.rows) == 1:
            self.shared.rows[0] = self.shared.totals.sum(axis=0)

    def forget(self) -> None:
        """Drop what was kept of each item: it is of no use for others."""
        shared = self.shared
        self.shared = shared._replace(
            item_memory=shared.item_memory[:0].copy(), value_memory=shared.value_memory[:0].copy()
        )

    def learned(self) -> np.ndarray:
        """``lam - prior``, a new array of shape ``model.shape``."""
        rows, real = self.shared.rows, self.model.real
        if len(rows) == 1:  # see `settle`
            rows = self.shared.totals.sum(axis=0, keepdims=True).astype(real)
        return real.type(self.scale) * rows

    def natural(self) -> np.ndarray:
        """The natural parameters lam, a new array of shape ``model.shape``."""
        return self.model.prior + self.learned()
