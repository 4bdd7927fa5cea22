"""The driver of one process: takes steps from the ledger, hands segments to threads.

Between two segments, and only there, parameters are consistent: scales are renormalised, observers
look, checkpoints are written.  :mod:`dpsvi.cluster` has the driver of several processes.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dpsvi import learners
from dpsvi.base import Event, Items, Schedule
from dpsvi.errors import DivergedError
from dpsvi.training.ledger import Cuts, Passes
from dpsvi.training.loop import DIVERGED, RUNNING
from dpsvi.training.signals import Deferred
from dpsvi.training.state import State
from dpsvi.training.task import Task, make_task, make_works

log = logging.getLogger(__name__)

SMALL_SCALE = 1e-6  # well before rows outgrow their number type
_STEPS_A_CHECK = 256  # steps without a look at the clock, where checkpoints are wanted


class Job(NamedTuple):
    """All that an engine is told.

    Parameters
    ----------
    state : State
        Changed in place.
    items : Items
    passes : Passes
        The ledger of the steps to be done.
    schedule : callable, step numbers -> rates in (0, 1]
    n_jobs : int, >= 1
        Threads p.
    local_steps : int or None
        B: all threads meet after p * B steps.  None: the engine's choice.
    total_items : float or None
        N, what a batch is scaled up to; the number of items by default.
    most_blind : float or None
        Threads that step at the same time do not see each other's steps: together they move the
        parameters by up to p * rate from where each one stands.  While that is more than
        `most_blind`, in the first steps of a decreasing schedule, fewer threads work.  None: all
        work from the start.
    observe_every : float
        Passes between two calls of `observer`, at most 1.
    observer : callable or None
        Gets an :class:`~dpsvi.base.Event`; a true answer ends the fit.
    on_task : callable or None
        Gets the :class:`~dpsvi.training.task.Task` before the first step, for progress displays.
    checkpoint : callable or None
        Called between segments as ``checkpoint(snapshot, now)``; it decides whether to write,
        unless `now` is true: the fit is being interrupted.
    seconds : float
        Training time before a checkpoint.
    cluster : dpsvi.cluster.Cluster or None
        Options of the engine that runs on several processes.
    strategy_state : (str, dict) or None
        Name and state of the strategy at the checkpoint that the fit goes on from.
    report : dict or None
        Where that engine leaves what it measured of its exchanges, and every one how often how
        many threads were at work: steps, or exchanges.
    """

    state: State
    items: Items
    passes: Passes
    schedule: Schedule
    n_jobs: int = 1
    local_steps: int | None = None
    total_items: float | None = None
    most_blind: float | None = None
    observe_every: float = 1.0
    observer: Callable[[Event], bool] | None = None
    on_task: Callable[[Task], None] | None = None
    checkpoint: Callable[[Any, bool], None] | None = None
    seconds: float = 0.0
    cluster: Any = None
    strategy_state: tuple[str, dict] | None = None
    report: dict | None = None


class Snapshot(NamedTuple):
    """Everything that a fit needs to go on, at a moment when parameters are consistent."""

    state: State
    passes: Passes
    seconds: float  # of training
    strategy_state: tuple[str, dict] | None = None  # its name, its state: arrays and numbers


def one_step(state: State, items: Items, order: np.ndarray) -> None:
    """Replace the parameters of `state` by the estimate from the items `order`.

    This is one step of rate 1, in the calling thread.
    """
    works = make_works(state.model, items, len(order), 1)
    task = make_task(state.model, state.shared, items, len(order), works)
    run_segment(
        lambda task, n_steps: task.run_thread(0, n_steps), task, state, np.ones_like, order,
        np.array([len(order)]), 0, len(items.offsets) - 1,
    )  # fmt: skip
    state.renormalise()


def run_locally(job: Job, run: Callable[[Task, int], None]) -> bool:
    """Carry out `job` in this process; `run` is the engine's way to do the steps of a segment.

    Returns whether the observer ended it.

    Raises
    ------
    DivergedError
        A parameter became NaN or infinite.
    """
    state, passes = job.state, job.passes
    model = state.model
    works = make_works(model, job.items, passes.batch_size, job.n_jobs)
    task = make_task(model, state.shared, job.items, passes.batch_size, works)
    if job.on_task is not None:
        job.on_task(task)
    looks = Cuts(passes.steps_a_pass, job.observe_every)
    total, seconds = job.total_items or passes.n_items, job.seconds
    threads = Counter()

    def offer(now: bool) -> None:
        if job.checkpoint is not None:
            job.checkpoint(Snapshot(state, passes, seconds), now)

    try:
        while True:
            n_threads, most = _segment_size(job, looks)
            if job.local_steps is not None and not threads and n_threads < job.n_jobs:
                log.warning(
                    "local_steps=%d of %d threads each, but %d at a time work for now: rates are "
                    "too large for more steps that do not see each other (most_blind=%g); "
                    "most_blind=None lets all work", job.local_steps, job.n_jobs, n_threads,
                    job.most_blind,
                )  # fmt: skip
            work = passes.grant(0, most)
            if work is None:
                return False
            started, before = time.perf_counter(), state.step
            try:
                _, rate = run_segment(
                    run, task._replace(works=works[:n_threads]), state, job.schedule,
                    passes.items(work), passes.sizes(work), work.clock, total,
                )  # fmt: skip
            finally:
                n_done = state.step - before
                passes.done(0, work, n_done)
                threads[n_threads] += n_done
            if n_done < work.n_steps or state.scale < SMALL_SCALE:
                with Deferred():  # parameters are whole when a signal is heard
                    state.renormalise()
            seconds += time.perf_counter() - started
            if job.observer is not None and looks.crossed(passes.n_done - n_done, passes.n_done):
                epoch = passes.n_done / passes.steps_a_pass
                if job.observer(Event(state.step, state.items, epoch, seconds, rate, state)):
                    return True
            offer(now=False)
    except KeyboardInterrupt:
        offer(now=True)
        raise
    finally:
        if job.report is not None:
            job.report["threads"] = dict(sorted(threads.items()))


def _segment_size(job: Job, looks: Cuts) -> tuple[int, int]:
    """Threads of the next segment and the most steps it may have."""
    step = job.passes.n_done
    last = looks.after(step)
    if job.local_steps is not None:
        last = min(last, step + job.n_jobs * job.local_steps)
    if job.checkpoint is not None:
        last = min(last, step + _STEPS_A_CHECK)
    n_threads = job.n_jobs
    if job.most_blind is not None:
        n_threads = min(n_threads, blind_steps(job.schedule, job.passes.clock, job.most_blind))
    if n_threads < job.n_jobs:
        last = min(last, step + n_threads)
    return n_threads, last - step


def blind_steps(schedule: Schedule, step: int, most_blind: float) -> int:
    """As many steps at a time, not seeing each other, as the rate of this step allows."""
    return max(1, int(most_blind / float(schedule(np.array([step]))[0])))


def run_segment(run, task, state, schedule, order, sizes, clock, total) -> tuple[int, float]:
    """Run the steps of `order`, or fewer when the scale must be folded in before.

    Returns the number of steps done and the rate of the last one; `state` is up to date even when
    an exception ends the segment.  Fewer steps are done when somebody sets ``task.stop``, too.
    """
    model = state.model
    rates = np.asarray(schedule(np.arange(clock, clock + len(sizes))), dtype=np.float64)
    tables = learners.get(model.learner).tables
    scales, gains, n = tables(model, rates, state.scale, sizes, total)
    task.counter[0], task.stop[0] = 0, RUNNING
    task = task._replace(order=order[: int(sizes[:n].sum())], scales=scales, gains=gains)
    try:
        run(task, n)
    finally:
        # Threads finish the step they are in before they leave: the clock is exact even then.
        done = min(int(task.counter[0]), n)
        state.step += done
        state.items += int(sizes[:done].sum())
        task.counter[0] = 0  # whoever watches adds both
        state.scale = float(scales[done])
        state.settle()
    if task.stop[0] == DIVERGED:
        raise DivergedError(
            f"{model.name}: a statistic became NaN or infinite at step {state.step}"
        )
    return done, float(rates[max(done, 1) - 1])
