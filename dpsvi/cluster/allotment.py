"""How many steps a worker is given at a time: B, and what must not be in flight at once."""

from __future__ import annotations

import numpy as np

from dpsvi.cluster.steering import Steering
from dpsvi.fit import Job, blind_steps

# B where nothing is said: on wiki the bytes a document, 84,000 at B = 1 and 14,000 at 64, hardly
# fall any more (experiments/results/cluster/exchange-wiki.md).
LOCAL_STEPS = 128
_PASS_IN_FLIGHT = 0.1  # and no more of a pass than this with all workers together
# A single worker meets nobody's parameters but its own: only checkpoints and the end wait for it.
_ALONE_STEPS, _ALONE_PASS = 1024, 0.25


class Allotment:
    """The sizes of what is handed out.

    Parameters
    ----------
    job : Job
    bears : float
        Of the strategy, see :class:`dpsvi.base.Strategy`.
    """

    def __init__(self, job: Job, bears: float):
        self.job, self._bears = job, bears
        waiting = job.cluster.waiting
        self._steering = None if waiting is None else Steering(waiting)

    def learn(self, worker: int, waited: float, seconds: float) -> None:
        """Take into account how long `worker` waited for, and took over, its last steps."""
        if self._steering is not None:
            self._steering.learn(worker, waited, seconds)

    def alone(self, n_workers: int) -> bool:
        """Whether the parameters of the only worker are the master's: no update can be stale."""
        cluster = self.job.cluster
        as_they_are = cluster.global_rate == 1 and cluster.statistics == "float32"
        at_a_time = cluster.master_batch == 1 and not cluster.prefetch
        return n_workers == 1 and as_they_are and at_a_time

    def room(self, n_workers: int) -> float:
        """Steps that may be in flight, not seeing each other."""
        job = self.job
        if job.most_blind is None:
            return np.inf
        if self.alone(n_workers) and job.n_jobs <= blind_steps(
            job.schedule, job.passes.clock, job.most_blind
        ):  # all its threads may work, and nobody else is there
            return np.inf
        return blind_steps(job.schedule, job.passes.clock, job.most_blind * self._bears)

    def steps(self, worker: int, n_workers: int) -> int:
        """Steps for `worker`, one of so many."""
        job, passes, room = self.job, self.job.passes, self.room(n_workers)
        parts = max(1, n_workers) * (2 if job.cluster.prefetch else 1)
        steps, share = LOCAL_STEPS, _PASS_IN_FLIGHT
        if self.alone(n_workers) and job.state.model.refine is None:  # else between its updates
            steps, share = _ALONE_STEPS, _ALONE_PASS
        if self._steering is not None:
            steps = self._steering.steps(worker)
        most = job.n_jobs * (job.local_steps or steps)
        if job.local_steps is None:
            most = min(most, int(share * passes.steps_a_pass / parts))
            if parts > 1:
                # The last steps are shared out in ever smaller parts: all end together.
                most = min(most, passes.n_left // (2 * parts))
        if np.isfinite(room):
            most = min(most, int(room / parts))
        return max(1, most)
