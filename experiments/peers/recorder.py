"""The clock of a run, and the copies of the parameters taken while it stands still."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

FIRST = 0.05  # seconds
RATIO = 2**0.5  # between the times of two copies: even steps on a logarithmic axis


class Snapshot(NamedTuple):
    """Parameters at one moment of the training."""

    seconds: float
    passes: float
    parameters: np.ndarray  # float32, (n_words, n_topics): pseudo-counts of the topics


class Recorder:
    """Times a training that calls back after each of its steps.

    Only the training counts.  What comes before it is timed by :meth:`stage` under its own name;
    a snapshot is taken with the clock stopped and judged after the training, so that evaluation
    neither costs time nor disturbs caches and threads.

    Parameters
    ----------
    limit : float
        Seconds after which the training is told to stop.
    now : callable
        The time in seconds.

    Attributes
    ----------
    stages : dict of str to float
        Seconds of each stage before the training.
    snapshots : list of Snapshot
        At 0.05 s, 0.07 s, 0.1 s ... as soon after as a step ended, and when time was up.
    """

    def __init__(self, limit: float, now: Callable[[], float] = time.perf_counter):
        self.limit = limit
        self.stages: dict[str, float] = {}
        self.snapshots: list[Snapshot] = []
        self._now = now
        self._seconds = 0.0
        self._due = FIRST
        self._resumed = None

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time what is done before the training under its own name."""
        started = self._now()
        yield
        self.stages[name] = self._now() - started

    def start(self) -> None:
        """Start the clock: from here on everything counts, drawing the first parameters too."""
        self._resumed = self._now()

    def __call__(self, passes: float, parameters: Callable[[], np.ndarray]) -> bool:
        """Tell the clock that a step has ended.

        Parameters
        ----------
        passes : float
            Passes over the training documents so far.
        parameters : callable -> array, (n_words, n_topics)
            Called only when a snapshot is due; what it returns is copied.

        Returns
        -------
        bool
            True when time is up.
        """
        self._seconds += self._now() - self._resumed
        up = self._seconds >= self.limit
        if up or self._seconds >= self._due:
            copy = np.array(parameters(), np.float32, order="C")
            self.snapshots.append(Snapshot(self._seconds, passes, copy))
            while self._due <= self._seconds:
                self._due *= RATIO
        self._resumed = self._now()
        return up
