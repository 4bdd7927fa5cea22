"""The contracts: what a model, an engine, a schedule, a strategy and an observer are.

Data flows one way::

    items --model.local--> statistics --svi step--> parameters --observer--> reports

* A **model** is maths only.  It turns a batch of items into expected sufficient statistics
  given the current parameters.  It never sees a thread, a rank or a learning rate.
* The **engine** decides where local steps run and who adds their statistics to the parameters.
  It never sees a topic or a mixture component.
* The **schedule** gives the step size of every step; the **strategy** says how parameters of
  several workers become one.  Neither knows the other three.

All parameters live in one matrix of natural parameters ``lam = prior + scale * rows``
(shape ``(n_rows, n_columns)``).  A row is the unit of sparse update, of message and of checkpoint:
for LDA a row is a word and a column a topic; a mixture, whose every point touches everything, is
one row.  See :mod:`dpsvi.svi` for why the matrix is kept in that scaled form.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

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


class Work(NamedTuple):
    """Private memory of one thread, allocated once per fit."""

    totals: np.ndarray  # float64, (n_columns,): column sums of `rows`, summed over threads
    slot: np.ndarray  # int32, (n_rows,): row -> position in `touched`, -1 outside a step
    touched: np.ndarray  # int32, (n_slots,): the rows this step read
    expected: np.ndarray  # real, (n_slots, n_columns): expectations under q of those rows
    stats: np.ndarray  # real, (n_slots, n_columns): their expected statistics; 0 on entry
    scratch: np.ndarray  # real, (n_scratch,): whatever the model needs
    ids: np.ndarray  # int32, (longest item,)
    tally: np.ndarray  # float64, (n_columns + 2,): model-defined sums over the items visited


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
    init : callable(rng) -> real array of `shape`
        First value of ``lam - prior``.
    local : callable(shared, scale, hyper, items, batch, work) -> int
        The local step (44), a plain function that numba can compile in ``nopython`` mode.  For
        the items listed in `batch` it fills ``work.touched[:n]`` and ``work.stats[:n]`` with the
        rows that have statistics and returns n.  It leaves ``work.slot`` all -1.
    scratch : callable(longest_item) -> int
        Length of ``work.scratch``.
    item_memory, value_memory : int
        Columns of the memories in :class:`Shared`; 0 for none.
    refine : callable(hyper, state, tally) -> None, or None
        Rare update of hyper-parameters from the tallies since the last call; in place.
    additive : bool
        True when statistics are *changes* to be summed as they are, instead of a fresh estimate
        to be mixed in at the schedule's rate (incremental inference with kept local parameters).
    """

    name: str
    shape: tuple[int, int]
    prior: np.ndarray
    hyper: np.ndarray
    init: Callable[[np.random.Generator], np.ndarray]
    local: Callable[..., int]
    scratch: Callable[[int], int]
    item_memory: int = 0
    value_memory: int = 0
    refine: Callable[..., None] | None = None
    additive: bool = False

    @property
    def real(self) -> np.dtype:
        """Type of the parameters, float32 or float64."""
        return self.prior.dtype


class Schedule(Protocol):
    """Step sizes: ``schedule(t)`` maps step numbers, from 0, to rates in (0, 1]."""

    def __call__(self, t: np.ndarray) -> np.ndarray:
        """Return the rates of steps `t`."""


class Update(NamedTuple):
    """What a worker pushes after its local steps: ``u = prior + decay (w - prior) + change``.

    u is where the worker ended, w the parameters it had read.  B~ steps of (52) have exactly this
    form, so the displacement ``u - w`` costs one number and the touched rows instead of a matrix.
    """

    decay: float  # product of (1 - rho) over the steps
    touched: np.ndarray  # int32, (n,): rows with statistics
    change: np.ndarray  # real, (n, n_columns)


class Strategy(Protocol):
    """How the master merges M updates into the global parameters (Alg. 1, line 4)."""

    def __call__(self, rows: np.ndarray, bases: list[np.ndarray], updates: list[Update]) -> None:
        """Change `rows` = v - prior in place.

        Parameters
        ----------
        rows : real array, (n_rows, n_columns)
            Global parameters less the prior.
        bases : list of M such arrays
            What the worker of each update had read; they differ from `rows` by staleness.
        updates : list of M updates
        """


class Event(NamedTuple):
    """What an observer learns at a boundary between segments; nothing in it may be written."""

    step: int  # steps done, from the start of the fit
    items: int  # items visited
    epoch: float  # passes over the data, may be fractional
    seconds: float  # training time, evaluation and compilation excluded
    rate: float  # step size of the last step
    state: Any  # dpsvi.svi.State


class Engine(Protocol):
    """Runs steps ``[0, n_steps)`` of a compiled task on its threads or ranks; blocks."""

    def __call__(self, task: Any, n_steps: int) -> None:
        """Return when all steps are done; raise what any of them raised."""
