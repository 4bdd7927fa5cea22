"""Engines: the same loop in one thread or in several, for any model."""

import math
import os
import signal
import subprocess
import sys
import threading
import time

import numba
import numpy as np
import pytest
from numba.extending import overload
from reference.lda import FixedPasses, TopicCorpus, documents_of, svi

from dpsvi import engines
from dpsvi.base import Model
from dpsvi.engines import fit
from dpsvi.errors import DivergedError
from dpsvi.kernels.jit import as_items
from dpsvi.models.lda.model import LOCAL_STEPS, make_model
from dpsvi.training.job import Job
from dpsvi.training.ledger import Passes, Work
from dpsvi.training.schedules import constant, robbins_monro
from dpsvi.training.state import State
from dpsvi.training.thread_pool import _crew

FLOAT = np.dtype(np.float32)
ENGINES = engines.names()
K, ALPHA, ETA = 5, 0.3, 0.05
SCHEDULE = robbins_monro(2.0, 0.7)


def lda(local_step, n_words, **options):
    options = dict(n_sweeps=5, tol=0.0) | options
    return make_model(n_words, K, ALPHA, ETA, local_step=local_step, **options)


def fit_lda(corpus, local_step="collapsed", n_passes=2, n_jobs=1, batch_size=32, **settings):
    rng = np.random.default_rng(3)
    model = lda(local_step, corpus.n_features)
    state = State.start(model, rng, n_jobs, corpus.n_items, corpus.nnz)
    items = as_items(corpus.offsets, corpus.index, corpus.value, FLOAT)
    settings = dict(schedule=SCHEDULE, engine="threads") | settings
    return fit(
        state, items, batch_size=batch_size, n_passes=n_passes, seed=3, n_jobs=n_jobs, **settings
    )


# --- one thread --------------------------------------------------------------------------------


@pytest.mark.parametrize("local_step", LOCAL_STEPS)
@pytest.mark.parametrize("local_steps", [None, 1, 3])
def test_one_thread_is_serial_bit_for_bit(corpus, local_step, local_steps):
    a, b, again = (
        fit_lda(corpus, local_step, engine=engine, local_steps=local_steps)
        for engine in ("serial", "threads", "threads")
    )
    assert a.step == b.step == 2 * math.ceil(corpus.n_items / 32)
    assert a.items == b.items == 2 * corpus.n_items
    for other in (b, again):
        assert np.array_equal(a.natural(), other.natural())
        assert np.array_equal(a.shared.totals, other.shared.totals)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("local_step", LOCAL_STEPS)
def test_several_steps_against_slow_svi(corpus, rng, engine, local_step):
    """Two passes of 13 steps, the last of a pass short; the first rates are clipped at 1."""
    corpus = corpus.select(slice(0, 124))
    passes = Passes(corpus.n_items, 10, 2, seed=7)
    orders = [passes.items(Work(epoch, 0, 0, 13, 0)) for epoch in range(2)]
    schedule = robbins_monro(0.5, 0.6)
    batches = [order[i : i + 10] for order in orders for i in range(0, len(order), 10)]
    first = rng.exponential(size=(K, corpus.n_features)).astype(np.float32)
    expected = svi(
        local_step, documents_of(corpus), ETA + first, ALPHA, ETA, batches,
        schedule(np.arange(len(batches))), n_sweeps=5,
    )  # fmt: skip

    model = lda(local_step, corpus.n_features)
    rows = np.zeros(model.shape, np.float32)
    rows[:, :K] = first.T
    state = State.resume(model, rows, 1)
    items = as_items(corpus.offsets, corpus.index, corpus.value, FLOAT)
    fit(
        state, items, schedule=schedule, batch_size=10, n_passes=2, seed=7, engine=engine,

    )  # fmt: skip
    lam = state.natural()[:, :K].T
    np.testing.assert_allclose(lam, expected, rtol=2e-3, atol=1e-3)
    assert np.abs(lam - expected).sum() < 1e-4 * expected.sum()
    assert state.step == len(batches)


@pytest.mark.parametrize("total_items", [None, 1000])
def test_batches_stand_for_all_items(corpus, total_items):
    """At rate 1 the parameters hold N/S times the tokens of the last batch."""
    corpus = corpus.select(slice(0, 50))
    state = fit_lda(
        corpus, schedule=constant(1.0), batch_size=50, n_passes=1, total_items=total_items
    )
    tokens = corpus.n_tokens * (total_items or 50) / 50
    found = state.natural().sum(dtype=np.float64) - ETA * np.prod(state.model.shape)
    assert found == pytest.approx(tokens, rel=1e-5)


