"""An engine that runs all steps in the calling thread, one after the other."""

from dpsvi.base import Engine
from dpsvi.training.driver import run_locally


def fit(job):
    """Carry out the job."""
    return run_locally(job, lambda task, n_steps: task.run_thread(0, n_steps))


ENGINE = Engine(fit, one_thread=True)
