"""Lock-free threads in one process (Hogwild; Alg. 2 and 4 with one worker)."""

from __future__ import annotations

from dpsvi.base import Engine
from dpsvi.training import thread_pool
from dpsvi.training.driver import run_locally
from dpsvi.training.job import Job


def fit(job: Job) -> bool:
    """Carry out `job` on ``job.n_jobs`` threads; whether the observer ended it."""
    return run_locally(job, thread_pool.run)


ENGINE = Engine(fit)
