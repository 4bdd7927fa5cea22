"""What an engine, a schedule and an observer are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np


class Schedule(Protocol):
    """Step sizes: ``schedule(t)`` maps step numbers, from 0, to rates in (0, 1]."""

    def __call__(self, t: np.ndarray) -> np.ndarray:
        """Return the rates of steps `t`."""


class Event(NamedTuple):
    """What an observer learns at a boundary between segments; nothing in it may be written."""

    step: int  # steps done, from the start of the fit
    items: int  # items visited
    epoch: float  # passes over the data, may be fractional
    # Training time, evaluation and compilation excluded; during an evaluation the workers of a
    # cluster go on with the steps that they have, at most those in flight.
    seconds: float
    rate: float  # step size of the last step
    state: Any  # dpsvi.training.state.State


class Engine(NamedTuple):
    """What a module of :mod:`dpsvi.engines` says of itself, as its ``ENGINE``.

    Parameters
    ----------
    fit : callable(job) -> bool
        Carry out a :class:`dpsvi.training.job.Job` on its threads or ranks, and block; raise
        what any thread or rank raised.  The value says whether the job's observer ended it.
    options : type or None
        Class of the options that it takes as ``cluster``; None: it has none.
    collective : bool
        Whether every process of a launch calls `fit` and gets the same parameters back.
    simulated : bool
        Whether its times are those of a model, not of a clock.
    one_thread : bool
        Whether it runs one thread only.
    n_sharing : callable(options) -> int, or None
        How many workers are to step on one set of parameters without seeing each other's steps at
        once, given ``cluster`` or None; the same on every process.  None: one.
    """

    fit: Callable[[Any], bool]
    options: type | None = None
    collective: bool = False
    simulated: bool = False
    one_thread: bool = False
    n_sharing: Callable[[Any], int] | None = None
