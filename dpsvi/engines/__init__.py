"""Engines: where steps run.  An engine is a module here with an ``ENGINE``.

That is a :class:`dpsvi.base.Engine`.  Engines are found by name, so a new one is one file; other
sub-packages name one in texts alone.  Installed packages may offer more
(:mod:`dpsvi.files.plugins`).
"""

from __future__ import annotations

from dpsvi.files import plugins

DEFAULT = "threads"
DEFAULT_OF_A_LAUNCH = "mpi"  # of several processes by mpiexec or srun


def names() -> list[str]:
    """Names of the engines, in alphabetical order."""
    return plugins.names(__name__)


def get(name: str):
    """The :class:`dpsvi.base.Engine` of this name; raises ValueError naming the known ones."""
    return plugins.load(__name__, name, "ENGINE").ENGINE


def called_for(n_processes: int) -> str:
    """Name of the engine for a launch of so many processes where none is named."""
    return DEFAULT_OF_A_LAUNCH if n_processes > 1 else DEFAULT


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
        Other fields of :class:`dpsvi.training.job.Job`.
    """
    from dpsvi.training.job import Job  # loads numpy, which the names of engines do not need
    from dpsvi.training.ledger import Ledger

    passes = Ledger(len(items.offsets) - 1, batch_size, n_passes, seed, clock=state.step)
    get(engine).fit(Job(state, items, passes, schedule, n_jobs, **options))
    return state
