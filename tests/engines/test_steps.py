"""Steps of a model that only counts: each is done once, and errors end the fit."""

import math
import threading

import numpy as np
import pytest
from tools.engine_fits import count, toy

from dpsvi import engines
from dpsvi.engines import fit
from dpsvi.errors import DivergedError
from dpsvi.training.schedules import constant, robbins_monro
from dpsvi.training.state import State
from dpsvi.training.thread_pool import _pool


def fail_at_seven(shared, scale, hyper, items, batch, work):
    for d in batch:
        if d == 7:
            raise ValueError("item seven")
        shared.item_memory[d, 0] += 1
    return 0


def break_at_seven(shared, scale, hyper, items, batch, work):
    """Statistics of `hyper[0]` for item 7, else 1."""
    n = 0
    for d in batch:
        work.touched[n] = d
        for k in range(work.stats.shape[1]):
            work.stats[n, k] = hyper[0] if d == 7 else 1
        n += 1
    return n


@pytest.fixture
def segments(monkeypatch):
    """Number of steps in each call of the engine: between two of them the threads have met."""
    seen = []
    from dpsvi.training.thread_pool import run

    def spy(task, n_steps):
        seen.append(n_steps)
        run(task, n_steps)

    monkeypatch.setattr("dpsvi.training.thread_pool.run", spy)
    return seen


@pytest.mark.parametrize("real", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("engine", "n_jobs", "local_steps"),
    [("serial", 1, None), ("serial", 1, 2)]
    + [("threads", p, b) for p in (1, 2, 3) for b in (None, 1, 4, 1000)],
)
def test_every_step_is_done_once(engine, n_jobs, local_steps, real, segments):
    n_items, batch_size, n_passes = 203, 5, 3
    model, items = toy(count, n_items, np.dtype(real))
    state = State.start(model, None, n_jobs, n_items)
    fit(
        state, items, schedule=constant(0.5), batch_size=batch_size, n_passes=n_passes,
        seed=0, engine=engine, n_jobs=n_jobs, local_steps=local_steps,
    )  # fmt: skip
    steps = math.ceil(n_items / batch_size)
    assert state.step == steps * n_passes
    assert state.items == n_items * n_passes
    assert np.all(state.shared.item_memory[:, 0] == n_passes)
    # No two threads have the same item: nothing can be over-written, nothing may be lost.
    assert np.all(state.natural() == n_passes)
    assert np.all(state.shared.totals.sum(axis=0) == n_items * n_passes)

    most = steps if local_steps is None else n_jobs * local_steps
    a_pass = [most] * (steps // most) + [steps % most] * (steps % most > 0) or [steps]
    assert segments == a_pass * n_passes, "threads meet after p B steps, and after each pass"


def test_no_step_number_is_handed_out_twice():
    """As many tiny steps as it takes for threads to collide at the counter."""
    n_items = 2_000_000
    model, items = toy(count, n_items)
    state = State.start(model, None, 3, n_items)
    fit(
        state, items, schedule=constant(0.5), batch_size=1, n_passes=1,
        seed=0, engine="threads", n_jobs=3,
    )  # fmt: skip
    assert state.step == n_items
    assert np.all(state.shared.item_memory[:, 0] == 1)


@pytest.mark.parametrize(("engine", "n_jobs"), [("serial", 1), ("threads", 1), ("threads", 2)])
def test_an_error_in_a_local_step_ends_the_fit(engine, n_jobs):
    model, items = toy(fail_at_seven, 50)
    state = State.start(model, None, n_jobs, 50)
    all_here = threading.Barrier(n_jobs)
    list(_pool(n_jobs).map(lambda _: all_here.wait(), range(n_jobs)))
    before = threading.active_count()
    with pytest.raises(ValueError, match="item seven"):
        fit(
            state, items, schedule=constant(0.5), batch_size=1, n_passes=1000,
            seed=0, engine=engine, n_jobs=n_jobs,
        )  # fmt: skip
    assert state.items <= 50
    assert threading.active_count() == before, "no thread may go on"


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(("engine", "n_jobs"), [("serial", 1), ("threads", 2)])
@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_statistics_that_are_no_numbers(engine, n_jobs, value, real):
    model, items = toy(break_at_seven, 50, np.dtype(real), hyper=value)
    state = State.start(model, None, n_jobs, 50)
    with pytest.raises(DivergedError, match=r"toy.*NaN or infinite at step \d+"):
        fit(
            state, items, schedule=constant(0.5), batch_size=1, n_passes=1000,
            seed=0, engine=engine, n_jobs=n_jobs,
        )  # fmt: skip
    assert state.items <= 50


@pytest.mark.parametrize("where", [0.25, 1.0, 1.5])
def test_an_observer_ends_the_fit(where):
    model, items = toy(count, 40)
    state = State.start(model, None, 1, 40)
    events = []

    def observer(event):
        events.append(event)
        return event.epoch >= where

    fit(
        state, items, schedule=robbins_monro(1.0, 1.0), batch_size=2, n_passes=5,
        seed=0, observe_every=0.25, observer=observer,
    )  # fmt: skip
    expected = np.arange(0.25, where + 0.01, 0.25)
    assert [e.epoch for e in events] == pytest.approx(expected)
    assert [e.step for e in events] == [round(20 * e) for e in expected]
    assert [e.items for e in events] == [round(40 * e) for e in expected]
    assert [e.rate for e in events] == pytest.approx([1 / e.step for e in events])
    assert np.all(np.diff([0] + [e.seconds for e in events]) > 0)
    assert state.step == events[-1].step


def test_unknown_engine():
    with pytest.raises(ValueError, match=r"engine.*serial.*threads.*'gpu'"):
        engines.get("gpu")
