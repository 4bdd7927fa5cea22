"""The constructor parameters that every estimator has: how a fit runs, not what it fits.

An estimator lists its own parameters; :func:`engine_parameters` adds these behind them, to the
signature that scikit-learn reads, to the instance and to the docstring.  One that an estimator
lists itself is its own.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import wraps
from types import MappingProxyType
from typing import TypeVar

from dpsvi.engines import DEFAULT
from dpsvi.estimators.docstrings import fill
from dpsvi.estimators.lasting import FIRST, SAMPLE

_DEFAULTS = MappingProxyType({
    "engine": DEFAULT, "n_jobs": None, "local_steps": None, "most_blind": "auto",
    "batch_size": None, "max_batch_size": None, "max_iter": 30, "n_init": 1, "learning_decay": 0.6,
    "learning_offset": 10.0, "learning_rate": None, "lr_rule": "constant",
    "total_samples": None, "forgetting": None, "early_stopping": False, "validation_size": None,
    "evaluate_every": 1.0, "tol": 1e-3, "n_iter_no_change": 2, "warm_start": False,
    "random_state": None, "verbose": 0, "callbacks": None, "cluster": None,
    "checkpoint_dir": None, "checkpoint_seconds": 60.0,
})  # fmt: skip

_TEXT = """\
    engine : str, default="threads"
        ``"serial"``, ``"threads"``: lock-free threads in this process, ``"mpi"``: several
        processes with such threads, started by ``mpiexec -n 5 python -m mpi4py script.py``, or
        ``"simulated"``: a virtual cluster.
    n_jobs : int or None, default=None
        Threads p; None is 1, -1 all cores, -2 all but one.  With more than one,
        results vary from run to run within the noise of seeds; one thread is reproducible.
    local_steps : int or None, default=None
        B, >= 1: threads meet after each p * B steps.  None: only at the end of a pass; for
        ``"mpi"`` and ``"simulated"`` 1024 at most, all workers together half a pass (a tenth with
        constant rates), and fewer while rates are large or where a worker is slow.
    most_blind : float, > 0, None or "auto", default="auto"
        Threads and workers do not see the steps that others make at the same time.  While the rate
        times the number of these steps is above this (for workers a multiple of it, with
        ``strategy="decay"``), fewer threads work, and workers get fewer steps than B or wait.
        None: B and p are what they were set to, and nobody waits.  ``"auto"``: 0.3 for decreasing
        rates, None for a constant one.
    batch_size : int, >= 1, or None, default={batch_size}
        {Items} in a step, S.  None: 256, and fewer where there are few {items}: a pass of `fit` has
        20 steps, unless these had fewer than 16 {items}.  In `partial_fit` all {items} seen so far
        count, and a step over less than a batch counts as its part of one.  Topic models have rules
        of their own.
    max_batch_size : int, >= batch_size, or None, default=None
        Of `fit`: batches, and with them the rate, double up to this size as the curvature falls
        (:mod:`dpsvi.training.absa`), which is looked at after every pass; ``exchanges_["growth"]``
        says how.  None: they do not.  Not with ``engine="mpi"``, `checkpoint_dir` or passes that
        replace the statistics of {items}.
    max_iter : int, >= 0, or "auto", default={max_iter}
        Passes over the data.  ``"auto"``: `fit` finds its end.  It makes {first} passes, then as
        many as before until these improve the score by less than `tol`
        (:mod:`dpsvi.estimators.lasting`): of the {items} that are held out, or of some of the fit,
        {sample} of most models.  Not with `early_stopping`, `max_batch_size` or passes that
        remember {items}.
    n_init : int, >= 1, default={n_init}
        Fits from so many first values, each of up to `max_iter` passes, of which `fit` keeps the
        one with the highest ELBO of the training data.  `partial_fit` and a fit that goes on by
        `warm_start` have one.  Above 1 there can be no `checkpoint_dir`.
    learning_decay, learning_offset : float, default={learning_decay}, {learning_offset}
        kappa in (0, 1], above 0.5 for convergence, and tau_0 > 0 of
        ``rho_t = (t + tau_0) ** -kappa``.  Topic models may leave kappa, and with it the step
        sizes, to the fit: None, see their Notes.
    learning_rate : float in (0, 1] or None, default=None
        Constant rate instead; 1 and a batch of all {items} is coordinate ascent.
    lr_rule : {{"constant", "per_sample", "per_T"}}, default="constant"
        How the rate is carried over to p threads and B local steps, rule (13).  For ``"mpi"`` and
        ``"simulated"``, ``"per_T"`` needs `local_steps`.
    total_samples : float, > 0, or None, default=None
        N for `partial_fit`; None: the {items} seen so far, those of `fit` once.
    forgetting : float, > 0, or None, default=None
        For `partial_fit` on streams that drift: of {items} so many ago no more than 1/e is left.
        The step size over S of them is at least S / `forgetting`, and N is `forgetting` at most.
        None: everything that came counts, and new {items} change less and less.
    early_stopping : bool, default=False
        Stop before `max_iter` when the held-out score has not improved by `tol` (relative) in
        `n_iter_no_change` evaluations.
    validation_size : float in (0, 1), int or None, default=None
        Share or number of {items} held out to follow the score.
    evaluate_every : float, > 0, default=1.0
        Passes between evaluations of the held-out score: a whole number, or below 1.  Callbacks
        are called after every pass at least.
    tol : float, >= 0, default=1e-3
        Of `early_stopping` and ``max_iter="auto"``: an improvement below this share of the score
        counts as none.
    n_iter_no_change : int, >= 1, default=2
        Of `early_stopping`: evaluations without an improvement that end the fit.
    warm_start : bool, default=False
        `fit` goes on from the last solution, prior included.
    random_state : int, RandomState, Generator or None, default=None
        Of the first parameters, the order of the {items} and what is held out.
    verbose : int, default=0
        1 shows progress on stderr: a bar, or a line every 10 seconds where no bar can be drawn.
    callbacks : list or tuple of callables or None, default=None
        Each gets a :class:`dpsvi.base.Event` at each evaluation; a true answer ends the fit.
    cluster : dpsvi.Cluster or None, default=None
        Options of ``engine="mpi"``, or a :class:`dpsvi.cluster.virtual.VirtualCluster`: those of
        ``"simulated"``.  None: their defaults; with other engines it must be None.
    checkpoint_dir : path or None, default=None
        Folder whose ``checkpoints/`` `fit` writes to and :meth:`resume` reads from.
    checkpoint_seconds : float, >= 0, default=60.0
        Between two checkpoints."""
_Class = TypeVar("_Class", bound=type)
_ENTRIES = re.split(r"\n(?=    \S)", _TEXT)


def own_parameters(cls) -> tuple[str, ...]:
    """Parameters of an estimator that are not about how a fit runs."""
    return tuple(name for name in inspect.signature(cls).parameters if name not in _DEFAULTS)


def engine_parameters(
    items: str, *, without: tuple[str, ...] = (), **defaults: object
) -> Callable[[_Class], _Class]:
    """Class decorator: add the parameters above to an estimator.

    Parameters
    ----------
    items : str
        What the data are made of, in the plural, for the docstring, whose line ``{engine}``
        becomes the description of the parameters.
    without : tuple of str
        Parameters that it does not have.
    **defaults
        Where the estimator's differ.

    Notes
    -----
    For type checkers the constructor ends with ``**run: Unpack[RunOptions]``
    (:mod:`dpsvi.estimators.run_options`); it never gets any of them, nor anything else.

    Examples
    --------
    >>> @engine_parameters("points", batch_size=64)
    ... class Means:
    ...     def __init__(self, n_means=1):
    ...         self.n_means = n_means
    >>> Means(3, n_jobs=2).batch_size
    64
    """

    def decorate(cls):
        own = cls.__init__
        signature = inspect.signature(own)
        named = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        signature = signature.replace(parameters=named)
        values = {**_DEFAULTS, **defaults}
        values = {k: v for k, v in values.items() if k not in {*signature.parameters, *without}}
        added = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=value)
            for name, value in values.items()
        ]

        @wraps(own)
        def __init__(self, *args, **kwargs):
            vars(self).update({k: kwargs.pop(k, value) for k, value in values.items()})
            signature.bind(self, *args, **kwargs)  # raises TypeError for any other name
            own(self, *args, **kwargs)

        __init__.__signature__ = signature.replace(
            parameters=[*named, *added]
        )
        cls.__init__, cls._items = __init__, items
        if cls.__doc__:
            entries = [e for e in _ENTRIES if e.split(" :")[0].split(", ")[0].strip() in values]
            text = "\n".join(entries).format(
                items=items, Items=items.capitalize(), first=FIRST, sample=SAMPLE, **values
            )
            cls.__doc__ = fill(cls.__doc__, "engine", text)
        return cls

    return decorate
