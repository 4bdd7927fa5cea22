"""The compiled loop of Alg. 2 and 4: take a step number, run the local step, add. No locks.

Every thread of every engine runs :func:`_run_steps`, compiled once for all models.  It holds no
GIL and takes no lock; the only synchronisation is the atomic counter that hands out step numbers.
A local step that numba cannot compile, any Python callable, is run by :func:`_run_steps_in_python`,
whose threads share the parameters in the same way.
"""

from __future__ import annotations

from functools import cache

import numba
import numpy as np
from numba import types

from dpsvi.kernels.jit import FLAGS, abi, fetch_add, kernel, prefetch

RUNNING, STOP, DIVERGED = 0, 1, 2
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

        own = totals[thread]
        add_rows(rows, work.touched[:n], work.stats, gains[t], own)
        check = 0.0
        for k in range(n_columns):
            check += own[k]
        if not np.isfinite(check):
            stop[0] = DIVERGED
        done += 1
    return done


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
        block[:] = zero
        for i in range(first, last):
            if i + _BLOCK < n:
                prefetch(rows, np.int64(touched[i + _BLOCK]))
            row, stat = rows[touched[i]], stats[i]
            # RACE: `row[k] +=` without a lock, the over-writes of eq. (2).  Two threads that add
            # to one entry at the same instant lose one of the two additions, nothing else: decay is
            # in the scale.  (`dpsvi.cluster.nodes.as_read` has the form in which it is lost, too.)
            # In a model of one row that is the totals (`State.settle`) nobody reads what is raced
            # for.
            for k in range(n_columns):
                x = gain * stat[k]
                row[k] += x
                block[k] += x
                stat[k] = zero
        for k in range(n_columns):
            total[k] += np.float64(block[k])


@kernel
def _next_step(counter):
    return fetch_add(counter, 1)


def _run_steps_in_python(
    local, shared, hyper, items, order, batch_size, scales, gains, n_steps, counter, stop, thread,
    work,
):  # fmt: skip
    rows, totals, own = shared.rows, shared.totals, shared.totals[thread]
    done = 0
    while stop[0] == RUNNING:
        t = _next_step(counter)
        if t >= n_steps:
            break
        batch = order[t * batch_size : (t + 1) * batch_size]
        work.totals[:] = totals.sum(axis=0)  # RACE: as in `_run_steps`
        n = local(shared, scales[t], hyper, items, batch, work)
        add_rows(rows, work.touched[:n], work.stats, gains[t], own)
        if not np.isfinite(own.sum()):
            stop[0] = DIVERGED
        done += 1
    return done


def python_loop(real: np.dtype):
    """What :func:`compile_loop` returns, for a local step that is called as it is."""
    counter, row = np.zeros(1, np.int64), np.zeros((1, 1), real)
    _next_step(counter)
    add_rows(row, np.zeros(1, np.int32), row.copy(), 0.0, np.zeros(1))
    return _run_steps_in_python


@cache
def compile_loop(real: np.dtype):
    """Compile :func:`_run_steps` for parameters of type `real`; loaded from disk when cached.

    The arguments are ``(local, shared, hyper, items, order, batch_size, scales, gains, n_steps,
    counter, stop, thread, work)``; the value is the number of steps this thread did.
    """
    shared_t, items_t, work_t, local_t = abi(real)
    i64, vector, counter_t = types.int64, types.float64[::1], types.int64[::1]
    signature = i64(
        types.FunctionType(local_t), shared_t, vector, items_t, types.int32[::1], i64, vector,
        vector, i64, counter_t, counter_t, i64, work_t,
    )  # fmt: skip
    return numba.njit(signature, **FLAGS)(_run_steps)
