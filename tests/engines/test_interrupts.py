"""Ctrl-C in the middle of a fit."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import members
import numba
import numpy as np
import pytest
from numba.extending import overload
from tools.engine_fits import FLOAT, lda, toy

from dpsvi import engines, models
from dpsvi.engines import fit
from dpsvi.kernels.jit import as_items
from dpsvi.training.job import Job
from dpsvi.training.ledger import Ledger
from dpsvi.training.schedules import constant
from dpsvi.training.state import State


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


@pytest.mark.parametrize("name", models.names())
def test_numba_makes_no_tuple_where_an_interrupt_is_handled(name):
    """It runs Python code for that, and takes for granted that nothing is raised there."""
    member, made = members.get(name), []
    data = member.data(np.random.default_rng(0), 60)

    def notice(frame, event, arg):
        if event == "return" and frame.f_code.co_name == "_numba_unpickle":
            if isinstance(arg, type) and issubclass(arg, tuple):
                made.append(arg)

    for watch in (None, notice):  # what is compiled was compiled the first time
        sys.setprofile(watch)
        try:
            model = member.estimator(max_iter=2, validation_size=10).fit(**data)
            member.answer(model, data)
        finally:
            sys.setprofile(None)
    assert not made


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
    passes = Ledger(corpus.n_items, 10, 3, 0)

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
        [sys.executable, "-c", IMPATIENT], capture_output=True, text=True, timeout=240
    )
    assert done.stdout == "interrupted [0, 1]\n", done.stderr


UNLUCKY = Path(__file__).parents[1] / "tools" / "unlucky.py"


@pytest.mark.parametrize("call", ["segment", "transform"])
def test_an_interrupt_locks_no_thread_out(call):
    """It comes, in turn, wherever the main thread has just taken a lock of Python's own."""
    done = subprocess.run(
        [sys.executable, UNLUCKY, call], capture_output=True, text=True, timeout=240
    )
    assert done.stdout == "True\n", done.stderr
