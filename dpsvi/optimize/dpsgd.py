"""DPSGD (Alg. 1-2 of the paper): asynchronous workers, lock-free threads, any objective."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, get_type_hints

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import OptimizeResult

from dpsvi import engines
from dpsvi.cluster.nodes.exchanges import Exchange
from dpsvi.cluster.options import Cluster
from dpsvi.cluster.ranks.world import agree
from dpsvi.errors import as_random_state, check_choice, check_number, resolve_jobs
from dpsvi.optimize.objective import Objective, from_callable
from dpsvi.training import absa
from dpsvi.training.job import Job
from dpsvi.training.ledger import Ledger
from dpsvi.training.state import State

_COMPLETED, _STOPPED = 0, 99  # `status`, as SciPy has it
_HISTORY = np.dtype(
    [("epoch", float), ("njev", int), ("seconds", float), ("rate", float), ("fun", float)]
)
_GROWTH = np.dtype([("epoch", int), ("eigenvalue", float), ("batch_size", int)])
_EXCHANGES = np.dtype([(name, get_type_hints(Exchange)[name]) for name in Exchange._fields])


@dataclass(frozen=True, kw_only=True)
class DPSGD:
    """Distributed parallel stochastic gradient descent.

    ``v <- v - rate_t * (mean gradient of a batch + weight_decay * v)``, by p threads that share v
    without locks, in n workers that read it from a master and send it what they changed after
    B steps a thread; the master adds up M such updates at a time.

    Parameters
    ----------
    learning_rate : float, > 0, default=0.01
        Step size of the first step.  Strategies that take the mean of n replicas let each of them
        step n times as far, since their mean moves by 1/n of that.
    learning_decay : float, in [0, 1], default=0.0
        kappa of ``rate_t = learning_rate * (1 + t / learning_offset) ** -learning_decay`` for
        step t = 0, 1, ...; 0 is a constant rate, the paper's.
    learning_offset : float, > 0, default=1.0
        Steps before the rate begins to fall.
    weight_decay : float, >= 0, default=0.0
        L2 penalty ``weight_decay / 2 * |x|^2`` on top of the mean over the items.  It costs
        nothing in rows that a step does not touch.  ``learning_rate * weight_decay`` must be < 1.
    batch_size : int, >= 1, default=32
        Items whose mean gradient makes a step, S.
    max_batch_size : int, >= batch_size, or None, default=None
        Batches, and with them the rate, double up to this size as the curvature falls
        (:mod:`dpsvi.training.absa`), which is looked at after every pass.  None: they do not.  Not
        with ``engine="mpi"``.
    max_iter : int, >= 0, default=10
        Passes over the items; each visits every item once, in a new random order.
    engine : {"serial", "threads", "mpi", "simulated"}, default="threads"
        As for the estimators: one thread, lock-free threads of this process, several processes
        with such threads (``mpiexec -n 5 python -m mpi4py script.py``), or a virtual cluster.
    n_jobs : int or None, default=None
        Threads p; None is 1, -1 all cores, -2 all but one.  More than one help objectives
        that are compiled, and Python callables that release the interpreter's lock.
    local_steps : int or None, default=None
        B, >= 1: steps of each thread before all of a worker meet.  None: a pass, or with workers
        at most 1024, all together a tenth of a pass.
    cluster : dpsvi.Cluster, dpsvi.VirtualCluster or None, default=None
        Options of ``"mpi"`` or ``"simulated"``, such as ``Cluster(master_batch=M)``; None for
        other engines.  Without a penalty both strategies are the paper's Alg. 1.
    evaluate_every : float, in (0, 1], default=1.0
        Passes between two calls of `fun` and `callback`.
    random_state : int, RandomState, Generator or None, default=None
        Of the order of the items.

    Raises
    ------
    ValueError, TypeError
        A parameter is out of its range.

    References
    ----------
    Mohamad, Alamri, Bouchachia (2022), Machine Learning, doi:10.1007/s10994-022-06243-3.

    Examples
    --------
    The mean of points, by any function that returns a mean gradient:

    >>> import numpy as np
    >>> from dpsvi import DPSGD
    >>> points = np.random.default_rng(0).normal(3.0, 1.0, (1000, 2))
    >>> optimizer = DPSGD(learning_rate=0.5, learning_decay=1.0, batch_size=10, random_state=0)
    >>> result = optimizer.minimize(lambda x, i: x - points[i].mean(axis=0), np.zeros(2), 1000)
    >>> bool(np.abs(result.x - points.mean(axis=0)).max() < 0.1)
    True
    """

    learning_rate: float = 0.01
    learning_decay: float = 0.0
    learning_offset: float = 1.0
    weight_decay: float = 0.0
    batch_size: int = 32
    max_batch_size: int | None = None
    max_iter: int = 10
    engine: str = engines.DEFAULT
    n_jobs: int | None = None
    local_steps: int | None = None
    cluster: Cluster | None = None
    evaluate_every: float = 1.0
    random_state: int | np.random.RandomState | np.random.Generator | None = None

    def __post_init__(self) -> None:
        check_number("learning_rate", self.learning_rate, low=0, open_low=True)
        check_number("learning_decay", self.learning_decay, low=0, high=1)
        check_number("learning_offset", self.learning_offset, low=0, open_low=True)
        check_number("weight_decay", self.weight_decay, low=0)
        if self.learning_rate * self.weight_decay >= 1:
            raise ValueError(
                f"learning_rate * weight_decay must be < 1, got {self.learning_rate!r} * "
                f"{self.weight_decay!r}"
            )
        check_number("batch_size", self.batch_size, low=1, integer=True)
        check_number("max_iter", self.max_iter, low=0, integer=True)
        check_choice("engine", self.engine, engines.names())
        engine = engines.get(self.engine)
        if self.max_batch_size is not None:
            check_number("max_batch_size", self.max_batch_size, low=self.batch_size, integer=True)
            if engine.collective:
                raise ValueError(
                    f"max_batch_size must be None for engine={self.engine!r}: its ranks have one "
                    f"batch_size, got {self.max_batch_size!r}"
                )
        if resolve_jobs(self.n_jobs) != 1 and engine.one_thread:
            raise ValueError(f"engine={self.engine!r} runs one thread, got n_jobs={self.n_jobs!r}")
        if self.local_steps is not None:
            check_number("local_steps", self.local_steps, low=1, integer=True)
        if not isinstance(self.cluster, Cluster | None):
            raise TypeError(f"cluster must be a dpsvi.Cluster or None, got {self.cluster!r}")
        if self.cluster is not None and engine.options is None:
            raise ValueError(f"cluster must be None for engine={self.engine!r}: it has no workers")
        check_number("evaluate_every", self.evaluate_every, low=0, high=1, open_low=True)
        as_random_state(self.random_state)

    def rates(self, t: ArrayLike) -> np.ndarray:
        """Step sizes of the steps numbered `t`, from 0.

        Examples
        --------
        >>> from dpsvi import DPSGD
        >>> DPSGD(learning_rate=0.5, learning_decay=1.0).rates([0, 10]).shape
        (2,)
        """
        return self.learning_rate * (1 + np.asarray(t) / self.learning_offset) ** (
            -float(self.learning_decay)
        )

    def minimize(
        self, gradient: Callable[..., Any] | Objective, x0: ArrayLike,
        n_items: int | None = None, *, fun: Callable[..., Any] | None = None,
        callback: Callable[..., Any] | None = None,
    ) -> OptimizeResult:  # fmt: skip
        """Minimise the mean of an objective over its items.

        Parameters
        ----------
        gradient : callable(x, items) -> array of the shape of x, or Objective
            Mean gradient, without the penalty, of the items with these numbers, an int array.
            With several threads it is called by all of them at the same time.  Or a compiled
            objective, such as :func:`dpsvi.optimize.logistic.objective` makes.
        x0 : array-like of float, any shape
            Where to begin; float32 stays float32, all else becomes float64.
        n_items : int or None
            Number of items, for a callable; an `Objective` knows its own.
        fun : callable(x) -> float or None
            Evaluated every `evaluate_every` passes, for `history` and `callback`.
        callback : callable(intermediate_result) or None
            Gets an OptimizeResult with x, nit, njev, and fun if it is evaluated, as often; as with
            ``scipy.optimize.minimize`` it may raise StopIteration to end the minimisation.

        Returns
        -------
        OptimizeResult
            ``x``, the parameters at the end; ``success``, ``status`` and ``message``, whether all
            passes were made (0) or the callback ended it (99); ``nit``, whole passes; ``njev``,
            steps, each a gradient of a batch; ``nfev``, evaluations of `fun`; ``fun``, the last
            of them, if any; ``history``, a structured array with the fields ``epoch`` (passes),
            ``njev``, ``seconds`` (without compilation and evaluations), ``rate`` and ``fun`` (NaN
            if there is none); ``exchanges``, a structured array of the updates in the order in
            which the master merged them, with the fields ``worker``, ``n_items``, ``n_bytes``,
            ``waited`` and ``seconds`` (of the worker) and ``staleness`` (global steps), empty
            without a master; ``growth``, a structured array of the looks at the curvature, with
            the fields ``epoch``, ``eigenvalue`` and ``batch_size`` (from then on), empty without
            `max_batch_size`.  Over MPI every rank gets the same x; history, exchanges and calls
            are those of rank 0.

        Raises
        ------
        ValueError, TypeError
            Something is not callable, is not finite, or has the wrong shape.
        DivergedError
            A gradient or a parameter became NaN or infinite.

        Examples
        --------
        >>> import numpy as np
        >>> from dpsvi import DPSGD
        >>> points = np.random.default_rng(0).normal(3.0, 1.0, (1000, 2))
        >>> optimizer = DPSGD(learning_rate=0.5, learning_decay=1.0, batch_size=10, random_state=0)
        >>> result = optimizer.minimize(lambda x, i: x - points[i].mean(axis=0), np.zeros(2), 1000)
        >>> result.x.round()
        array([3., 3.])
        """
        x0 = _as_start(x0)
        objective = _as_objective(gradient, x0, n_items)
        for name, function in (("fun", fun), ("callback", callback)):
            if function is not None and not callable(function):
                raise TypeError(f"{name} must be callable or None, got {function!r}")
        n_threads, seed = resolve_jobs(self.n_jobs), self._seed()
        rows = x0.astype(objective.items.value.dtype).reshape(objective.shape)
        state = State.resume(objective.model(float(self.weight_decay)), rows, n_threads)
        passes = Ledger(objective.n_items, self.batch_size, self.max_iter, seed)
        history, report = [], {}
        observer = partial(_look, history, x0.shape, objective.n_items, fun, callback)
        job = Job(
            state, objective.items, passes, self.rates, n_threads, self.local_steps,
            observe_every=self.evaluate_every, observer=observer, cluster=self.cluster,
            report=report,
        )  # fmt: skip
        fit = engines.get(self.engine).fit
        if self.max_batch_size is None:
            ended = fit(job)
        else:
            ended = absa.fit(fit, job, self.max_batch_size)
        result = OptimizeResult(
            x=state.natural().reshape(x0.shape), success=not ended,
            status=_STOPPED if ended else _COMPLETED,
            message="`callback` raised StopIteration" if ended else "all passes were made",
            nit=state.items // objective.n_items, njev=state.step,
            nfev=0 if fun is None else len(history), history=np.array(history, _HISTORY),
            exchanges=np.array(report.get("exchanges", []), _EXCHANGES),
            growth=np.array(report.get("growth", []), _GROWTH),
        )  # fmt: skip
        if result.nfev:
            result.fun = history[-1][-1]
        return result

    def _seed(self) -> int:
        """Seed of the orders; over MPI that of rank 0."""
        seed = as_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        return agree(seed) if engines.get(self.engine).collective else int(seed)


def _as_start(x0) -> np.ndarray:
    """A copy of `x0` as floating-point numbers."""
    x0 = np.array(x0)
    if x0.dtype.kind == "c":
        raise TypeError("x0 must hold real numbers, got complex ones")
    if x0.dtype != np.float32:
        x0 = x0.astype(np.float64)
    if not x0.size:
        raise ValueError(f"x0 must hold at least one number, got shape {x0.shape}")
    if not np.isfinite(x0).all():
        raise ValueError("x0 must be finite, got NaN or infinity")
    return x0


def _as_objective(gradient, x0, n_items) -> Objective:
    if isinstance(gradient, Objective):
        if n_items is not None:
            raise ValueError(f"n_items must be None for an Objective, got {n_items!r}")
        if x0.shape != gradient.shape:
            raise ValueError(f"x0 must have shape {gradient.shape}, got {x0.shape}")
        return gradient
    if not callable(gradient):
        raise TypeError(f"gradient must be callable or an Objective, got {gradient!r}")
    check_number("n_items", n_items, low=1, high=np.iinfo(np.int32).max, integer=True)
    return from_callable(gradient, x0, n_items)


def _look(history, shape, n_items, fun, callback, event) -> bool:
    """Note what an event says; true when the callback ends the minimisation."""
    found = OptimizeResult(nit=event.items // n_items, njev=event.step)
    if fun is not None or callback is not None:
        found.x = event.state.natural().reshape(shape)
    if fun is not None:
        found.fun = float(fun(found.x))
    history.append(
        (event.epoch, event.step, event.seconds, event.rate, found.get("fun", np.nan))
    )  # fmt: skip
    try:
        if callback is not None:
            callback(found)
    except StopIteration:
        return True
    return False
