"""Line 8 of Alg. 4 to the letter: ``u <- u + rho (lambda_hat(u_read) - u_read)``, without locks.

The engine's own loop (:mod:`dpsvi.training.loop`) takes the decay out of this sum: it is known
beforehand, so it is a table, and only statistics can be stale or over-written.  Here a thread reads
all rows that its worker holds, computes on what it has read, and adds ``rho (lambda_hat - u_read)``
to every one of them.  What other threads have changed meanwhile decays too little or too much, and
where two write to one number at once, one loses its decay along with its statistics.

During a segment the scale stays what it was and rows decay in place, so a step costs by the rows
that the worker holds.  At its end they are divided by what the table says of their decay: the form
of the update, and all that the master does with it, is the same.  Rows that the worker does not
hold, because none of its steps needs them, decay by the table.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numba
import numpy as np
from numba import types

from dpsvi.base import Model, Shared
from dpsvi.kernels.jit import FLAGS, abi, fetch_add, kernel
from dpsvi.training.loop import DIVERGED, RUNNING, UNSOUND, Loop, is_sound


@kernel
def read_rows(rows, held, rest, seen, totals):
    """``seen = rows`` where they are held; ``totals = rest + their column sums``."""
    for k in range(totals.shape[0]):
        totals[k] = rest[k]
    for i in held:
        row, out = rows[i], seen[i]
        # RACE: other threads write to these rows: the inconsistent reading of eq. (5).
        for k in range(row.shape[0]):
            x = row[k]
            out[k] = x
            totals[k] += x


@kernel
def to_change(seen, held, rate, touched, stats, gain):
    """``seen <- gain stats - rate seen``, the change of a step; ``stats = 0``."""
    gain, rate = seen.dtype.type(gain), seen.dtype.type(rate)
    zero = seen.dtype.type(0)
    for i in held:
        row = seen[i]
        for k in range(row.shape[0]):
            row[k] *= -rate
    for i in range(touched.shape[0]):
        row, stat = seen[touched[i]], stats[i]
        for k in range(row.shape[0]):
            row[k] += gain * stat[k]
            stat[k] = zero


@kernel
def write_rows(rows, held, change, nonnegative):
    """``rows += change`` where they are held, projected onto a nonnegative domain."""
    zero = rows.dtype.type(0)
    for i in held:
        row, x = rows[i], change[i]
        # RACE: as in `training.loop.add_rows`, the over-writes of eq. (2).
        for k in range(row.shape[0]):
            u = row[k] + x[k]
            row[k] = zero if nonnegative and u < zero else u


@kernel
def factors(scales, gains, t):
    """What is left of rows nobody holds, rho, and the gain of step t at the first scale."""
    left = scales[t] / scales[0]
    return left, 1.0 - scales[t + 1] / scales[t], gains[t] * scales[t + 1] / scales[0]


def _run_steps(
    local, shared, hyper, items, order, batch_size, scales, gains, n_steps, counter, stop, held,
    rest, seen, nonnegative, work,
):  # fmt: skip
    private = Shared(
        seen, shared.totals, shared.item_memory, shared.value_memory, shared.thread_memory,
        shared.optimizer,
    )  # fmt: skip
    own_rest = rest.copy()
    done = 0
    while stop[0] == RUNNING:
        t = fetch_add(counter, 1)
        if t >= n_steps:
            break
        lo = t * batch_size
        batch = order[lo : min(lo + batch_size, order.shape[0])]
        left, rate, gain = factors(scales, gains, t)
        for k in range(rest.shape[0]):
            own_rest[k] = left * rest[k]
        read_rows(shared.rows, held, own_rest, seen, work.totals)
        if not np.isfinite(work.totals.sum()):
            stop[0] = DIVERGED
        n = local(private, scales[0], hyper, items, batch, work)
        if not is_sound(work, n, seen.shape[0]):
            stop[0] = UNSOUND
            break
        to_change(seen, held, rate, work.touched[:n], work.stats, gain)
        write_rows(shared.rows, held, seen, nonnegative)
        done += 1
    return done


@cache
def _compile(real: np.dtype):
    shared_t, items_t, work_t, local_t = abi(real)
    i64, vector, counter_t = types.int64, types.float64[::1], types.int64[::1]
    ints, matrix = types.int32[::1], shared_t.types[0]
    signature = i64(
        types.FunctionType(local_t), shared_t, vector, items_t, ints, i64, vector, vector, i64,
        counter_t, counter_t, ints, vector, matrix, types.boolean, work_t,
    )  # fmt: skip
    return numba.njit(signature, **FLAGS)(_run_steps)


class AsReadLoop(Loop):
    """Runs the steps of a worker in this form; see :class:`dpsvi.training.loop.Loop`.

    Parameters
    ----------
    model : Model
    n_threads : int
    """

    def __init__(self, model: Model, n_threads: int):
        self._nonnegative = model.nonnegative
        # Not touched where it is not held, so this costs nothing there.
        self._seen = [np.zeros(model.shape, model.real) for _ in range(n_threads)]
        self.held, self._rest = np.zeros(0, np.int32), np.zeros(model.shape[1])
        self._run = _compile(model.real)

    def segment(self, run, task, n_steps: int, held: np.ndarray) -> None:
        """In the place of ``run(task, n_steps)``; `held` are the rows that the worker holds."""
        rows, totals, scales = task.shared.rows, task.shared.totals, task.scales
        self.held = held
        self._rest = totals.sum(axis=0) - rows[held].sum(axis=0, dtype=np.float64)
        try:
            run(task._replace(loop=self), n_steps)
        finally:
            done = min(int(task.counter[0]), n_steps)
            ended = rows[held] * rows.dtype.type(scales[0] / scales[done])
            rows[held] = ended
            totals[:] = 0
            totals[0] = self._rest + ended.sum(axis=0, dtype=np.float64)

    def run(self, task, thread: int, n_steps: int) -> int:
        """Run steps until the counter reaches `n_steps`; returns how many this thread did."""
        return self._run(
            task.local, task.shared, task.hyper, task.items, task.order, task.batch_size,
            task.scales, task.gains, n_steps, task.counter, task.stop, self.held, self._rest,
            self._seen[thread], self._nonnegative, task.works[thread],
        )  # fmt: skip

    def begin(self, task, thread: int, t: int) -> int:
        """Read the rows that are held and make local step `t`."""
        work, seen = task.works[thread], self._seen[thread]
        left = factors(task.scales, task.gains, t)[0]
        read_rows(task.shared.rows, self.held, left * self._rest, seen, work.totals)
        private = task.shared._replace(rows=seen)
        return self.local_step(task, private, task.scales[0], t, work)

    def end(
        self, task, thread: int, t: int, n: int, survives: Callable[[int], np.ndarray] | None = None
    ) -> None:
        """Add the change of step `t` to the rows that are held, those that `survives` draws."""
        work, change, held = task.works[thread], self._seen[thread], self.held
        if not is_sound(work, n, len(change)):
            task.stop[0] = UNSOUND
            return
        _, rate, gain = factors(task.scales, task.gains, t)
        to_change(change, held, rate, work.touched[:n], work.stats, gain)
        if survives is not None:
            held = held[survives(len(held))]
        write_rows(task.shared.rows, held, change, self._nonnegative)
        if not np.isfinite(work.totals.sum()):
            task.stop[0] = DIVERGED
