"""The driver of one process: takes steps from the ledger, hands segments to threads.

What happens between two segments is in :mod:`dpsvi.training.boundary`.  :mod:`dpsvi.cluster` has
what runs the segments of a fit on several processes.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable

import numpy as np

from dpsvi import learners
from dpsvi.base import Items, Schedule
from dpsvi.errors import ContractError, DivergedError
from dpsvi.training.boundary import Boundary, Progress
from dpsvi.training.job import Job, Snapshot
from dpsvi.training.ledger import Cuts
from dpsvi.training.loop import DIVERGED, RUNNING, UNSOUND
from dpsvi.training.signals import Deferred
from dpsvi.training.state import State
from dpsvi.training.task import Task, make_task, make_works

log = logging.getLogger(__name__)

_STEPS_A_CHECK = 256  # steps without a look at the clock, where checkpoints are wanted


def one_step(state: State, items: Items, order: np.ndarray) -> None:
    """Replace the parameters of `state` by the estimate from the items `order`.

    This is one step of rate 1, in the calling thread.
    """
    works = make_works(state.model, items, len(order), 1)
    task = make_task(state.model, state.shared, items, len(order), works)
    with Deferred():  # numba swallows what a signal raises while it takes a function
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
    works = make_works(
        model, job.items, passes.batch_size, job.n_jobs, state.shared.thread_memory
    )
    task = make_task(model, state.shared, job.items, passes.batch_size, works)
    boundary, total = Boundary(job), job.total_items or passes.n_items
    threads = Counter()

    def snapshot() -> Snapshot:
        return Snapshot(state, passes, boundary.seconds)

    boundary.start(task)
    try:
        with boundary.interruptible(snapshot):
            while not boundary.ended:
                n_threads, most = _segment_size(job, boundary.cuts)
                if not threads:
                    _warn_of_fewer(job, n_threads)
                work = passes.grant(0, most)
                if work is None:
                    break
                before = state.step
                try:
                    run_segment(
                        run, task._replace(works=works[:n_threads]), state, job.schedule,
                        passes.items(work), passes.sizes(work), work.clock, total,
                    )  # fmt: skip
                finally:
                    n_done = state.step - before
                    passes.done(0, work, n_done)
                    threads[n_threads] += n_done
                if n_done < work.n_steps or state.small:
                    with Deferred():  # parameters are whole when a signal is delivered
                        state.renormalise()
                boundary.reached(Progress(state, passes.n_done, passes.clock - 1), snapshot)
    finally:
        if job.report is not None:
            job.report["threads"] = dict(sorted(threads.items()))
    return boundary.ended


def _warn_of_fewer(job: Job, n_threads: int) -> None:
    """Say it when fewer threads work at first than the user wants steps of."""
    if job.local_steps is not None and n_threads < job.n_jobs:
        log.warning(
            "local_steps=%d of %d threads each, but %d at a time work for now: rates are too large "
            "for more steps that do not see each other (most_blind=%g); most_blind=None lets all "
            "work", job.local_steps, job.n_jobs, n_threads, job.most_blind,
        )  # fmt: skip


def _segment_size(job: Job, cuts: Cuts) -> tuple[int, int]:
    """Threads of the next segment and the most steps it may have."""
    step = job.passes.n_done
    last = cuts.after(step)
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


def run_segment(run, task, state, schedule, order, sizes, clock, total) -> int:
    """Run the steps of `order`, or fewer when the scale must be folded in before.

    Returns the number of steps done; `state` is up to date even when an exception ends the segment.
    Fewer steps are done when somebody sets ``task.stop``, too.
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
    if task.stop[0] == UNSOUND:
        raise ContractError(
            f"{model.name}: after step {state.step} its local step returned a number of rows, or "
            "named a row or column, that there is not; dpsvi.check_model says more"
        )
    return done
