"""The clock of a run, and the copies of the topics taken while it stands still."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np


class Topics(NamedTuple):
    """What a model knows at one moment."""

    counts: np.ndarray  # (n_words, n_topics): pseudo-counts, prior included, or probabilities
    alpha: np.ndarray | float  # prior of the topic proportions, (n_topics,) or one for all
    eta: np.ndarray | float  # prior of the words of a topic


class Snapshot(NamedTuple):
    """Topics at one moment of the training."""

    seconds: float
    passes: float
    topics: Topics


class Recorder:
    """Times a training that calls back after each of its steps.

    Only the training counts: not what comes before :meth:`start`, and not the copies, which are
    judged after the training, so that evaluation neither costs time nor disturbs caches.

    Parameters
    ----------
    seconds, passes : float, int
        The training is told to stop at whichever it reaches first.
    second_marks, pass_marks : sequence of float
        A copy is taken at the end of the first step at or behind each of them, and at the end.
    now : callable
        The time in seconds.

    Attributes
    ----------
    snapshots : list of Snapshot
    """

    def __init__(
        self, seconds: float, passes: int, second_marks: Sequence[float] = (),
        pass_marks: Sequence[float] = (), now: Callable[[], float] = time.perf_counter,
    ):  # fmt: skip
        self.snapshots: list[Snapshot] = []
        self._limits = seconds, passes
        self._due = sorted(second_marks), sorted(pass_marks)
        self._now = now
        self._seconds = 0.0
        self._resumed = None

    def start(self) -> None:
        """Start the clock: from here on everything counts, drawing the first topics too."""
        self._resumed = self._now()

    @contextmanager
    def standing(self) -> Iterator[float]:
        """Stop the clock for a while and tell how far it is."""
        self._seconds += self._now() - self._resumed
        yield self._seconds
        self._resumed = self._now()

    def time_is_up(self) -> bool:
        """Tell whether the seconds are spent."""
        with self.standing() as seconds:
            return seconds >= self._limits[0]

    def take(self, passes: float, topics: Callable[[], Topics]) -> None:
        """Take a copy now: the training has ended."""
        with self.standing() as seconds:
            self._copy(seconds, passes, topics)

    def __call__(self, passes: float, topics: Callable[[], Topics]) -> bool:
        """Tell the clock that a step has ended; True when the training is to end.

        Parameters
        ----------
        passes : float
            Passes over the training documents so far.
        topics : callable
            Called only when a copy is due.
        """
        with self.standing() as seconds:
            reached = seconds, passes
            ends = any(r >= limit for r, limit in zip(reached, self._limits, strict=True))
            due = [marks and r >= marks[0] for r, marks in zip(reached, self._due, strict=True)]
            if ends or any(due):
                self._copy(seconds, passes, topics)
                self._due = tuple(
                    [mark for mark in marks if mark > r]
                    for r, marks in zip(reached, self._due, strict=True)
                )
        return ends

    def _copy(self, seconds, passes, topics):
        found = topics()
        counts = np.array(found.counts, np.float32, order="C")
        copies = (np.array(prior, np.float64) for prior in (found.alpha, found.eta))
        self.snapshots.append(Snapshot(seconds, passes, Topics(counts, *copies)))