@pytest.mark.parametrize("local_steps", [None, 3])
@pytest.mark.parametrize("rate", [0.05, 0.9])
def test_long_fits_stay_in_range(corpus, rate, local_steps):
    """Undone, the decay of these steps would be e^-200 to e^-9000."""
    state = fit_lda(
        corpus, schedule=constant(rate), batch_size=1, n_passes=10, local_steps=local_steps
    )
    assert state.step == 4000 and 1e-14 < state.scale <= 1
    tokens = state.natural().sum(dtype=np.float64) - ETA * np.prod(state.model.shape)
    assert tokens == pytest.approx(corpus.n_tokens, rel=0.3), "the last 1/rate documents, times N"
    sums = state.scale * state.shared.totals.sum(axis=0)
    rows = state.scale * state.shared.rows.sum(axis=0, dtype=np.float64)
    np.testing.assert_allclose(sums, rows, rtol=1e-4)


def test_a_step_touches_the_rows_of_its_batch_only(known):
    """Words that no document of the pass holds keep their stored rows, bit for bit."""
    full = known.corpus()
    chosen = full.select(slice(0, 8))
    model = lda("mean_field", full.n_features)
    rows = np.zeros(model.shape, np.float32)
    rows[:, :K] = np.random.default_rng(1).exponential(size=(full.n_features, K))
    state = State.resume(model, rows.copy(), 1)
    items = as_items(chosen.offsets, chosen.index, chosen.value, FLOAT)
    fit(
        state, items, schedule=constant(0.1), batch_size=4, n_passes=1,
        seed=0, local_steps=1,
    )  # fmt: skip
    seen = np.unique(chosen.index)
    others = np.setdiff1d(np.arange(full.n_features), seen)
    assert len(others) > 10 and state.scale == pytest.approx(0.81)
    assert np.array_equal(state.shared.rows[others], rows[others])
    assert np.all(state.shared.rows[seen].sum(axis=1) > rows[seen].sum(axis=1))


# --- a model that only counts: the engine knows nothing of topics -----------------------------


def count(shared, scale, hyper, items, batch, work):
    """One visit of item i adds 1 to row i, and i to the memory of the item."""
    n = 0
    for d in batch:
        shared.item_memory[d, 0] += 1
        work.touched[n] = d
        for k in range(work.stats.shape[1]):
            work.stats[n, k] = 1
        n += 1
    return n


def fail_at_seven(shared, scale, hyper, items, batch, work):
    for d in batch:
        if d == 7:
            raise ValueError("item seven")
        shared.item_memory[d, 0] += 1
    return 0


def wait_for_the_other(shared, scale, hyper, items, batch, work):
    """Item d raises flag d and waits until the flag of its partner is up, within limits."""
    for d in batch:
        partner = d + 1 if d % 2 == 0 else d - 1
        shared.item_memory[d, 0] = 1
        for _ in range(int(hyper[0])):
            shared.item_memory[d, 1] += 1
            if shared.item_memory[partner, 0] == 1:
                break
        shared.item_memory[d, 2] = shared.item_memory[partner, 0]
    return 0


def compute_for_long(shared, scale, hyper, items, batch, work):
    for d in batch:
        x = 0.5
        for _ in range(int(hyper[0])):
            x = 3.7 * x * (1 - x)
        shared.item_memory[d, 0] = x
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


def toy(local, n_items, real=FLOAT, hyper=0.0):
    """A model with as many rows as items, over items without values, and its start."""
    model = Model(
        name="toy", shape=(n_items, 3), prior=np.zeros(3, real), hyper=np.array([hyper]),
        init=lambda rng: np.zeros((n_items, 3), real), local=local, scratch=lambda longest: 0,
        item_memory=4, learner="incremental",
    )  # fmt: skip
    items = as_items(np.arange(n_items + 1), np.zeros(0), np.zeros(n_items), real)
    return model, items


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


def test_two_threads_run_at_the_same_time():
    """Each of two items waits for the other: with a lock, or one after the other, neither ends."""
    model, items = toy(wait_for_the_other, 20, hyper=3e9)
    state = State.start(model, None, 2, 20)
    passes = FixedPasses(np.arange(20), 1, 1)
    engines.get("threads").fit(Job(state, items, passes, constant(0.5), 2))
    assert np.all(state.shared.item_memory[:, 2] == 1)


