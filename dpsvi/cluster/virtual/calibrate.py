"""Measuring what work costs here, for :class:`dpsvi.cluster.virtual.Timing`."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from dpsvi import learners
from dpsvi.cluster.contracts import MASTER
from dpsvi.cluster.nodes.master import Master
from dpsvi.cluster.nodes.worker import Worker
from dpsvi.cluster.options import Cluster
from dpsvi.cluster.transports.messages import Pool
from dpsvi.cluster.virtual import Timing
from dpsvi.training import thread_pool
from dpsvi.training.driver import run_locally
from dpsvi.training.job import Job
from dpsvi.training.ledger import Ledger, StepRange
from dpsvi.training.state import State
from dpsvi.training.task import Task, make_task, make_works

_QUANTILES = 21
_LOCAL_STEPS = 1, 4, 16
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
    run_locally(job, thread_pool.run)
    each_step = [_steps(job, 1, one_by_one=True) for _ in range(repeats)]
    n_values = each_step[0].n_values
    seconds = np.median([run.seconds for run in each_step], axis=0)
    step, value = _line(n_values, seconds)
    expected = step + value * n_values
    ratio = seconds / expected
    # One thread, two of a worker, two workers, exchanges: in turn, since the machine itself becomes
    # faster and slower.  Each is compared with the one thread just before.
    paces, shared, apart, lost, costs = [], [], [], [], []
    for _ in range(repeats):
        one, two = _steps(job, 1), _steps(job, 2)
        pace = one.total / expected.sum()
        paces.append(pace)
        shared.append(two.total / one.total)
        apart.append(_apart(job) / one.total)
        lost.append(two.lost)
        workers = (1, 1.0), (2, apart[-1])
        costs.append(
            [_exchange(job, b, n, slower, pace * step, pace * value)
             for b in _LOCAL_STEPS for n, slower in workers]
        )  # fmt: skip
    pace = float(np.median(paces))
    n_bytes, of_master, of_worker = np.median(costs, axis=0).T
    message, each = _line(n_bytes, of_master)
    turn, touch = _line(n_bytes, np.maximum(of_worker, 0.0))
    spread = np.quantile(ratio, np.linspace(0, 1, _QUANTILES))
    spread /= 0.5 * (spread[1:] + spread[:-1]).mean()  # of what `Timing.draw` draws
    return Timing(
        pace * step, pace * value, tuple(spread.tolist()),
        contention=max(0.0, 2 * float(np.median(shared)) - 1),
        apart=max(0.0, float(np.median(apart)) - 1), lost=max(0.0, float(np.median(lost))),
        turn=turn, touch=touch, message=message, read=each, merge=each,
    )  # fmt: skip


class _Run(NamedTuple):
    n_values: np.ndarray  # of each step
    seconds: np.ndarray  # of each step
    total: float  # seconds of all
    lost: float  # share of the additions that was over-written


class _Exchange(NamedTuple):
    n_bytes: float  # of rows, there and back
    master: float  # seconds of the master: one message, merged and answered
    worker: float  # seconds of the worker without the local steps


def _scratch(job, n_steps):
    """The same problem, once, with parameters of its own."""
    passes = job.passes
    n_items = min(passes.n_items, n_steps * passes.batch_size)
    state = _copy(job.state)
    passes = Ledger(n_items, passes.batch_size, 1, passes.seed, clock=passes.clock)
    return job._replace(
        state=state, passes=passes, observer=None, checkpoint=None, on_start=None, report=None,
        n_jobs=1, most_blind=None, cluster=Cluster(),
    )  # fmt: skip


def _copy(state, n_threads=1):
    """The same parameters, and memories of their own, in which there is nothing."""
    shared = state.shared
    copy = State.resume(
        state.model, shared.rows.copy(), n_threads, len(shared.item_memory),
        len(shared.value_memory), state.step,
    )  # fmt: skip
    copy.scale = state.scale
    return copy


def _pass(job, n_threads) -> tuple[State, Task, np.ndarray]:
    """A pass on a copy of the parameters, and the numbers of values in its batches."""
    passes, total = job.passes, job.total_items or job.passes.n_items
    state = _copy(job.state, n_threads)
    works = make_works(state.model, job.items, passes.batch_size, n_threads)
    # From all items: those at the beginning of a corpus may be others than the rest.
    order = np.random.default_rng(passes.seed).permutation(len(job.items.offsets) - 1)
    order = order[: passes.n_items].astype(np.int32)
    starts = np.arange(0, len(order), passes.batch_size)
    sizes = np.diff(np.append(starts, len(order)))
    rates = np.full(len(sizes), _RATE)
    tables = learners.get(state.model.learner).tables
    scales, gains, n_steps = tables(state.model, rates, state.scale, sizes, total)
    task = make_task(state.model, state.shared, job.items, passes.batch_size, works)
    lengths = np.diff(job.items.offsets)
    n_values = np.array([lengths[order[s : s + passes.batch_size]].sum() for s in starts])
    return state, task._replace(order=order, scales=scales, gains=gains), n_values[:n_steps]


def _apart(job) -> float:
    """Seconds of a pass on a thread while another thread makes one of its own."""
    both = [_pass(job, 1) for _ in range(2)]
    started = time.perf_counter()
    with ThreadPoolExecutor(len(both)) as pool:
        for done in [pool.submit(task.run_thread, 0, len(n)) for _, task, n in both]:
            done.result()
    return time.perf_counter() - started


def _steps(job, n_threads, one_by_one=False) -> _Run:
    """Time the steps of a pass: all of them, or each of them on one thread."""
    state, task, n_values = _pass(job, n_threads)
    n_steps = len(n_values)
    before = state.shared.rows.astype(np.float64)
    seconds = []
    whole = time.perf_counter()
    if not one_by_one:
        thread_pool.run(task, n_steps)
    else:
        for step in range(n_steps):
            started = time.perf_counter()
            task.run_thread(0, step + 1)
            seconds.append(time.perf_counter() - started)
            task.counter[0] = step + 1  # the thread looked for one more
    whole = time.perf_counter() - whole
    # By how far the rows have moved: what is added may have either sign, and then this is less
    # than was lost, since losses cancel.
    moved = np.abs(state.shared.rows - before).sum()
    lost = state.shared.totals.sum() - state.shared.rows.sum(dtype=np.float64)
    return _Run(n_values, np.array(seconds), whole, float(abs(lost) / moved) if moved else 0.0)


def _exchange(job, b, n_workers, slower, step, value) -> _Exchange:
    """An exchange after `b` steps, on average, when all memory has been used before.

    `n_workers` work at the same time, each in a thread of its own: their rows come from another
    core's cache and go back to it; all that they do is `slower` for that.  Steps are slower still
    just after, when the caches are cold: what they take beyond ``step + value * (values in the
    batch)`` seconds is a cost of the exchange.
    """
    job = job._replace(state=_copy(job.state), local_steps=b)
    passes, lengths = job.passes, np.diff(job.items.offsets)
    n_exchanges, n_steps = n_workers * (_WARM + _TIMED), n_workers * b * (_WARM + _TIMED + 1)
    n_passes = 2 * -(-n_steps // passes.steps_a_pass) + 1
    passes = Ledger(passes.n_items, passes.batch_size, n_passes, passes.seed, clock=passes.clock)
    job = job._replace(passes=passes)
    pool = Pool()  # of all: nothing is copied on the way, as between processes of one host
    master = Master(job, n_workers, pool=pool)
    workers = [Worker(job, pool=pool) for _ in range(n_workers)]

    def turn(worker, grant):
        started = time.perf_counter()
        if grant is not None:
            worker.take(MASTER, grant)
        ((_, message),) = worker.turn()
        return message, time.perf_counter() - started

    arrived, found, works = [turn(worker, None) for worker in workers], [], {}
    with ThreadPoolExecutor(n_workers) as pool:
        while len(found) < n_exchanges:
            grants = [None] * n_workers
            for rank, (message, spent) in enumerate(arrived):
                update, before = message.header.get("update"), master.busy
                master.take(rank, message)
                answers = master.turn()
                busy = master.busy - before
                for to, answer in answers:
                    grants[to] = answer
                    works[answer.header["work_id"]] = StepRange(*answer.header["work"])
                if update is not None:
                    items = passes.items(works[update["work_id"]])
                    steps = step * update["n_done"] + value * lengths[items].sum()
                    n_bytes = message.n_bytes + grants[rank].n_bytes
                    found.append(_Exchange(n_bytes, busy, spent / slower - steps))
            arrived = list(pool.map(turn, workers, grants))
    return _Exchange(*np.mean(found[n_workers * _WARM :], axis=0))


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
