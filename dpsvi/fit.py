"""The driver: shuffles passes, cuts them into segments, hands segments to the engine.

Between two segments, and only there, parameters are consistent: scales are renormalised, priors
are learned, observers look.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable

import numpy as np

from dpsvi import engines
from dpsvi.base import Event, Items, Model, Schedule
from dpsvi.engines.loop import DIVERGED, RUNNING
from dpsvi.errors import DivergedError
from dpsvi.svi import State, step_tables
from dpsvi.task import Task, make_task, make_works

log = logging.getLogger(__name__)

_REFINES_A_PASS, _STEPS_A_REFINE = 10, 20  # at most, at least
_SMALL_SCALE = 1e-6  # well before rows outgrow their number type


def fit(
    state: State,
    items: Items,
    *,
    schedule: Schedule,
    batch_size: int,
    n_passes: int,
    rng: np.random.Generator,
    engine: str = "serial",
    n_jobs: int = 1,
    local_steps: int | None = None,
    total_items: int | None = None,
    most_blind: float | None = None,
    observe_every: float | None = None,
    observer: Callable[[Event], bool] | None = None,
    on_task: Callable[[Task], None] | None = None,
) -> State:
    """Improve `state` by stochastic variational inference; returns it.

    Parameters
    ----------
    state : State
        Changed in place.
    items : Items
    schedule : callable, step numbers -> rates in (0, 1]
    batch_size : int, >= 1
        Items in one step, S.
    n_passes : int, >= 0
        Every pass visits every item once, in a fresh random order.
    rng : numpy Generator
        Draws the orders; a seeded one makes a one-thread fit bit-reproducible.
    engine : str
        Module name in :mod:`dpsvi.engines`.
    n_jobs : int, >= 1
        Threads p.
    local_steps : int or None
        B: all threads meet after p * B steps.  None: they meet only where the driver must look.
    total_items : int or None
        N, what a batch is scaled up to; the number of items by default.
    most_blind : float or None
        Threads that step at the same time do not see each other's steps: together they move the
        parameters by up to p * rate from where each one stands.  While that is more than
        `most_blind`, in the first steps of a decreasing schedule, fewer threads work.  None: all
        work from the start.
    observe_every : float or None
        Passes between two calls of `observer`; None: after every pass.
    observer : callable or None
        Gets an :class:`~dpsvi.base.Event`; a true answer ends the fit.
    on_task : callable or None
        Gets the :class:`~dpsvi.task.Task` before the first step, for progress displays.

    Raises
    ------
    DivergedError
        A parameter became NaN or infinite.
    """
    run = engines.get(engine)
    model, n_items = state.model, len(items.offsets) - 1
    works = make_works(model, items, batch_size, n_jobs)
    task = make_task(model, state.shared, items, batch_size, works)
    if on_task is not None:
        on_task(task)
    steps_a_pass = math.ceil(n_items / batch_size)
    sizes = np.full(steps_a_pass, batch_size)
    sizes[-1] = n_items - batch_size * (steps_a_pass - 1)
    looks = _cuts(steps_a_pass, 1.0 if observe_every is None else observe_every)
    refines = set()
    if model.refine is not None:
        refines = _cuts(steps_a_pass, max(1 / _REFINES_A_PASS, _STEPS_A_REFINE / steps_a_pass))
    seconds = 0.0
    for epoch in range(n_passes):
        order = rng.permutation(n_items).astype(np.int32)
        first = 0
        while first < steps_a_pass:
            last = min(c for c in looks | refines | {steps_a_pass} if c > first)
            if local_steps is not None:
                last = min(last, first + n_jobs * local_steps)
            n_threads = n_jobs
            if most_blind is not None:
                n_threads = _threads_at(schedule, state.step, n_jobs, most_blind)
            if n_threads < n_jobs:
                last = min(last, first + n_threads)
            started = time.perf_counter()
            first, rate = _segment(
                run, task._replace(works=works[:n_threads]), state, schedule, order, sizes, first,
                last, total_items or n_items,
            )  # fmt: skip
            if first in refines:
                _refine(model, state, works)
            seconds += time.perf_counter() - started
            if first in looks and observer is not None:
                passes = epoch + first / steps_a_pass
                if observer(Event(state.step, state.items, passes, seconds, rate, state)):
                    return state
    return state


def _threads_at(schedule, step: int, n_jobs: int, most_blind: float) -> int:
    """As many threads as the rate of this step allows."""
    rate = float(schedule(np.array([step]))[0])
    return max(1, min(n_jobs, int(most_blind / rate)))


def _cuts(steps_a_pass: int, every: float) -> set[int]:
    """Step numbers within a pass after which something happens `every` passes."""
    n = max(1, round(1.0 / every)) if every < 1 else 1
    return {round(steps_a_pass * (i + 1) / n) for i in range(n)} - {0}


def _segment(run, task, state, schedule, order, sizes, first, last, total):
    """Run steps [first, last) of a pass, or fewer when the scale must be folded in before."""
    model, batch_size = state.model, task.batch_size
    t = np.arange(state.step, state.step + last - first)
    rates = np.asarray(schedule(t), dtype=np.float64)
    scales, gains, n = step_tables(
        rates, state.scale, sizes[first:last], total, model.additive, model.real
    )
    task.counter[0], task.stop[0] = 0, RUNNING
    task = task._replace(
        order=order[first * batch_size : (first + n) * batch_size], scales=scales, gains=gains
    )
    try:
        run(task, n)
    finally:
        # Threads finish the step they are in before they leave: the clock is exact even then.
        done = min(int(task.counter[0]), n)
        state.step += done
        state.items += int(sizes[first : first + done].sum())
        state.scale = float(scales[done])
    if task.stop[0] == DIVERGED:
        raise DivergedError(
            f"{model.name}: a statistic became NaN or infinite at step {state.step}"
        )
    # A segment ends at a boundary of ours or where the scale is spent.
    if n < last - first or state.scale < _SMALL_SCALE:
        state.renormalise()
    return first + n, float(rates[n - 1])


def _refine(model: Model, state: State, works: Iterable) -> None:
    """Let the model learn its priors from what the local steps saw since the last time."""
    tally = sum(work.tally for work in works)
    for work in works:
        work.tally[:] = 0
    model.refine(model.hyper, state, tally)
