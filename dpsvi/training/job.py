"""What an engine gets to carry out a fit, and what a fit needs to continue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from dpsvi.base import Event, Items, Schedule
from dpsvi.training.ledger import Ledger
from dpsvi.training.state import State
from dpsvi.training.task import Task


class Job(NamedTuple):
    """All that an engine gets.

    Parameters
    ----------
    state : State
        Changed in place.
    items : Items
    passes : Ledger
        The ledger of the steps to be done.
    schedule : callable, step numbers -> rates in (0, 1]
    n_jobs : int, >= 1
        Threads p.
    local_steps : int or None
        B: all threads meet after p * B steps.  None: the engine's choice.
    total_items : float or None
        N, what a batch is scaled up to; the number of items by default.
    most_blind : float or None
        Threads that step at the same time do not see each other's steps: together they move the
        parameters by up to p * rate from where each one stands.  While that is more than
        `most_blind`, in the first steps of a decreasing schedule, fewer threads work.  None: all
        work from the start.
    parts : float, >= 1
        Steps that a batch was cut in, for workers to share; each has that part of the rate.
    observe_every : float
        Passes between two calls of `observer`, at most 1.
    observer : callable or None
        Gets an :class:`~dpsvi.base.Event`; a true answer ends the fit.
    on_start : callable or None
        Gets the :class:`~dpsvi.training.boundary.Boundary`, which knows the training time, before
        the first step, and the :class:`~dpsvi.training.task.Task` if steps are made in this
        process: for progress displays.
    checkpoint : dpsvi.training.checkpoint.CheckpointFolder or None
        Where a fit that is to go on later is written: ``checkpoint(snapshot)`` does so, and
        ``checkpoint.due`` says whether it is time for it.
    seconds : float
        Training time before a checkpoint.
    cluster : dpsvi.cluster.Cluster or None
        Options of the engine that runs on several processes.
    strategy_state : (str, dict) or None
        Name and state of the strategy at the checkpoint that the fit goes on from.
    report : dict or None
        Where that engine leaves what it measured of its exchanges, and every one how often how
        many threads were at work: steps, or exchanges.
    """

    state: State
    items: Items
    passes: Ledger
    schedule: Schedule
    n_jobs: int = 1
    local_steps: int | None = None
    total_items: float | None = None
    most_blind: float | None = None
    parts: float = 1.0
    observe_every: float = 1.0
    observer: Callable[[Event], bool] | None = None
    on_start: Callable[[Any, Task | None], None] | None = None
    checkpoint: Any = None
    seconds: float = 0.0
    cluster: Any = None
    strategy_state: tuple[str, dict] | None = None
    report: dict | None = None


class Snapshot(NamedTuple):
    """Everything that a fit needs to go on, at a moment when parameters are consistent."""

    state: State
    passes: Ledger
    seconds: float  # of training
    strategy_state: tuple[str, dict] | None = None  # its name, its state: arrays and numbers
