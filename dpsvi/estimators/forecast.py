"""How long a fit will take, and how much memory: known from its first seconds."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from typing import Any, NamedTuple

from sklearn.base import clone

from dpsvi import engines
from dpsvi.errors import check_choice, check_number
from dpsvi.estimators.base import SVIEstimator

_LOOK_EVERY = 0.01  # passes, at least
_LOOKS = 20  # in a trial, where a pass is not longer; each costs time that a fit does not need


class Forecast(NamedTuple):
    """What :func:`forecast` expects of a fit.

    Attributes
    ----------
    seconds : float
        Training time of all passes, without compilation and evaluations.
    memory : int
        Bytes that the fit allocates at most, beside the data that it is given.
    passes : float
        Passes that the trial made.
    """

    seconds: float
    memory: int
    passes: float

    def __str__(self) -> str:
        return f"{self.seconds:.3g} s, {self.memory / 2**20:.3g} MiB"


def _here(engine: str) -> bool:
    """Whether an engine works in this process, and its time is that of the clock."""
    known = engines.get(engine)
    return not (known.collective or known.simulated)


def forecast(
    estimator: Any, X: Any, y: Any = None, *, seconds: float = 5.0, **others: Any
) -> Forecast:
    """Say how long ``estimator.fit(X, y)`` will take on this machine, and how much memory.

    A copy of the estimator is fitted twice: until its code is compiled, and for `seconds` more.  A
    fit of which a part is enough is thus measured, not computed; later passes are taken to be as
    fast as the second half of the trial.  What only the end of a fit needs is not seen: a topic
    model that keeps responsibilities takes ``2 * n_components`` bytes more for each word of each
    document in its last passes.  No items are held out and all passes are counted, for when early
    stopping will end a fit is not known.

    Parameters
    ----------
    estimator : estimator
        It is not changed.
    X, y : as for its ``fit``
        All of the data: the memory of a fit depends on them.
    seconds : float, > 0, default=5.0
        Of the trial; a shorter fit is made to its end.  A trial has a hundredth of a pass at least.
    **others
        What else ``fit`` is given, such as `groups` or `lengths`.

    Returns
    -------
    Forecast

    Raises
    ------
    TypeError
        The estimator is no variational model of dpsvi.
    ValueError
        `seconds` is not above 0, `max_iter` is no number, or the engine is one of several
        processes or of a virtual cluster.

    Examples
    --------
    >>> from dpsvi import DPSVIGaussianMixture, forecast
    >>> from sklearn.datasets import load_iris
    >>> expected = forecast(DPSVIGaussianMixture(3, max_iter=50), load_iris().data)
    >>> 0 < expected.seconds < 60
    True
    """
    check_number("seconds", seconds, low=0, open_low=True)
    if not isinstance(estimator, SVIEstimator):
        raise TypeError(f"estimator must be a variational model of dpsvi, got {estimator!r}")
    check_choice("engine of a forecast", estimator.engine, list(filter(_here, engines.names())))
    if estimator.max_iter == "auto":
        raise ValueError("forecast needs a number of passes, max_iter='auto' finds it in the fit")
    if isinstance(X, Iterator):
        X = list(X)  # both fits read it
    data = {"X": X, **({} if y is None else {"y": y}), **others}
    passes, spent = _run(estimator, data, 0.0, _LOOK_EVERY)[-1]  # compiles
    every = max(_LOOK_EVERY, passes * seconds / (_LOOKS * spent)) if spent else 1.0
    traced = tracemalloc.is_tracing()  # by the caller, who goes on
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    try:
        seen = _run(estimator, data, seconds, min(every, estimator.evaluate_every, 1.0))
        _, most = tracemalloc.get_traced_memory()
    finally:
        if not traced:
            tracemalloc.stop()
    passes, spent = seen[-1]
    if passes < estimator.max_iter:
        middle = seen[len(seen) // 2 - 1] if len(seen) > 1 else (0.0, 0.0)
        pace = (spent - middle[1]) / (passes - middle[0])
        spent += pace * (estimator.max_iter - passes)
    return Forecast(spent * getattr(estimator, "n_init", 1), most - before, passes)


def _run(estimator, data, seconds, every):
    """Passes and seconds at each look, of a fit that is ended after so many seconds."""
    seen = [(0.0, 0.0)]

    def look(event):
        seen.append((event.epoch, event.seconds))
        return event.seconds >= seconds

    given = {
        "callbacks": [look], "evaluate_every": every, "n_init": 1, "verbose": 0,
        "checkpoint_dir": None, "validation_size": None, "early_stopping": False,
    }  # fmt: skip
    known = estimator.get_params()
    trial = clone(estimator)
    trial.set_params(**{name: value for name, value in given.items() if name in known}).fit(**data)
    return seen
