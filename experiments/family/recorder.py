"""Points of a curve from dpsvi's own fits."""

from __future__ import annotations

import time
from collections.abc import Callable

TOOL = "dpsvi"


def recorded(estimator, score: Callable, problem: str, settings: str, **data) -> list[dict]:
    """Fit `estimator` to `data`; a point for every evaluation.

    Parameters
    ----------
    estimator : estimator of dpsvi
        A copy of it is fitted to the same data for no pass first, so that compiling is not timed.
    score : callable(fitted estimator) -> float
        Held-out score; its time is not counted.
    problem, settings : str
    **data
        Arguments of `fit`.
    """
    from sklearn.base import clone

    clone(estimator).set_params(max_iter=1, validation_size=None).fit(**data)
    points, before = [], None

    def look(event):
        nonlocal before
        if before is None:  # checks, first parameters: work of the tool, too
            before = time.perf_counter() - began - event.seconds
        view = clone(estimator)
        vars(view).update(estimator._attributes(event.state))
        points.append(point(problem, TOOL, settings, before + event.seconds, score(view)))

    estimator.set_params(callbacks=[look])
    began = time.perf_counter()
    estimator.fit(**data)
    estimator.set_params(callbacks=None)
    return points


def point(problem: str, tool: str, settings: str, seconds: float, score: float) -> dict:
    """One point, as :mod:`experiments.family` describes it."""
    return {
        "problem": problem, "tool": tool, "settings": settings, "seconds": float(seconds),
        "score": float(score),
    }  # fmt: skip
