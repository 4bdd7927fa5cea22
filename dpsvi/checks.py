"""Checks of parameters: one clear sentence with the value received and the values allowed."""

from __future__ import annotations

import math
import numbers
import os


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


def resolve_jobs(n_jobs) -> int:
    """Number of threads: None is 1, -1 every core this process may run on."""
    if n_jobs is None:
        return 1
    if n_jobs == -1:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    try:
        check_number("n_jobs", n_jobs, low=1, integer=True)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{error}; None is 1, -1 all cores") from None
    return int(n_jobs)
