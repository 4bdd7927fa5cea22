"""What follows a fit while it runs: history, held-out score, callbacks, early stopping."""

from __future__ import annotations

import time

import numpy as np

from dpsvi.training.progress import Progress


class Monitor:
    """Follows one fit: history, held-out score, callbacks of both kinds, early stopping.

    Parameters
    ----------
    estimator : SVIEstimator
    held_out : object or None
        What ``estimator._held_out_score`` takes.
    X, y : as given to `fit`
        For scikit-learn's callbacks.

    Attributes
    ----------
    whole : int
        Passes of the fit, as far as they are planned: the held-out score is wanted after them.
    """

    def __init__(self, estimator, held_out=None, X=None, y=None):
        self.estimator, self.held_out, self.data = estimator, held_out, {"X": X, "y": y}
        self.every = max(1, round(estimator.evaluate_every))
        self.progress = Progress(
            estimator._items, lambda: estimator.history_, estimator._engine().simulated
        )
        self.whole = estimator.max_iter if estimator.max_iter != "auto" else 0
        self.checkpoints = None  # where the fit writes them, once it does
        self.restart()
        self.context = None
        if hasattr(estimator, "_init_callback_context"):
            self.context = estimator._init_callback_context(max_subtasks=None)
            self.context.call_on_fit_task_begin(estimator=estimator, **self.data)

    def restart(self) -> None:
        """Begin again, with another first value of the parameters."""
        self.looks, self.idle, self.best = 0, 0, -np.inf
        self.seconds, self.epoch = 0.0, 0.0
        self.before = 0.0, 0.0
        self.stopped, self.cancelled = False, False
        self.estimator.history_, self.estimator.interrupted_ = [], 0

    def start_phase(self) -> None:
        """Let the clock go on where the phase before ended."""
        self.before = self.seconds, self.epoch

    def add_seconds(self, seconds: float) -> None:
        """Count work between two phases."""
        self.before = self.before[0] + seconds, self.before[1]

    def memory(self) -> dict:
        """What :meth:`restore` needs, as JSON can hold it."""
        best = self.best if np.isfinite(self.best) else None
        return {
            "looks": self.looks, "idle": self.idle, "best": best,
            "clock": [*self.before, self.seconds, self.epoch],
            "history": list(self.estimator.history_),
        }  # fmt: skip

    def restore(self, memory: dict) -> None:
        """Go on where an earlier monitor was."""
        self.looks, self.idle = memory["looks"], memory["idle"]
        # Older checkpoints are of fits of one phase.
        *before, self.seconds, self.epoch = memory.get("clock", [0.0] * 4)
        self.before = tuple(before)
        self.best = -np.inf if memory["best"] is None else memory["best"]
        self.estimator.history_ = list(memory["history"])

    def __call__(self, event) -> bool:
        """Take one :class:`~dpsvi.base.Event`; True ends the fit."""
        estimator = self.estimator
        self.looks += 1
        self.epoch = self.before[1] + event.epoch
        began = time.perf_counter()
        estimator._reached(self.epoch, event.state)
        if not estimator._engine().simulated:
            self.add_seconds(time.perf_counter() - began)  # it is a part of the fit
        self.seconds = self.before[0] + event.seconds
        event = event._replace(seconds=self.seconds, epoch=self.epoch)
        entry = {
            "step": event.step, "items": event.items, "epoch": event.epoch,
            "seconds": event.seconds, "rate": event.rate,
        }  # fmt: skip
        last = self.epoch > self.whole - 1e-9
        if self.held_out is not None and (last or self.looks % self.every == 0):
            entry.update(estimator._held_out_score(event.state, self.held_out))
        estimator.history_.append(entry)
        stop = any([bool(callback(event)) for callback in estimator.callbacks or ()])
        if self.context is not None:
            # A pass is told when it has ended: whether another one begins is not known before.
            task = self.context.subcontext(task_name="pass")
            task.call_on_fit_task_begin(estimator=estimator, **self.data)
            stop |= task.call_on_fit_task_end(
                estimator=estimator,
                reconstruction_attributes=lambda: estimator._attributes(event.state),
                **self.data,
            )
        self.cancelled |= stop
        if estimator.early_stopping and "score" in entry:
            better = entry["score"] > self.best + estimator.tol * abs(self.best)
            self.idle = 0 if better or self.best == -np.inf else self.idle + 1
            self.best = max(self.best, entry["score"])
            stop |= self.idle >= estimator.n_iter_no_change
        self.stopped |= stop
        return stop

    def close(self, state) -> None:
        """End the outer task of scikit-learn's callbacks."""
        if self.context is not None:
            self.context.call_on_fit_task_end(
                estimator=self.estimator,
                reconstruction_attributes=lambda: self.estimator._attributes(state),
                **self.data,
            )
