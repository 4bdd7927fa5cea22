"""Whoever waits for the compiler is told so; nobody waits for a clock here."""

import logging
import re
import threading

import numba
import pytest
from numba.extending import overload

from dpsvi import DPSVILDA
from dpsvi.evaluation import completion
from dpsvi.kernels.jit import kernel
from dpsvi.training import compiling

BEGUN = "{}: compiling, once; later runs find the compiled code"


class Heard(logging.Handler):
    """What was said, and an event that is set when anything was."""

    def __init__(self):
        super().__init__()
        self.messages, self.event = [], threading.Event()

    def emit(self, record):
        self.messages.append(record.getMessage())
        self.event.set()


@pytest.fixture
def heard(monkeypatch, tmp_path):
    monkeypatch.setattr(compiling, "_SILENT_SECONDS", 0.0)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))  # nothing is compiled before
    handler, log = Heard(), logging.getLogger(compiling.__name__)
    before = log.level
    log.addHandler(handler)
    log.setLevel("INFO")
    yield handler
    log.removeHandler(handler)
    log.setLevel(before)


def until_told():
    """Called by a kernel whose compilation lasts until somebody has been told of it."""


@overload(until_told)
def _until_told():
    assert until_told.event.wait(60)
    return lambda: None


def infer(basis, alpha, items, first, last, digamma, tol, n_sweeps, gamma):
    until_told()
    for d in range(first, last):
        for k in range(alpha.shape[0]):
            gamma[d, k] = alpha[k]


def quick(x):
    return x


def test_a_long_compilation_is_reported(heard):
    with compiling.reported("lda"):
        assert heard.event.wait(60)
    assert heard.messages[0] == BEGUN.format("lda")
    assert re.fullmatch(r"lda: compiled in \d+\.\d s", heard.messages[1])


def test_code_that_is_there_is_loaded_without_a_word(heard, monkeypatch):
    monkeypatch.setattr(compiling, "_SILENT_SECONDS", 60.0)
    with compiling.reported("lda"):
        pass
    assert not heard.messages


def test_what_is_compiled_within_a_block_is_a_part_of_it(heard):
    with compiling.reported("lda"):
        assert heard.event.wait(60)
        with compiling.reported("evaluation.infer"):
            pass
    assert [message.split(":")[0] for message in heard.messages] == ["lda", "lda"]


@pytest.mark.parametrize("ask", ["evaluate", "transform"])
def test_the_first_score_says_that_it_compiles(ask, heard, X, monkeypatch):
    lda = DPSVILDA(2, max_iter=1, random_state=0).fit(X)
    heard.messages.clear()
    heard.event.clear()
    until_told.event = heard.event
    monkeypatch.setattr(infer, "__module__", "dpsvi.evaluation.infer")
    monkeypatch.setattr(completion, "infer", kernel(infer))
    getattr(lda, ask)(X)
    first, *rest = heard.messages
    assert first == BEGUN.format("dpsvi.evaluation.infer")
    assert re.fullmatch(r"dpsvi\.evaluation\.infer: compiled in \d+\.\d s", rest[0])


def test_code_of_others_is_not_reported(heard):
    assert numba.njit(quick)(1) == 1
    assert not heard.messages
