"""What happens between two segments of a fit, on every engine.

Between two segments, and only there, parameters are consistent.  Then the observer gets to see
them and may end the fit, and a checkpoint is written when it is time for one.  Neither counts as
training time.  Whoever runs the segments (the driver of one process, the master, a peer) says how
far the fit is and what a checkpoint would hold; this module decides what is done with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from dpsvi.base import Event
from dpsvi.errors import LostRankError
from dpsvi.training.job import Job, Snapshot
from dpsvi.training.ledger import Cuts
from dpsvi.training.state import State
from dpsvi.training.task import Task


class Progress(NamedTuple):
    """How far a fit is: its parameters, and its ledger in two numbers."""

    state: State
    n_done: int  # steps of all passes
    clock: int  # number in the schedule of the step whose rate observers get

    @classmethod
    def of(cls, snapshot: Snapshot) -> Progress:
        """How far a fit is whose steps are all in `snapshot`."""
        return cls(snapshot.state, snapshot.passes.n_done, snapshot.passes.clock)


class Boundary:
    """The boundaries between the segments of one fit.

    Parameters
    ----------
    job : Job
    clock : callable
        Seconds.

    Attributes
    ----------
    ended : bool
        Whether the observer has ended the fit.
    paused : float
        Seconds since :meth:`start` that were no training time.
    cuts : Cuts
        Where the observer looks.
    """

    def __init__(self, job: Job, clock: Callable[[], float] = time.perf_counter):
        self.job, self._clock = job, clock
        self.ended, self.paused = False, 0.0
        self.cuts = Cuts(job.passes.steps_a_pass, job.observe_every)
        self._n_done = job.passes.n_done  # at the last boundary
        self._started: float | None = None
        self._pausing: float | None = None  # since when

    def start(self, task: Task | None = None) -> None:
        """Begin to count training time, before the first segment, which `task` will run."""
        self._started = self._clock()
        if self.job.on_start is not None:
            self.job.on_start(self, task)

    @property
    def seconds(self) -> float:
        """Training time, with that before the checkpoint from which the fit goes on."""
        if self._started is None:
            return self.job.seconds
        # Progress displays look at any time.
        now = self._clock() if (pausing := self._pausing) is None else pausing
        return self.job.seconds + now - self._started - self.paused

    @property
    def due(self) -> bool:
        """Whether it is time for a checkpoint."""
        return self.job.checkpoint is not None and self.job.checkpoint.due

    def reached(self, progress: Progress, snapshot: Callable[[], Snapshot]) -> bool:
        """Observe, and if the fit goes on write a checkpoint when it is time.

        Parameters
        ----------
        progress : Progress
        snapshot : callable
            Gives what a checkpoint must hold; called only when one is due.

        Returns
        -------
        bool
            Whether the observer has ended the fit.
        """
        if not self.observe(progress) and self.due:
            self.save(snapshot())
        return self.ended

    def observe(self, progress: Progress) -> bool:
        """Let the observer look if its time has come; whether it has ended the fit."""
        job, state, n_done = self.job, progress.state, progress.n_done
        # Progress displays read the clock of the job's state; a peer steps a replica of it.
        job.state.step, job.state.items = state.step, state.items
        before, self._n_done = self._n_done, n_done
        if job.observer is not None and self.cuts.crossed(before, n_done):
            epoch = n_done / self.cuts.steps_a_pass
            rate = float(job.schedule(np.array([progress.clock]))[0])
            event = Event(state.step, state.items, epoch, self.seconds, rate, state)
            with self._pause():
                self.ended |= bool(job.observer(event))
        return self.ended

    def save(self, snapshot: Snapshot) -> None:
        """Write a checkpoint if any are wanted, whether it is time for one or not."""
        if self.job.checkpoint is not None:
            with self._pause():
                self.job.checkpoint(snapshot)

    @contextmanager
    def interruptible(self, snapshot: Callable[[], Snapshot]) -> Iterator[None]:
        """Run segments in this context: what interrupts them leaves a checkpoint.

        That is a signal, or the loss of ranks without which the fit cannot go on.
        """
        try:
            yield
        except (KeyboardInterrupt, LostRankError):
            self.save(snapshot())
            raise

    @contextmanager
    def _pause(self):
        """Take the time of the block out of the training time."""
        began = self._pausing = self._clock()
        try:
            yield
        finally:
            self.paused += self._clock() - began
            self._pausing = None
