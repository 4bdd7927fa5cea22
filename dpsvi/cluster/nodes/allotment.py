"""How many steps a worker is given at a time: B, and what must not be in flight at once."""

from __future__ import annotations

import logging

import numpy as np

from dpsvi.base import Star
from dpsvi.cluster.nodes.steering import Steering
from dpsvi.training.driver import blind_steps
from dpsvi.training.job import Job

log = logging.getLogger(__name__)

# B where nothing is said: the more steps, the fewer rows they touch each, and the less an exchange
# costs.  How many may not see each other is a matter of the rates, see `room`; else only
# checkpoints and the end wait for them.
LOCAL_STEPS = 1024
# While a batch has a larger rate than this, and than half-way through the passes, parameters are so
# open that stale steps lead to worse optima: there the bound on what they weigh falls as the rate
# grows, if batches are cut in parts.  Whole ones would leave workers idle.
_SETTLED_RATE = 0.01
_PASS_IN_FLIGHT = 0.5  # no more of a pass than this with all workers together
_PASS_UNBOUND = 0.1  # where no bound on the rates keeps stale updates small


class Allotment:
    """The sizes of what is handed out.

    Parameters
    ----------
    job : Job
    strategy : dpsvi.base.Star
    """

    def __init__(self, job: Job, strategy: Star):
        self.job, self._strategy = job, strategy
        waiting = job.cluster.waiting
        self._steering = None if waiting is None else Steering(waiting)
        self._pace: dict[int, float] = {}  # steps a second
        self._warned = False  # of fewer steps than were asked for

    def learn(self, worker: int, n_steps: int, waited: float, seconds: float) -> None:
        """Take into account how long `worker` waited for, and took over, its last steps."""
        if self._steering is not None:
            self._steering.learn(worker, waited, seconds)
        elif seconds > 0:
            self._pace[worker] = n_steps / seconds

    def forget(self, worker: int) -> None:
        """Forget the pace of a lost worker."""
        self._pace.pop(worker, None)

    def alone(self, n_workers: int) -> bool:
        """Whether the parameters of the only worker are the master's: no update can be stale."""
        cluster = self.job.cluster
        as_they_are = cluster.global_rate == 1 and cluster.statistics == "float32"
        as_they_are = as_they_are and self._strategy.as_sent
        at_a_time = cluster.master_batch == 1 and not cluster.prefetch
        return n_workers == 1 and as_they_are and at_a_time

    def room(self, n_workers: int) -> float:
        """Steps of all workers that may be in flight.

        The bound is on those that a worker does not see, which are the others' steps.
        """
        job, passes = self.job, self.job.passes
        if job.most_blind is None or self._strategy.replicas:
            return np.inf
        if self.alone(n_workers) and job.n_jobs <= blind_steps(
            job.schedule, passes.clock, job.most_blind
        ):  # all its threads may work, and nobody else is there
            return np.inf
        # Of n workers' steps each worker sees its own.
        others = n_workers / max(1, n_workers - 1)
        most = job.most_blind * self._strategy.staleness_factor * others
        if job.parts > 1:
            now, half_way = passes.clock, passes.clock + (passes.n_left - passes.n_done) / 2
            rate, settled = job.parts * job.schedule(np.array([now, half_way]))
            most *= min(1.0, max(_SETTLED_RATE, settled) / rate)
        return blind_steps(job.schedule, passes.clock, most)

    def steps(self, worker: int, n_workers: int) -> int:
        """Steps for `worker`, one of so many."""
        job, passes, room = self.job, self.job.passes, self.room(n_workers)
        parts = max(1, n_workers) * (2 if job.cluster.prefetch else 1)
        steps = LOCAL_STEPS if self._steering is None else self._steering.steps(worker)
        done = passes.n_done / max(1, passes.n_done + passes.n_left)
        wanted = min(job.n_jobs * (job.local_steps or steps), self._strategy.local_steps(done))
        most = wanted
        if job.local_steps is None:
            # A change counts as much as its items; how much it moves is no matter of rates.
            bound = job.most_blind is not None or job.state.sums_memory or self.alone(n_workers)
            share = (_PASS_IN_FLIGHT if bound else _PASS_UNBOUND) / parts
            most = min(most, share * passes.steps_a_pass)
            if parts > 1:
                # The last steps are shared out in ever smaller parts, ...
                most = min(most, passes.n_left // (2 * parts))
        if job.most_blind is not None and self._strategy.replicas:
            # Nobody else reads a replica; but it must not come far from the others.
            blind = job.most_blind * self._strategy.staleness_factor
            most = min(most, blind_steps(job.schedule, passes.clock, blind))
        if np.isfinite(room):
            most = min(most, room / parts)
        most = max(1, int(most))
        if job.local_steps is None:
            # ... a slow worker's smaller: all end together.  Of two steps none is lost to one who
            # is hardly slower: rounded down, half of all workers would have one less.
            most = max(1, round(most * self._relative_pace(worker)))
        self._warn_of_fewer(most, wanted, n_workers)
        return most

    def _warn_of_fewer(self, most: int, wanted: int, n_workers: int) -> None:
        """Say once that workers get fewer steps than they were to have."""
        job = self.job
        if job.local_steps is None or self._warned or most >= wanted:
            return
        self._warned = True
        log.warning(
            "local_steps=%d of %d threads each are %d steps, but a worker of %d gets %d for now: "
            "rates are too large for more steps that do not see each other (most_blind=%g); "
            "most_blind=None gives all", job.local_steps, job.n_jobs, job.n_jobs * job.local_steps,
            n_workers, most, job.most_blind,
        )  # fmt: skip

    def _relative_pace(self, worker: int) -> float:
        """Speed of `worker` relative to the median worker, capped at 1."""
        if worker not in self._pace:
            return 1.0
        return min(1.0, self._pace[worker] / float(np.median([*self._pace.values()])))
