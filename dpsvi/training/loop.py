"""The compiled loop of Alg. 2 and 4: take a step number, run the local step, add. No locks.

Every thread of every engine runs :func:`_run_steps`, compiled once for all models.  It holds no
GIL and takes no lock; the only synchronisation is the atomic counter that hands out step numbers.
A local step that numba cannot compile, any Python callable, is run by :class:`Loop`, whose threads
share the parameters in the same way.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable
from functools import cache

import numba
import numpy as np
from numba import types

from dpsvi.errors import ContractError
from dpsvi.kernels.jit import FLAGS, abi, empty_arguments, fetch_add, kernel, prefetch

RUNNING, STOP, DIVERGED, UNSOUND = 0, 1, 2, 3
_BLOCK = 8


def _run_steps(
    local,
    shared,
    hyper,
    items,
    order,
    batch_size,
    scales,
    gains,
    n_steps,
    counter,
    stop,
    thread,
    work,
):
    rows, totals = shared.rows, shared.totals
    n_columns = rows.shape[1]
    done = 0
    while stop[0] == RUNNING:
        t = fetch_add(counter, 1)
        if t >= n_steps:
            break
        lo = t * batch_size
        batch = order[lo : min(lo + batch_size, order.shape[0])]

        # RACE: other threads add to their rows of `totals` meanwhile.  Each entry is written by
        # one thread only, so nothing is lost; a sum may miss what is being added right now.
        for k in range(n_columns):
            work.totals[k] = 0.0
        for j in range(totals.shape[0]):
            for k in range(n_columns):
                work.totals[k] += totals[j, k]

        n = local(shared, scales[t], hyper, items, batch, work)
        if not is_sound(work, n, rows.shape[0]):
            stop[0] = UNSOUND
            break

        own = totals[thread]
        add_statistics(rows, work, n, gains[t], own)
        check = 0.0
        for k in range(n_columns):
            check += own[k]
        if not np.isfinite(check):
            stop[0] = DIVERGED
        done += 1
    return done


@kernel
def is_sound(work, n, n_rows):
    """Whether the first n statistics of `work` are of rows and columns that there are.

    Who writes a local step may err; what is added below would be written anywhere in memory.
    """
    if n < 0 or n > work.touched.shape[0]:
        return False
    wrong = np.int32(0)  # below 0 once one of the numbers, or what is left to the last one, is
    last = np.int32(n_rows - 1)
    for i in range(n):
        wrong |= work.touched[i] | np.int32(last - work.touched[i])
    last = np.int32(work.totals.shape[0] - 1)
    for i in range(min(n, work.columns.shape[0])):
        columns = work.columns[i]
        for j in range(columns.shape[0]):
            wrong |= columns[j] | np.int32(last - columns[j])
    return wrong >= 0


@kernel
def add_rows(rows, touched, stats, gain, total):
    """``rows[touched] += gain * stats``, ``total += gain * stats.sum(0)``, ``stats = 0``.

    In one pass, while a row of statistics is in the cache.  `total` is kept in float64; the sum
    of eight rows goes into it at a time.
    """
    n, n_columns = touched.shape[0], total.shape[0]
    gain = stats.dtype.type(gain)
    zero = stats.dtype.type(0)
    block = np.empty(n_columns, stats.dtype)
    for first in range(0, n, _BLOCK):
        last = min(first + _BLOCK, n)
        for k in range(n_columns):
            block[k] = zero
        for i in range(first, last):
            if i + _BLOCK < n:
                prefetch(rows, np.int64(touched[i + _BLOCK]))
            row, stat = rows[touched[i]], stats[i]
            # RACE: `row[k] +=` without a lock, the over-writes of eq. (2).  Two threads that add
            # to one entry at the same instant lose one of the two additions, nothing else: decay is
            # in the scale.  (`dpsvi.cluster.nodes.as_read` has the form in which it is lost, too.)
            # Mixtures, HMMs and regressions have one row and read its totals (`State.settle`): for
            # them this write is for nobody.  It stays since other models of one row read the row,
            # such as a gradient in Python, and since it costs little beside the rest of a step.
            for k in range(n_columns):
                x = gain * stat[k]
                row[k] += x
                block[k] += x
                stat[k] = zero
        for k in range(n_columns):
            total[k] += np.float64(block[k])


@kernel
def add_entries(rows, touched, columns, stats, gain, total):
    """``rows[touched_i, columns_i] += gain * stats_i``, and the same to `total`."""
    gain = stats.dtype.type(gain)
    for i in range(touched.shape[0]):
        row, column, stat = rows[touched[i]], columns[i], stats[i]
        for j in range(column.shape[0]):
            x = gain * stat[j]
            row[column[j]] += x  # RACE: as in `add_rows`
            total[column[j]] += np.float64(x)


@kernel
def add_statistics(rows, work, n, gain, total):
    """Add the first n statistics of `work`, whether they are of whole rows or of few columns."""
    if work.columns.shape[0]:
        add_entries(rows, work.touched[:n], work.columns, work.stats, gain, total)
    else:
        add_rows(rows, work.touched[:n], work.stats, gain, total)


@kernel
def read_statistics(work, i, row):
    """The i-th statistics of `work` as a whole row."""
    if work.columns.shape[0]:
        for k in range(row.shape[0]):
            row[k] = 0
        for j in range(work.columns.shape[1]):
            row[work.columns[i, j]] += work.stats[i, j]
    else:
        for k in range(row.shape[0]):
            row[k] = work.stats[i, k]


@kernel
def _next_step(counter):
    return fetch_add(counter, 1)


@cache
def _compile(real: np.dtype):
    """Compile :func:`_run_steps` for parameters of type `real`; loaded from disk when cached."""
    shared_t, items_t, work_t, local_t = abi(real)
    i64, vector, counter_t = types.int64, types.float64[::1], types.int64[::1]
    signature = i64(
        types.FunctionType(local_t), shared_t, vector, items_t, types.int32[::1], i64, vector,
        vector, i64, counter_t, counter_t, i64, work_t,
    )  # fmt: skip
    return numba.njit(signature, **FLAGS)(_run_steps)


class Loop:
    """How threads run the steps of a :class:`dpsvi.training.task.Task`: here, in the interpreter.

    A thread runs steps by :meth:`run`.  Where time is not spent but computed, each step is made in
    two halves, and those of other threads can lie in between.

    Parameters
    ----------
    real : numpy.dtype
        Of the parameters.
    """

    def __init__(self, real: np.dtype):
        # What is compiled is compiled now: Ctrl-C is not handled meanwhile.
        _next_step(np.zeros(1, np.int64))
        shared, _, work = empty_arguments(real)
        add_statistics(shared.rows, work, 0, 0.0, np.zeros(0))
        is_sound(work, 0, 0)

    def run(self, task, thread: int, n_steps: int) -> int:
        """Run steps until the counter reaches `n_steps`; returns how many this thread did."""
        done = 0
        while task.stop[0] == RUNNING:
            t = _next_step(task.counter)
            if t >= n_steps:
                break
            self.end(task, thread, t, self.begin(task, thread, t))
            done += 1
        return done

    def begin(self, task, thread: int, t: int) -> int:
        """Read the parameters and make local step `t`; returns how many rows it touched."""
        work = task.works[thread]
        work.totals[:] = task.shared.totals.sum(axis=0)  # RACE: as in `_run_steps`
        return self.local_step(task, task.shared, task.scales[t], t, work)

    def local_step(self, task, shared, scale, t: int, work) -> int:
        """Make local step `t` from these parameters; raises ContractError where it says nothing."""
        n = task.local(shared, scale, task.hyper, task.items, task.batch(t), work)
        if not isinstance(n, numbers.Integral):
            raise ContractError(f"a local step must return how many rows it touched, got {n!r}")
        return int(n)

    def end(
        self, task, thread: int, t: int, n: int, survives: Callable[[int], np.ndarray] | None = None
    ) -> None:
        """Add what came of step `t`, which touched `n` rows.

        `survives` draws which of so many rows other threads do not over-write, (n,) of bool; None:
        they do not, or they really do.
        """
        work, rows, own = task.works[thread], task.shared.rows, task.shared.totals[thread]
        gain = task.gains[t]
        if not is_sound(work, n, len(rows)):
            task.stop[0] = UNSOUND
            return
        if survives is not None and len(rows) > 1:
            dropped = np.flatnonzero(~survives(n))
            lost = work.stats[dropped]
            if len(work.columns):
                np.add.at(own, work.columns[dropped], gain * lost.astype(np.float64))
            else:
                own += gain * lost.sum(axis=0, dtype=np.float64)
            work.stats[dropped] = 0
        add_statistics(rows, work, n, gain, own)
        if not np.isfinite(own.sum()):
            task.stop[0] = DIVERGED


class CompiledLoop(Loop):
    """The same for a local step that is compiled, without the interpreter."""

    def __init__(self, real: np.dtype):
        self._run = _compile(real)

    def run(self, task, thread: int, n_steps: int) -> int:
        """See :class:`Loop`."""
        return self._run(
            task.local, task.shared, task.hyper, task.items, task.order, task.batch_size,
            task.scales, task.gains, n_steps, task.counter, task.stop, thread, task.works[thread],
        )  # fmt: skip
