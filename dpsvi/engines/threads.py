"""Lock-free threads in one process (Hogwild; Alg. 2 and 4 with one worker).

p threads run the compiled loop over one shared parameter matrix.  None waits for another, none
holds the GIL, none takes a lock.  The calling thread only watches, so that Ctrl-C is heard.
"""

from __future__ import annotations

import threading

from dpsvi.engines.loop import RUNNING, STOP
from dpsvi.fit import Job, run_locally
from dpsvi.task import Task


def fit(job: Job) -> bool:
    """Carry out `job` on ``job.n_jobs`` threads; whether the observer ended it."""
    return run_locally(job, run)


def run(task: Task, n_steps: int) -> None:
    """Run steps [0, n_steps) on ``len(task.works)`` threads and return when all are done.

    Raises
    ------
    Exception
        The first exception of any thread; the other threads are stopped first.
    KeyboardInterrupt
        After the threads have finished the step they were in.
    """
    failures = []

    def body(thread):
        try:
            task.run_thread(thread, n_steps)
        except BaseException as error:  # handed to the caller below, whatever it is
            failures.append(error)
            _stop(task)

    threads = [
        threading.Thread(target=body, args=(i,), name=f"dpsvi-{i}", daemon=True)
        for i in range(len(task.works))
    ]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    except BaseException:
        _stop(task)
        raise
    finally:
        # Nobody may touch the parameters before the last thread has left them.
        for thread in threads:
            if thread.ident is not None:
                thread.join()
    if failures:
        raise failures[0]


def _stop(task: Task) -> None:
    """Ask all threads to leave after their step; a divergence that was noticed stays noticed."""
    if task.stop[0] == RUNNING:
        task.stop[0] = STOP