@pytest.mark.parametrize("engine", ["serial", "threads"])
def test_the_loop_does_not_hold_the_gil(engine):
    model, items = toy(compute_for_long, 4, hyper=5e7)
    state = State.start(model, None, 1, 4)
    ticks, ended = [], threading.Event()

    def tick():
        while not ended.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    settings = dict(schedule=constant(0.5), seed=0, engine=engine)
    fit(state, items, batch_size=4, n_passes=0, **settings)  # compiles
    ticker = threading.Thread(target=tick)
    ticker.start()
    start = time.perf_counter()
    fit(state, items, batch_size=4, n_passes=1, **settings)
    stop = time.perf_counter()
    ended.set()
    ticker.join()
    during = sum(start < t < stop for t in ticks)
    assert stop - start > 0.01, "too short to tell"
    assert during >= 3, "a Python thread should have had its turn"


@pytest.mark.parametrize(("engine", "n_jobs"), [("serial", 1), ("threads", 1), ("threads", 2)])
def test_an_error_in_a_local_step_ends_the_fit(engine, n_jobs):
    model, items = toy(fail_at_seven, 50)
    state = State.start(model, None, n_jobs, 50)
    all_here = threading.Barrier(n_jobs)
    list(_crew(n_jobs).map(lambda _: all_here.wait(), range(n_jobs)))
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


def compiling():
    """Called by a kernel; what it is compiled to is not what matters here."""


@overload(compiling)
def _notice_who_compiles():
    compiling.threads.add(threading.current_thread())
    return lambda: None


def notice(shared, scale, hyper, items, batch, work):
    compiling()
    return 0


def test_ctrl_c_cannot_hit_the_compiler(tmp_path, monkeypatch):
    """numba and llvmlite swallow an interrupt, or break: they must not run in the main thread."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))  # nothing is compiled before
    compiling.threads = set()
    model, items = toy(notice, 4)
    state = State.start(model, None, 1, 4)
    fit(
        state, items, schedule=constant(0.5), batch_size=4, n_passes=1,
        seed=0,
    )  # fmt: skip
    assert compiling.threads and threading.main_thread() not in compiling.threads


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


# --- several threads ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def zipf():
    """Many short documents over few words: the head of the vocabulary is in every batch."""
    return TopicCorpus(K, n_words=500, n_documents=6000, n_tokens=60, alpha=0.1, seed=1).corpus()


def test_lost_writes_stay_below_one_percent(zipf):
    """RACE by design: what over-writes lose, and what the column totals then drift by."""
    lost = []

    def observer(event):
        rows, totals = event.state.shared.rows, event.state.shared.totals.sum(axis=0)[:K]
        found = rows.sum(axis=0, dtype=np.float64)[:K]
        lost.append(np.abs(totals - found).sum() / totals.sum())

    state = fit_lda(zipf, n_passes=3, n_jobs=2, batch_size=16, observer=observer)
    assert len(lost) == 3 and max(lost) < 0.01
    assert state.shared.totals[1].sum() > 0, "the second thread had its share"

    state.recount()
    found = state.shared.rows.sum(axis=0, dtype=np.float64)
    assert np.array_equal(state.shared.totals.sum(axis=0), found)


@pytest.mark.parametrize("local_step", LOCAL_STEPS)
def test_two_threads_learn_as_well_as_one(zipf, local_step):
    """Bound per token of the training documents: within the spread of the order of documents."""
    from dpsvi.evaluation.completion import completion_perplexity

    def log_likelihood(**settings):
        state = fit_lda(zipf, local_step, n_passes=3, batch_size=16, **settings)
        lam = np.maximum(state.natural()[:, :K], ETA)
        return completion_perplexity(lam / lam.sum(axis=0), zipf, ALPHA).log_likelihood

    assert log_likelihood(n_jobs=2) == pytest.approx(log_likelihood(), abs=0.02)


SCRIPT = """
import numpy as np
from dpsvi import DPSVILDA

X = np.random.default_rng(0).poisson(0.5, size=(3000, 200))
def started(event):
    if event.step < 50:
        print("started", flush=True)
{fits}
print(lda.interrupted_, lda.n_batch_iter_ > 0)
theta = lda.transform(X[:5])
print(np.allclose(theta.sum(axis=1), 1), np.all(lda.components_ > 0))
"""

LOOP = """
fitted = []
try:
    for seed in range(3):
        lda = DPSVILDA(
            n_components=20, max_iter=10**6, batch_size=100, n_jobs={n_jobs}, engine={engine!r},
            keep_responsibilities={kept}, random_state=seed, callbacks=[started])
        fitted.append(lda)
        lda.{method}(X)
