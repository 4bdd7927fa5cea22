"""Interrupts a call, in turn, wherever the main thread has just taken a lock of Python's own.

``python unlucky.py segment`` does so to the threads of a fit, ``transform`` to those that infer
documents; it prints whether there were more than a few such places, and hangs where a lock is left.
"""

import signal
import sys
import threading
from types import SimpleNamespace

import numpy as np

from dpsvi.evaluation import completion
from dpsvi.training import thread_pool
from dpsvi.training.loop import RUNNING

_enter, _left = threading.Condition.__enter__, 0


def signalled(condition):
    """Take the lock, which may be the one that an interrupt is to follow."""
    global _left
    found = _enter(condition)
    # Not `current_thread`, which takes a lock in a thread that is just beginning.
    if _left and threading.get_ident() == threading.main_thread().ident:
        _left -= 1
        if not _left:
            signal.raise_signal(signal.SIGINT)
    return found


def interrupted(call, number) -> bool:
    """Whether a call takes so many locks; then the interrupt after that one must be heard."""
    global _left
    _left = number
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        there, _left = not _left, 0
    assert not there, "an interrupt was lost"
    return False


def segment():
    """Steps of two threads, both of which must have left whatever comes."""
    done = []
    task = SimpleNamespace(
        works=[None] * 2, run_thread=lambda thread, n: done.append(thread), stop=np.array([RUNNING])
    )
    try:
        thread_pool.run(task, 10)
    finally:
        assert sorted(done) == [0, 1], done


def transform():
    """Documents in two threads."""
    completion._over_items(8, 2, lambda first, last: None)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent may ignore it
    threading.Condition.__enter__ = signalled
    call, number = {"segment": segment, "transform": transform}[sys.argv[1]], 1
    while interrupted(call, number):
        call()  # nothing was left behind
        number += 1
        thread_pool._forget_pool()  # the next one is made anew
    print(number > 5)
