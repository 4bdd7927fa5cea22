"""The threads that carry out the steps of a segment.

p threads run the compiled loop over one shared parameter matrix.  None waits for another, none
holds the GIL, none takes a lock.  The calling thread only watches, so that Ctrl-C is handled.
"""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from queue import Empty, SimpleQueue

from dpsvi.training.loop import RUNNING, STOP
from dpsvi.training.signals import Deferred
from dpsvi.training.task import Task

_LOOK_APART = 0.1  # seconds between two looks for a signal


def run(task: Task, n_steps: int) -> None:
    """Run steps [0, n_steps) on ``len(task.works)`` threads and return when all are done.

    Raises
    ------
    Exception
        The first exception of any thread; the other threads are stopped first.
    KeyboardInterrupt
        After the threads have finished the step they were in.
    """
    ended: SimpleQueue[int | None] = SimpleQueue()  # threads; None for a signal

    def body(thread):
        try:
            task.run_thread(thread, n_steps)
        except BaseException:
            _stop(task)
            raise
        finally:
            ended.put(thread)

    n_threads = len(task.works)
    # Signals are handled in the main thread alone: any other works itself, on rows that its core
    # has in its cache (a worker just received them).  A thread that is woken would have to fetch
    # them.
    works_too = threading.current_thread() is not threading.main_thread()
    # A signal is delivered where it can do no harm: what it raises elsewhere may leave a lock that
    # the threads need to end, or a thread that nobody knows of.
    with Deferred(lambda: ended.put(None)) as signals:
        pool = _pool(n_threads)
        futures = [pool.submit(body, thread) for thread in range(int(works_too), n_threads)]
        try:
            if works_too:
                body(0)
            for _ in range(n_threads):
                while _next(ended) is None:
                    signals.deliver()
                    _stop(task)  # who asked for this segment gets the signal after it
        except BaseException:
            _stop(task)
            raise
        finally:
            # Nobody may touch the parameters before the last thread has left them, however often
            # somebody presses Ctrl-C.
            wait(futures)
    for future in futures:
        future.result()


def _next(ended: SimpleQueue) -> int | None:
    """What comes next.  A signal in the moment in which Python begins to wait does not end that."""
    while True:
        try:
            return ended.get(timeout=_LOOK_APART)
        except Empty:
            pass


def _pool(n_threads: int) -> ThreadPoolExecutor:
    """Threads of the calling thread, kept from one segment to the next.

    A new thread would begin on whichever core is idle, often one that has been asleep, and a fit
    may have many segments.
    """
    if getattr(_mine, "size", 0) < n_threads:
        _mine.pool, _mine.size = ThreadPoolExecutor(n_threads, "dpsvi"), n_threads
    return _mine.pool


def _forget_pool() -> None:
    """A forked process has inherited the name of the threads, but not the threads."""
    global _mine
    _mine = threading.local()


_forget_pool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)


def _stop(task: Task) -> None:
    """Ask all threads to leave after their step; a divergence that was noticed stays noticed."""
    if task.stop[0] == RUNNING:
        task.stop[0] = STOP