except KeyboardInterrupt as interrupt:
    print(len(fitted), interrupt.__notes__)
"""

SEARCH = """
from sklearn.model_selection import GridSearchCV
lda = DPSVILDA(n_components=20, max_iter=10**6, batch_size=100, callbacks=[started])
search = GridSearchCV(lda, {"learning_decay": [0.6, 0.8]}, cv=2, refit=False)
search.fit(X)
"""


def send_ctrl_c(script):
    """Run a script, send SIGINT when it has said that it started; its exit status and output."""
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline() == "started\n"
        time.sleep(0.5)
        os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=250)
    finally:
        process.kill()
    return process.returncode, out, err


@pytest.mark.parametrize("where", ["observer", "before the steps"])
def test_an_interrupt_loses_no_document(corpus, where):
    """It leaves a checkpoint that knows just what was done, wherever it comes."""
    kept, model = [], lda("collapsed", corpus.n_features)
    state = State.start(model, np.random.default_rng(3), 1)
    items = as_items(corpus.offsets, corpus.index, corpus.value, FLOAT)
    passes = Passes(corpus.n_items, 10, 3, 0)

    def interrupt(*_):
        raise KeyboardInterrupt

    class Checkpoints:
        due = True

        def __call__(self, snapshot):
            kept.append((snapshot.passes.n_done, snapshot.state.step, self.due))
            if where != "observer" and len(kept) == 2:
                passes.items, self.due = interrupt, False

    checkpoints = Checkpoints()
    checkpoints.due = where != "observer"
    job = Job(
        state, items, passes, constant(0.1), local_steps=2, checkpoint=checkpoints,
        observer=interrupt if where == "observer" else None,
    )  # fmt: skip
    with pytest.raises(KeyboardInterrupt):
        engines.get("serial").fit(job)
    assert kept[-1][0] == kept[-1][1] > 0
    assert [due for *_, due in kept] == [True] * (len(kept) - 1) + [False]


@pytest.mark.parametrize(
    ("engine", "n_jobs", "kept", "method"),
    [
        ("serial", 1, False, "fit"),
        ("threads", 2, False, "fit_transform"),
        ("threads", 1, True, "fit"),
        ("mpi", 1, False, "fit"),
        ("simulated", 1, False, "fit"),
    ],
)
def test_ctrl_c_keeps_the_model_so_far_and_ends_a_loop(engine, n_jobs, kept, method):
    loop = LOOP.format(engine=engine, n_jobs=n_jobs, kept=kept, method=method)
    code, out, err = send_ctrl_c(SCRIPT.format(fits=loop))
    assert code == 0, err
    told, kept, answers = out.splitlines()[-3:]
    assert told.startswith("1 ['interrupted after") and "the model so far is kept" in told
    assert (kept, answers) == ("130 True", "True True")


def test_ctrl_c_ends_a_search():
    """It ends the process as any interrupt that nobody catches does."""
    code, out, err = send_ctrl_c(SCRIPT.format(fits=SEARCH))
    assert code == -signal.SIGINT, err
    assert err.rstrip().splitlines()[-2] == "KeyboardInterrupt"
    assert "the model so far is kept" in err
    assert "130" not in out


IMPATIENT = """
import os, signal, threading, time
from types import SimpleNamespace
import numpy as np
from dpsvi.training import thread_pool
from dpsvi.training.loop import RUNNING

begun, left = threading.Event(), []

def run_thread(thread, n_steps):
    begun.set()
    time.sleep(2)  # in the middle of a step
    left.append(thread)

def interrupt():
    begun.wait()
    for _ in range(3):
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent may ignore it
threading.Thread(target=interrupt).start()
task = SimpleNamespace(works=[None, None], run_thread=run_thread, stop=np.array([RUNNING]))
try:
    thread_pool.run(task, 10)
except KeyboardInterrupt:
    print("interrupted", sorted(left))
"""


def test_threads_have_left_the_parameters_however_often_one_interrupts():
    done = subprocess.run(
        [sys.executable, "-c", IMPATIENT], capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "interrupted [0, 1]\n", done.stderr
