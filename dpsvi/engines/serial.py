"""Serial SVI (Hoffman et al. 2013): one thread, one step after the other, bit-reproducible."""

from __future__ import annotations

from dpsvi.base import Engine
from dpsvi.training import thread_pool
from dpsvi.training.driver import run_locally
from dpsvi.training.job import Job


def fit(job: Job) -> bool:
    """Run the steps in order.  The special case p = 1 of the lock-free engine (paper, 3.1)."""
    return run_locally(job._replace(n_jobs=1), thread_pool.run)


ENGINE = Engine(fit, one_thread=True)
