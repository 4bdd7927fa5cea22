"""Engines: where steps run.  An engine is a module here with one callable ``fit(job)``.

Engines are found by name, so a new one is one file.
"""

from __future__ import annotations

import importlib
import pkgutil


def names() -> list[str]:
    """Names of the engines, in alphabetical order."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def get(name: str):
    """The ``fit`` function of engine `name`; raises ValueError naming the known ones."""
    if name not in names():
        raise ValueError(f"engine must be one of {names()}, got {name!r}")
    return importlib.import_module(f"{__name__}.{name}").fit


def fit(
    state, items, *, schedule, batch_size: int, n_passes: int, seed: int,
    engine: str = "serial", n_jobs: int = 1, **options,
):  # fmt: skip
    """Improve `state` by stochastic variational inference; returns it.

    Parameters
    ----------
    state : State
        Changed in place.
    items : Items
    schedule : callable, step numbers -> rates in (0, 1]
    batch_size : int, >= 1
        Items in one step, S.
    n_passes : int, >= 0
        Every pass visits every item once, in a fresh random order.
    seed : int
        Of the orders; it makes a one-thread fit bit-reproducible.
    engine : str
        Module name in :mod:`dpsvi.engines`.
    n_jobs : int, >= 1
        Threads p.
    **options
        Other fields of :class:`dpsvi.training.driver.Job`.
    """
    from dpsvi.training.driver import Job  # loads numpy, which the names of engines do not need
    from dpsvi.training.ledger import Passes

    passes = Passes(len(items.offsets) - 1, batch_size, n_passes, seed, clock=state.step)
    get(engine)(Job(state, items, passes, schedule, n_jobs, **options))
    return state
