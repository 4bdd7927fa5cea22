"""Measuring what work costs here, for :class:`dpsvi.cluster.virtual.Timing`."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from dpsvi.cluster.master import Master
from dpsvi.cluster.messages import deliver
from dpsvi.cluster.options import Cluster
from dpsvi.cluster.virtual import Timing
from dpsvi.cluster.worker import Worker
from dpsvi.engines import threads
from dpsvi.fit import Job, run_locally
from dpsvi.passes import Passes
from dpsvi.svi import State, step_tables
from dpsvi.task import make_task, make_works

_QUANTILES = 21
_WARM, _TIMED = 2, 4  # exchanges
_RATE = 1e-3  # small: parameters hardly change, the scale need not be folded in


def measure(job: Job, n_steps: int = 400, repeats: int = 5) -> Timing:
    """Time steps of `job` and messages about them; nothing of the job changes.

    Parameters
    ----------
    job : Job
    n_steps : int
        Steps to train before, since local steps take longer at first, and steps to time then, on
        one thread and on two; fewer where a pass has fewer.
    repeats : int
        Medians are over so many.
    """
    job = _scratch(job, n_steps)
    run_locally(job, threads.run)
    each_step = [_steps(job, 1, one_by_one=True) for _ in range(repeats)]
    pairs = [(_steps(job, 1), _steps(job, 2)) for _ in range(repeats)]
    n_values = each_step[0].n_values
    seconds = np.median([run.seconds for run in each_step], axis=0)
    # Looking at each step costs something too: all together take as long as without it.
    seconds *= np.median([one.total for one, _ in pairs]) / seconds.sum()
    step, value = _line(n_values, seconds)
    ratio = seconds / (step + value * n_values)
    whole = np.median([two.total / one.total for one, two in pairs])
    exchanges = [exchange for b in (1, 4, 16) for exchange in _exchanges(job, b)]
    message, each = _line(
        np.array([e.n_bytes for e in exchanges]), np.array([e.master for e in exchanges])
    )
    n_bytes = sum(e.n_bytes for e in exchanges)
    places = np.linspace(0, 1, _QUANTILES)
    return Timing(
        step, value, tuple((np.quantile(ratio, places) / ratio.mean()).tolist()),
        contention=max(0.0, 2 * float(whole) - 1),
        lost=float(max(0.0, np.median([two.lost for _, two in pairs]))),
        touch=sum(e.worker for e in exchanges) / n_bytes,
        message=message, read=each, merge=each,
    )  # fmt: skip


class _Run(NamedTuple):
    n_values: np.ndarray  # of each step
    seconds: np.ndarray  # of each step
    total: float  # seconds of all
    lost: float  # share of the additions that was over-written


class _Exchange(NamedTuple):
    n_bytes: int  # of rows, there and back
    master: float  # seconds of the master: one message, merged and answered
    worker: float  # seconds of the worker without the local steps


def _scratch(job, n_steps):
    """The same problem, once, with parameters of its own."""
    passes = job.passes
    n_items = min(passes.n_items, n_steps * passes.batch_size)
    state = _copy(job.state)
    return job._replace(
        state=state, passes=Passes(n_items, passes.batch_size, 1, passes.seed), observer=None,
        checkpoint=None, on_task=None, report=None, tally=None, n_jobs=1, most_blind=None,
        cluster=Cluster(),
    )  # fmt: skip


def _copy(state, n_threads=1):
    model = state.model._replace(hyper=state.model.hyper.copy(), refine=None)
    copy = State.resume(model, state.shared.rows.copy(), n_threads, step=state.step)
    copy.scale = state.scale
    return copy


def _steps(job, n_threads, one_by_one=False) -> _Run:
    """Time the steps of a pass: all of them, or each of them on one thread."""
    passes, total = job.passes, job.total_items or job.passes.n_items
    state = _copy(job.state, n_threads)
    works = make_works(state.model, job.items, passes.batch_size, n_threads)
    # From all items: those at the beginning of a corpus may be others than the rest.
    order = np.random.default_rng(passes.seed).permutation(len(job.items.offsets) - 1)
    order = order[: passes.n_items].astype(np.int32)
    starts = np.arange(0, len(order), passes.batch_size)
    sizes = np.diff(np.append(starts, len(order)))
    scales, gains, n_steps = step_tables(
        np.full(len(sizes), _RATE), state.scale, sizes, total, state.model.additive,
        state.model.real,
    )  # fmt: skip
    task = make_task(state.model, state.shared, job.items, passes.batch_size, works)
    task = task._replace(order=order, scales=scales, gains=gains)
    before = state.shared.totals.sum()
    seconds = []
    whole = time.perf_counter()
    if not one_by_one:
        threads.run(task, n_steps)
    else:
        for step in range(n_steps):
            started = time.perf_counter()
            task.run_thread(0, step + 1)
            seconds.append(time.perf_counter() - started)
            task.counter[0] = step + 1  # the thread looked for one more
    whole = time.perf_counter() - whole
    added = state.shared.totals.sum() - before
    lost = state.shared.totals.sum() - state.shared.rows.sum(dtype=np.float64)
    lengths = np.diff(job.items.offsets)
    n_values = np.array([lengths[order[s : s + passes.batch_size]].sum() for s in starts])
    return _Run(n_values[:n_steps], np.array(seconds), whole, float(lost / added))


def _exchanges(job, b) -> list[_Exchange]:
    """Some exchanges of one worker with `b` steps each, when all memory has been used before."""
    job = job._replace(state=_copy(job.state), local_steps=b)
    passes = job.passes
    n_steps = b * (_WARM + _TIMED + 1)
    n_passes = 2 * -(-n_steps // passes.steps_a_pass) + 1
    job = job._replace(passes=Passes(passes.n_items, passes.batch_size, n_passes, passes.seed))
    master, worker = Master(job, 2), Worker(job)
    master.take(2, worker.hello())  # a second one, that never works: no exact copies
    message, found, spent = worker.hello(), [], 0.0
    while len(found) < _WARM + _TIMED:
        update, before = message.header.get("update"), master.busy
        master.take(1, message)
        busy = master.busy - before
        (answer,) = (answer for rank, answer in master.outbox if rank == 1)
        master.outbox.clear()
        if update is not None:
            found.append(_Exchange(message.n_bytes + answer.n_bytes, busy, spent))
        grant = deliver(answer, master.pool, worker.pool)
        started = time.perf_counter()
        (message,) = worker.turn(grant)
        spent = time.perf_counter() - started
        if message.header["update"] is not None:
            spent -= message.header["update"]["seconds"]
    return found[_WARM:]


def _line(x, y) -> tuple[float, float]:
    """Least squares of ``y = a + b x`` with a, b >= 0."""
    x, y = np.asarray(x, float), np.asarray(y, float)
    if np.ptp(x) == 0:
        return float(y.mean()), 0.0
    slope, start = np.polyfit(x, y, 1)
    if slope < 0:
        return float(y.mean()), 0.0
    if start < 0:
        return 0.0, float((x @ y) / (x @ x))
    return float(start), float(slope)
