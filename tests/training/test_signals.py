"""Signals that wait for the end of a merge."""

import os
import signal
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from dpsvi.training import thread_pool
from dpsvi.training.loop import RUNNING, STOP
from dpsvi.training.signals import Deferred


def test_signals_wait_for_the_end_of_a_merge():
    seen = []
    before = signal.signal(signal.SIGUSR1, lambda *_: seen.append("handled"))
    try:
        with Deferred() as signals:
            signal.raise_signal(signal.SIGUSR1)
            assert not seen
            signals.deliver()
            assert seen == ["handled"]
            signal.raise_signal(signal.SIGUSR1)
            assert len(seen) == 2, "the second is not kept"
        assert len(seen) == 2, "and handled once"
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_no_signal_breaks_into_a_merge_and_the_second_is_delivered_at_once():
    """One that ends the process does; what another one raises waits like the first."""
    seen = []

    def handler(number, frame):
        seen.append(number)
        raise KeyboardInterrupt(len(seen))

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with Deferred() as signals:
            signal.raise_signal(signal.SIGUSR1)
            assert not seen
            signal.raise_signal(signal.SIGUSR1)
            assert len(seen) == 2, "both handlers were called, and nothing was raised"
            with pytest.raises(KeyboardInterrupt, match="2"):
                signals.deliver()
            signal.raise_signal(signal.SIGUSR1)
            assert len(seen) == 3, "after the first one they do not wait"
            with pytest.raises(KeyboardInterrupt, match="3"):
                signals.deliver()
        assert len(seen) == 3
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_an_error_takes_no_signal_away():
    """It comes from the block; what waits there is handled all the same, and is what ends it."""
    before = signal.signal(signal.SIGUSR1, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt) as caught, Deferred():
            signal.raise_signal(signal.SIGUSR1)
            raise ValueError("of the block")
        assert "of the block" in str(caught.value.__context__)
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_segment_ends_for_a_signal_that_somebody_outside_keeps():
    """A peer's turn may be long: it is to end after a step, and the signal is then heard."""
    task = SimpleNamespace(works=[None], stop=np.array([RUNNING]))
    ended = threading.Event()

    def run_thread(thread, n_steps):
        os.kill(os.getpid(), signal.SIGUSR1)
        while task.stop[0] == RUNNING:
            assert not ended.wait(0.01)

    task.run_thread = run_thread
    late = threading.Timer(30, ended.set)
    late.start()
    before = signal.signal(signal.SIGUSR1, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), Deferred() as signals:
            thread_pool.run(task, 1)
            assert task.stop[0] == STOP
            signals.deliver()
            pytest.fail("it was lost")
        assert not ended.is_set(), "the segment did not end for it"
    finally:
        signal.signal(signal.SIGUSR1, before)
        late.cancel()


def test_an_engine_handles_what_was_kept_around_it():
    """Between two calls nobody could tell the other ranks."""
    seen = []
    before = signal.signal(signal.SIGUSR1, lambda *_: seen.append("handled"))
    try:
        with Deferred() as outer:
            signal.raise_signal(signal.SIGUSR1)
            outer_handler = signal.getsignal(signal.SIGUSR1)
            with Deferred(take_over=True) as inner:
                assert seen == []
                inner.deliver()
                assert seen == ["handled"]
                signal.raise_signal(signal.SIGUSR1)  # the second is handled at once
                assert seen == ["handled"] * 2
            assert signal.getsignal(signal.SIGUSR1) == outer_handler
            outer.deliver()
            assert seen == ["handled"] * 2
    finally:
        signal.signal(signal.SIGUSR1, before)
