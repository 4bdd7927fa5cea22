"""The compiled loop of Alg. 2 and 4: take a step number, run the local step, add. No locks.

Every thread of every engine runs :func:`run_steps`, compiled once for all models.  It holds no
GIL and takes no lock; the only synchronisation is the atomic counter that hands out step numbers.
"""

from __future__ import annotations

from functools import cache

import numba
import numpy as np
from numba import types

from dpsvi.jit import FLAGS, abi, fetch_add, prefetch

RUNNING, STOP, DIVERGED = 0, 1, 2


def _run_steps(
    local, shared, hyper, items, order, batch_size, scales, gains, n_steps, counter, stop, thread,
    work,
):
    rows, totals = shared.rows, shared.totals
    n_columns = rows.shape[1]
    one = work.stats.dtype.type(1)
    done = 0
    while stop[0] == 0:
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

        # RACE: `rows[row, k] +=` without a lock, the over-writes of eq. (2).  Two threads that add
        # to one entry at the same instant lose one of the two additions, nothing else.
        gain = one * work.stats.dtype.type(gains[t])
        check = 0.0
        for i in range(n):
            if i + 8 < n:
                prefetch(rows, np.int64(work.touched[i + 8]))
            row = rows[work.touched[i]]
            stats = work.stats[i]
            for k in range(n_columns):
                stats[k] *= gain
                row[k] += stats[k]
        own = totals[thread]
        add_column_sums(work.stats, n, own)
        for k in range(n_columns):
            check += own[k]
        if not np.isfinite(check):
            stop[0] = DIVERGED
        done += 1
    return done


@numba.njit(**FLAGS, forceinline=True)
def add_column_sums(stats, n, own):
    """``own += stats[:n].sum(0)`` in float64; eight rows at a time keep the loop in registers."""
    n_columns = own.shape[0]
    for i in range(0, n - n % 8, 8):
        for k in range(n_columns):
            low = (stats[i, k] + stats[i + 1, k]) + (stats[i + 2, k] + stats[i + 3, k])
            high = (stats[i + 4, k] + stats[i + 5, k]) + (stats[i + 6, k] + stats[i + 7, k])
            own[k] += np.float64(low + high)
    for i in range(n - n % 8, n):
        for k in range(n_columns):
            own[k] += np.float64(stats[i, k])


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
