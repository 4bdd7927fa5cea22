"""The errors and warnings dpsvi raises, and the checks of parameters that raise them.

Each error is also the built-in that a caller would expect.
"""

import math
import numbers
import os
from os import PathLike

# What the process ends with; 0 is good, 128 + the number is a signal.
FAILURE = 1
USAGE = 2  # wrong options
BAD_DATA = 3
DIVERGED = 4  # NaN or infinite parameters
LOST = 5  # ranks were lost


class DpsviError(Exception):
    """Base of every error that dpsvi raises on purpose."""


class UsageError(DpsviError, ValueError):
    """A command was called with arguments that it does not take."""


class DataFormatError(DpsviError, ValueError):
    """A file that cannot be read as data; the message names the place and what is allowed."""

    @classmethod
    def at(cls, path: str | PathLike, line: int, reason: object) -> "DataFormatError":
        """Return the error for one line of a text file, worded ``file:line: reason``."""
        return cls(f"{path}:{line}: {reason}")


class CorpusFormatError(DataFormatError):
    """Data that cannot be a corpus; the message names the place, the value and what is allowed."""


class DivergedError(DpsviError, FloatingPointError):
    """The parameters hold NaN or infinity; nothing after the last checkpoint can be trusted."""


class Terminated(KeyboardInterrupt):
    """A signal asked the process to end; `code` is its exit status, 128 + signal number."""

    def __init__(self, number: int):
        super().__init__(number)
        self.code = 128 + number


class CorpusWarning(UserWarning):
    """A corpus was accepted, but holds something its owner may not expect."""


class RepeatedCorpusWarning(CorpusWarning):
    """The same matter once more, with counts that may differ; shown only if a filter asks for it.

    A cross-validation would say of each of its parts what it has said of the whole.
    """


class ModelFormatError(DpsviError, ValueError):
    """A saved model that is damaged, of another kind, or written by a newer version."""


class ContractError(DpsviError, RuntimeError):
    """A model, engine, strategy or package of somebody's own is not what it has to be."""


class UnstableError(DpsviError, ValueError):
    """Rates and staleness for which the recursion of the master has no stable fixed point."""


class LostRankError(DpsviError, RuntimeError):
    """A rank that the fit needs has died or gone silent."""


class LostMemoryError(LostRankError):
    """A worker is lost, and with it what it remembered of its items.

    The parameters are a sum over what all workers remember, so nothing can be added to them any
    more.  All ranks that are left have the same ones, and may begin to remember anew.
    """

    def __init__(self) -> None:
        super().__init__("a worker is lost, and with it what it remembered of its items")


class DroppedError(LostRankError, SystemExit):
    """The others continue without this rank.

    Where nobody catches it the process ends with 0: a failure would end the job of the others.
    """

    def __init__(self, message: str):
        super().__init__(message)
        self.code = 0


class LauncherError(DpsviError, RuntimeError):
    """The processes were started by another MPI than the one that is installed."""

# --- checks of parameters: one clear sentence with the value received and the values allowed ------


def check_number(name, value, *, low=None, high=None, open_low=False, integer=False) -> None:
    """Raise ValueError or TypeError unless `value` is a number in the stated interval."""
    kind = numbers.Integral if integer else numbers.Real
    word = "an integer" if integer else "a number"
    bounds = []
    if low is not None:
        bounds.append(f"{'>' if open_low else '>='} {low}")
    if high is not None:
        bounds.append(f"<= {high}")
    allowed = " ".join([word, " and ".join(bounds)]).strip()
    if isinstance(value, bool) or not isinstance(value, kind):
        raise TypeError(f"{name} must be {allowed}, got {value!r}")
    too_low = low is not None and (value <= low if open_low else value < low)
    if not math.isfinite(value) or too_low or (high is not None and value > high):
        raise ValueError(f"{name} must be {allowed}, got {value!r}")


def check_flag(name, value) -> None:
    """Raise TypeError unless `value` is True or False, to which 1, 0 and numpy's are equal."""
    if value not in (True, False):
        raise TypeError(f"{name} must be True or False, got {value!r}")


def check_choice(name, value, allowed) -> None:
    """Raise ValueError unless `value` is one of `allowed`."""
    if value not in allowed:
        raise ValueError(f"{name} must be one of {list(allowed)}, got {value!r}")


def check_callbacks(callbacks) -> None:
    """Raise TypeError unless `callbacks` is a list or tuple of callables, or None."""
    # Not any iterable: what can be gone through once would be spent here.
    if not isinstance(callbacks, list | tuple | None):
        raise TypeError(f"callbacks must be a list or tuple or None, got {callbacks!r}")
    for callback in callbacks or ():
        if not callable(callback):
            raise TypeError(f"callbacks must be callables, got {callback!r}")


def shortened(text: str, most: int = 80) -> str:
    """`text` as a message can show it: at most so many characters.

    Examples
    --------
    >>> shortened("a long line of a file", 10)
    'a long ...'
    """
    return text if len(text) <= most else f"{text[: most - 3]}..."


def resolve_jobs(n_jobs) -> int:
    """Number of threads: None is 1, -1 every core this process may run on, -2 all but one."""
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, numbers.Integral) and n_jobs < 0:
        cores = os.cpu_count() or 1
        if hasattr(os, "sched_getaffinity"):
            cores = len(os.sched_getaffinity(0))
        return max(1, cores + 1 + int(n_jobs))
    try:
        check_number("n_jobs", n_jobs, low=1, integer=True)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{error}; -1 is all cores, -2 all but one") from None
    return int(n_jobs)


def as_random_state(random_state):
    """What scikit-learn's ``check_random_state`` gives; a NumPy Generator is drawn from, too.

    Raises
    ------
    ValueError
        It is none of them.
    """
    import numpy as np
    from sklearn.utils import check_random_state

    if isinstance(random_state, np.random.Generator):
        return np.random.RandomState(random_state.bit_generator)
    return check_random_state(random_state)
