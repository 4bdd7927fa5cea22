"""Serial SVI (Hoffman et al. 2013): one thread, one step after the other, bit-reproducible."""

from __future__ import annotations

from dpsvi.engines import threads
from dpsvi.task import Task


def run(task: Task, n_steps: int) -> None:
    """Run the steps in order.  The special case p = 1 of the lock-free engine (paper, 3.1)."""
    threads.run(task._replace(works=task.works[:1]), n_steps)
