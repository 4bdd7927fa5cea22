"""What DPSGD minimises: the mean over items of f_i(x), known by its gradient.

A *compiled* objective says how a batch of items changes the rows of its parameters, as any
:class:`dpsvi.base.Model` does; a Python callable becomes an objective by :func:`from_callable`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpsvi.base import Items, Model
from dpsvi.kernels.jit import as_items


def _nothing(longest: int) -> int:
    return 0


@dataclass(frozen=True)
class Objective:
    """The mean over items of f_i(x), of which the gradient of a batch can be computed.

    Parameters
    ----------
    name : str
        For error messages.
    shape : (int, int)
        Rows and columns of x.
    items : Items
        The data; the type of their values is that of x, float32 or float64.  Items with an index
        change the rows of x that it names and the last `common_rows`, others may change any row.
    local : callable(shared, scale, hyper, items, batch, work) -> int
        For the items numbered in `batch`, with ``x = scale * shared.rows``, it fills
        ``work.touched[:n]`` with the rows that change and adds to ``work.stats[:n]``, which is 0
        on entry, *minus the sum* of the gradients; returns n.  A plain function that numba can
        compile in ``nopython`` mode.
    hyper : array of float
        What `local` needs besides; it finds it in ``hyper[1:]``.  ``hyper[0]`` is the weight decay
        of the optimiser, for objectives that exempt a row from it: they add back
        ``len(batch) * hyper[0] * x`` there.
    scratch : callable(longest_item) -> int
        Length of ``work.scratch``, numbers of the type of x for `local`.
    common_rows : int
        Rows, the last ones, that every batch changes.
    compiled : bool
        False: `local` is called as it is, by threads that share the interpreter.
    """

    name: str
    shape: tuple[int, int]
    items: Items
    local: Callable[..., int]
    hyper: tuple[float, ...] = ()
    scratch: Callable[[int], int] = _nothing
    common_rows: int = 0
    compiled: bool = True

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.items.offsets) - 1

    def model(self, weight_decay: float) -> Model:
        """The objective with an L2 penalty, as the engines know it."""
        return Model(
            name=self.name, shape=self.shape, prior=np.zeros(1, self.items.value.dtype),
            hyper=np.array([weight_decay, *self.hyper], np.float64), local=self.local,
            scratch=self.scratch, common_rows=self.common_rows, learner="gradient",
            weight_decay=weight_decay, compiled=self.compiled,
        )  # fmt: skip


def from_callable(gradient: Callable, x0: np.ndarray, n_items: int) -> Objective:
    """The objective of a Python callable.

    Parameters
    ----------
    gradient : callable(x, items) -> array of the shape of x
        Mean gradient of the items numbered in `items`, an int array; x is a copy.
    x0 : float array
        Its shape and type are those of x.
    n_items : int, >= 1
        Items are numbered from 0.
    """
    name = getattr(gradient, "__name__", type(gradient).__name__)

    def local(shared, scale, hyper, items, batch, work):
        x = (shared.rows[0] * shared.rows.dtype.type(scale)).reshape(x0.shape)
        found = np.asarray(gradient(x, batch.astype(np.intp)))
        if found.shape != x0.shape:
            raise ValueError(
                f"gradient must return an array of shape {x0.shape}, got {found.shape}"
            )
        work.touched[0] = 0
        np.multiply(found.reshape(-1), -len(batch), out=work.stats[0], casting="same_kind")
        return 1

    items = as_items(np.zeros(n_items + 1), [], [], x0.dtype)
    return Objective(name, (1, x0.size), items, local, compiled=False)
