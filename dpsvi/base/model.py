"""What a model is, and the data and memory that its local step sees."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class Items(NamedTuple):
    """The data as the kernels see it: ragged rows, read-only, possibly memory-mapped.

    Item ``i`` owns positions ``offsets[i]:offsets[i + 1]`` of `index` and `value`.
    """

    offsets: np.ndarray  # int64, (n_items + 1,)
    index: np.ndarray  # int32, (n_values,); empty when values are dense
    value: np.ndarray  # real, (n_values,)


class Shared(NamedTuple):
    """What every thread of a worker reads and writes, without locks."""

    rows: np.ndarray  # real, (n_rows, n_columns): lam = prior + scale * rows
    totals: np.ndarray  # float64, (n_threads, n_columns): what each thread added, over all rows
    item_memory: np.ndarray  # real, (n_items or 0, m): local parameters kept between visits
    value_memory: np.ndarray  # uint16, (n_values or 0, m): local parameters of every value
    thread_memory: np.ndarray  # float64, (n_threads, m): what each thread keeps between its steps
    optimizer: np.ndarray  # real, (m * n_rows, n_columns): what an optimiser knows of the rows


class ThreadMemory(NamedTuple):
    """Private memory of one thread, allocated once per fit."""

    totals: np.ndarray  # float64, (n_columns,): column sums of `rows`, summed over threads
    slot: np.ndarray  # int32, (n_rows,): row -> position in `touched`, -1 outside a step
    touched: np.ndarray  # int32, (n_slots,): the rows this step read
    expected: np.ndarray  # real, (n_slots, n_columns): expectations under q of those rows
    stats: np.ndarray  # real, (n_slots, n_columns): their expected statistics; 0 on entry
    scratch: np.ndarray  # real, (n_scratch,): whatever the model needs
    ids: np.ndarray  # int32, (longest item,)
    tally: np.ndarray  # float64, (n_columns,): sums that a local step makes for itself
    columns: np.ndarray  # int32, (n_slots, m): which of a row `stats` are of; without rows: all
    kept: np.ndarray  # float64, (m,): the thread's own row of `Shared.thread_memory`


class Model(NamedTuple):
    """One conjugate exponential-family model, ready to fit.

    Parameters
    ----------
    name : str
    shape : (int, int)
        Rows and columns of the parameter matrix.
    prior : real array broadcastable to `shape`
        Natural parameter of the prior, zeta in (52).
    hyper : float64 array
        Everything `local` needs to know besides the parameters.
    local : callable(shared, scale, hyper, items, batch, work) -> int
        The local step (44), a plain function that numba can compile in ``nopython`` mode.  For
        the items listed in `batch` it fills ``work.touched[:n]`` and ``work.stats[:n]`` with the
        rows that have statistics and returns n.  It leaves ``work.slot`` all -1.
    scratch : callable(longest_item) -> int
        Length of ``work.scratch``.
    init : callable(rng) -> real array of `shape`, or None
        First value of ``lam - prior``, where that does not depend on the data.
    item_memory, value_memory : int
        Columns of the memories in :class:`Shared`; 0 for none.  An `item_memory` that has no rows
        is a fit that cannot keep any: the local step must do without.
    thread_memory : int
        Numbers that each thread keeps from step to step, 0 at first, such as the games that it
        plays.  Workers and peers begin with memories of their own, which checkpoints do not
        hold.
    optimizer : int
        Matrices of `shape` that an optimiser keeps, 0 at first, for all threads of a worker, such
        as mean squares of gradients.  They are kept like the memory of threads.
    few_columns : int
        Columns of a row that have statistics in one item; 0: all.  Then ``work.stats[i]`` belongs
        to the columns ``work.columns[i]`` of row ``work.touched[i]``, and a row may be there as
        often as a batch has values: a step costs by these columns, not by all.
        ``work.stats`` need not be 0 on entry.
    common_rows : int
        Rows, the last ones, that every step reads and changes whatever its items are.  Where items
        have an index, a step reads and changes no other rows than these and those that its items'
        index names: workers are sent no others.
    learner : str
        Module of :mod:`dpsvi.learners` that says how statistics change the parameters: a fresh
        estimate to be mixed in at the schedule's rate (``"natural"``), changes to be summed as
        they are, or minus a gradient.
    weight_decay : float, >= 0
        L2 penalty of a learner of gradients; of no use to others.
    compiled : bool
        False when `local` is no function for numba but any Python callable: threads that run it
        share the interpreter.
    used_columns : int or None
        Columns that have a meaning, the first ones; those behind are padding, whose statistics are
        0, and are not sent.  None: all.
    nonnegative : bool
        True when no expected statistic can be negative, such as counts: then lam is at least the
        prior in every entry, and ``max(lam, prior)`` projects what an asynchronous update made
        less (Alg. 4, line 8).  Sums of observations have any sign, and what their parameters may
        be depends on others of them: no projection entry by entry would be right.
    """

    name: str
    shape: tuple[int, int]
    prior: np.ndarray
    hyper: np.ndarray
    local: Callable[..., int]
    scratch: Callable[[int], int]
    init: Callable[[np.random.Generator], np.ndarray] | None = None
    item_memory: int = 0
    value_memory: int = 0
    thread_memory: int = 0
    optimizer: int = 0
    few_columns: int = 0
    common_rows: int = 0
    learner: str = "natural"
    weight_decay: float = 0.0
    compiled: bool = True
    nonnegative: bool = False
    used_columns: int | None = None

    @property
    def sent_columns(self) -> int:
        """Columns of the rows in a message."""
        return self.shape[1] if self.used_columns is None else self.used_columns

    @property
    def real(self) -> np.dtype:
        """Type of the parameters, float32 or float64."""
        return self.prior.dtype
