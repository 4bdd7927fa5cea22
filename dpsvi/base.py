"""The contracts: what a model, an engine, a schedule, a strategy and an observer are.

Data flows one way::

    items --model.local--> statistics --learner--> parameters --observer--> reports

* A **model** is maths only.  It turns a batch of items into expected sufficient statistics
  given the current parameters.  It never sees a thread, a rank or a learning rate.
* The **engine** decides where local steps run and who adds their statistics to the parameters.
  It never sees a topic or a mixture component.
* The **schedule** gives the step size of every step; the **strategy** says how parameters of
  several workers become one.  Neither knows the other three.

All parameters live in one matrix of natural parameters ``lam = prior + scale * rows``
(shape ``(n_rows, n_columns)``).  A row is the unit of sparse update, of message and of checkpoint:
for LDA a row is a word and a column a topic; a mixture, whose every point touches everything, is
one row.  See :mod:`dpsvi.training.state` for why the matrix is kept in that scaled form.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np


class Items(NamedTuple):
    """The data as the kernels see it: ragged rows, read-only, possibly memory-mapped.

    Item ``i`` owns positions ``offsets[i]:offsets[i + 1]`` of `index` and `value`.
    """

    offsets: np.ndarray  # int64, (n_items + 1,)
    index: np.ndarray  # int32, (n_values,); empty when values are dense
    value: np.ndarray  # real, (n_values,)


class Shared(NamedTuple):
    """What every thread of a worker reads and writes, without locks."""

    rows: np.ndarray  # real, (n_rows, n_columns): lam = prior + scale * rows
    totals: np.ndarray  # float64, (n_threads, n_columns): what each thread added, over all rows
    item_memory: np.ndarray  # real, (n_items or 0, m): local parameters kept between visits
    value_memory: np.ndarray  # uint16, (n_values or 0, m): local parameters of every value
    thread_memory: np.ndarray  # float64, (n_threads, m): what each thread keeps between its steps
    optimizer: np.ndarray  # real, (m * n_rows, n_columns): what an optimiser knows of the rows


class ThreadMemory(NamedTuple):
    """Private memory of one thread, allocated once per fit."""

    totals: np.ndarray  # float64, (n_columns,): column sums of `rows`, summed over threads
    slot: np.ndarray  # int32, (n_rows,): row -> position in `touched`, -1 outside a step
    touched: np.ndarray  # int32, (n_slots,): the rows this step read
    expected: np.ndarray  # real, (n_slots, n_columns): expectations under q of those rows
    stats: np.ndarray  # real, (n_slots, n_columns): their expected statistics; 0 on entry
    scratch: np.ndarray  # real, (n_scratch,): whatever the model needs
    ids: np.ndarray  # int32, (longest item,)
    tally: np.ndarray  # float64, (n_columns,): sums that a local step makes for itself
    kept: np.ndarray  # float64, (m,): the thread's own row of `Shared.thread_memory`


class Model(NamedTuple):
    """One conjugate exponential-family model, ready to fit.

    Parameters
    ----------
    name : str
    shape : (int, int)
        Rows and columns of the parameter matrix.
    prior : real array broadcastable to `shape`
        Natural parameter of the prior, zeta in (52).
    hyper : float64 array
        Everything `local` needs to know besides the parameters.
    local : callable(shared, scale, hyper, items, batch, work) -> int
        The local step (44), a plain function that numba can compile in ``nopython`` mode.  For
        the items listed in `batch` it fills ``work.touched[:n]`` and ``work.stats[:n]`` with the
        rows that have statistics and returns n.  It leaves ``work.slot`` all -1.
    scratch : callable(longest_item) -> int
        Length of ``work.scratch``.
    init : callable(rng) -> real array of `shape`, or None
        First value of ``lam - prior``, where that does not depend on the data.
    item_memory, value_memory : int
        Columns of the memories in :class:`Shared`; 0 for none.  An `item_memory` that has no rows
        is a fit that cannot keep any: the local step must do without.
    thread_memory : int
        Numbers that each thread keeps from step to step, 0 at first, such as the games that it
        plays.  Workers and peers begin with memories of their own, which checkpoints do not
        hold.
    optimizer : int
        Matrices of `shape` that an optimiser keeps, 0 at first, for all threads of a worker, such
        as mean squares of gradients.  They are kept like the memory of threads.
    common_rows : int
        Rows, the last ones, that every step reads and changes whatever its items are.
    learner : str
        Module of :mod:`dpsvi.learners` that says how statistics change the parameters: a fresh
        estimate to be mixed in at the schedule's rate (``"natural"``), changes to be summed as
        they are, or minus a gradient.
    weight_decay : float, >= 0
        L2 penalty of a learner of gradients; of no use to others.
    compiled : bool
        False when `local` is no function for numba but any Python callable: threads that run it
        share the interpreter.
    used_columns : int or None
        Columns that have a meaning, the first ones; those behind are padding, whose statistics are
        0, and are not sent.  None: all.
    nonnegative : bool
        True when no expected statistic can be negative, such as counts: then lam is at least the
        prior in every entry, and ``max(lam, prior)`` projects what an asynchronous update made
        less (Alg. 4, line 8).  Sums of observations have any sign, and what their parameters may
        be depends on others of them: no projection entry by entry would be right.
    """

    name: str
    shape: tuple[int, int]
    prior: np.ndarray
    hyper: np.ndarray
    local: Callable[..., int]
    scratch: Callable[[int], int]
    init: Callable[[np.random.Generator], np.ndarray] | None = None
    item_memory: int = 0
    value_memory: int = 0
    thread_memory: int = 0
    optimizer: int = 0
    common_rows: int = 0
    learner: str = "natural"
    weight_decay: float = 0.0
    compiled: bool = True
    nonnegative: bool = False
    used_columns: int | None = None

    @property
    def sent_columns(self) -> int:
        """Columns of the rows in a message."""
        return self.shape[1] if self.used_columns is None else self.used_columns

    @property
    def real(self) -> np.dtype:
        """Type of the parameters, float32 or float64."""
        return self.prior.dtype


class Schedule(Protocol):
    """Step sizes: ``schedule(t)`` maps step numbers, from 0, to rates in (0, 1]."""

    def __call__(self, t: np.ndarray) -> np.ndarray:
        """Return the rates of steps `t`."""


class Reading(NamedTuple):
    """What a worker had read when it began its local steps: w of Alg. 2, line 3."""

    version: int  # global steps before it
    clock: int  # entries of the master's log before it
    folds: int  # times the master had folded its scale into the rows before it
    scale: float
    touched: np.ndarray  # int32, (n,): the rows it could see
    totals: np.ndarray  # float64, (n_columns,)


class Update(NamedTuple):
    """What a worker pushes after its local steps, relative to what it had read.

    It had read ``w = prior + reading.scale * base`` and ended at ``u = prior + scale * end`` in the
    rows it touched, at ``w`` decayed by `decay` in all others: B~ steps of (52) have exactly this
    form, ``u - prior = decay (w - prior) + b`` with additive statistics ``b = scale (end - base)``.
    """

    worker: int
    reading: Reading
    decay: float  # product of (1 - rho) over the steps, a
    scale: float  # decay * reading.scale
    end: np.ndarray | None  # real, (n, columns in use): of a worker alone, as nobody changed w
    change: np.ndarray | None  # else: end - base, real or (uint16) its bfloat16
    totals: np.ndarray  # float64, (n_columns,): where the column sums ended
    n_items: int = 0  # items visited
    share: float = 0.0  # they are this share of all


class Parameters(Protocol):
    """The master's parameters v, as a strategy changes them.

    They are made by :mod:`dpsvi.cluster.nodes.parameters`.
    """

    version: int
    scale: float
    items: int  # visited so far

    def decay(self, update: Update, weight: float) -> None:
        """``v - prior <- (1 - weight (1 - a)) (v - prior)``: the decay, of what is there now."""

    def retract(self, update: Update, weight: float) -> None:
        """``v <- v - weight (1 - a) (w - prior)``: the decay of what the worker had read."""

    def add(self, update: Update, weight: float) -> None:
        """``v <- v + weight b``: the additive statistics."""

    def like(self, empty: bool = False) -> Parameters:
        """New parameters that equal these, or (`empty`) the prior."""

    def combine(self, own: float, weight: float = 0.0, other: Parameters | None = None) -> None:
        """``v - prior <- own (v - prior) + weight (other - prior)``; dense unless `weight` is 0."""

    def exchange(self, other: Parameters, share: float) -> None:
        """``d = share (v - other)``, then ``v <- v - d`` and ``other <- other + d``; dense."""

    def content(self) -> dict:
        """What :meth:`restore` needs: arrays and numbers."""

    def restore(self, content: dict) -> None:
        """Take over what :meth:`content` gave."""


class Strategy:
    """How several workers fit one model; derive from :class:`Star` or :class:`Peers`.

    The constructor's parameters are what the user can tell it: ``rate`` (gamma, > 0) and ``strict``
    (refuse an unstable rate instead of reducing it) where it has them, and those of its own.

    Attributes
    ----------
    topology : {"star", "peers"}
    staleness_factor : float
        How many times more steps may be in flight, not seeing each other, than threads that
        share one set of parameters may make (``Job.most_blind``); of peers, each of them in a
        turn, as `begin` leaves it.
    incremental : bool
        Whether it serves a learner whose statistics must count once (:mod:`dpsvi.learners`).
    replicas : bool
        Whether every worker has parameters of its own.  The mean of n of them (`averaged`) moves by
        1/n of what one step moves its own, so a step with rate rho is then made with
        ``1 - (1 - rho)**n`` where a rate is the share of a new estimate (``ESTIMATES`` of
        :mod:`dpsvi.learners`), else with ``n rho``: all together move as fast, counted in items, as
        a serial fit.
    refuses : dict of str
        Options of a :class:`dpsvi.cluster.Cluster` that must keep their default, and why.  The
        constructor may add some.
    """

    topology: str
    staleness_factor = 1.0
    incremental = True
    replicas = False
    refuses: dict[str, str] = {}

    def averaged(self, n_workers: int) -> int:
        """How many replicas, of so many workers, a mean is taken of; 1 where there are none."""
        return n_workers if self.replicas else 1

    def state(self) -> dict:
        """What a checkpoint must hold to go on: arrays and numbers by name.

        Of peers each has its own, beside the parameters that all have together then.
        """
        return {}


class Star(Strategy):
    """How a master merges M updates of workers into its parameters (Alg. 1, line 4).

    Attributes
    ----------
    needs_log : bool
        Whether it calls :meth:`Parameters.retract`.
    as_sent : bool
        Whether the parameters of a lone worker (gamma = M = 1) become the master's as they are.
    synchronous : bool
        Whether workers go in rounds: those that are drawn for one read the same parameters, and
        their updates are merged at once.  Else nobody waits for others.
    projected : bool
        Whether rounding errors of a merge may leave the domain of the model; the master then
        brings the parameters back.
    one_pass : str
        Why the strategy is for one pass over the data only, and for posteriors that are sums over
        items; "" if it is not.
    reduced : int
        Global steps so far whose rate was unstable and was reduced.
    """

    topology = "star"
    synchronous = False
    projected = False
    one_pass = ""
    needs_log = False
    as_sent = True
    reduced = 0

    def begin(self, parameters: Parameters, n_workers: int, state: dict | None) -> None:
        """Prepare for a fit from `parameters`; `state` is what :meth:`state` was, or None."""

    def reads(self, parameters: Parameters, worker: int) -> Parameters:
        """The parameters that `worker` reads; by default the master's."""
        return parameters

    def drawn(self, workers: list[int]) -> list[int]:
        """Who of the waiting `workers` takes part in the next round; by default all."""
        return workers

    def local_steps(self, done: float) -> float:
        """The most steps of an update, of all threads, where this share of all steps is done.

        By default as many as are asked for.
        """
        return math.inf

    def lost(self, worker: int) -> None:
        """Take note that `worker` is lost; others make its steps."""

    def __call__(self, parameters: Parameters, updates: list[Update]) -> None:
        """Merge `updates` into `parameters`; the call is atomic for all workers.

        The master projects what it leaves behind onto the domain of the model.
        """
        raise NotImplementedError


class Peers(Strategy):
    """How nodes without a master mix their parameters; each has a replica and a part of the steps.

    In turn a node merges what has come, makes B local steps and sends one message, unless the node
    that it is for has done its part or has not yet read the last one.  It does not run away from
    one that reads nothing: after 16 turns without a reading it waits for that.  At the end one node
    merges the whole of what each of the others holds, and has the result.  `state` is the replica,
    a :class:`dpsvi.training.state.State`, of which scale and rows are the strategy's to change.

    Attributes
    ----------
    tau : int or None
        After more turns than this without a message, in the last of which it has sent one, a node
        waits for the next; None: nobody waits for messages.  Nobody does, either, once a node has
        done its part or is lost.
    """

    topology = "peers"
    tau: int | None = None
    replicas = True
    refuses: dict[str, str] = {
        "master_batch": "there is no master",
        "global_rate": "there is no master",
        "master_works": "there is no master",
        "strict": "there is no unstable rate",
        "prefetch": "nobody waits for parameters",
        "waiting": "nobody waits for parameters",
        "statistics": "parameters are sent, not their changes: rounding errors would be lost",
    }

    def begin(self, state: Any, node: int, n_nodes: int, before: dict | None) -> None:
        """Prepare for a fit; all nodes start from equal parameters.

        `before` is what :meth:`state` of this node was, one of as many, or None.
        """
        raise NotImplementedError

    def renormalise(self, state: Any) -> None:
        """Fold the scale of `state` into its rows, and into what else has to decay with them."""
        state.renormalise()

    def target(self) -> int | None:
        """The node that the next message is for; None: there is nobody."""
        raise NotImplementedError

    def send(self, state: Any) -> tuple[dict, dict]:
        """Take a share out of `state`; returns it: numbers and arrays, which are copied at once."""
        raise NotImplementedError

    def whole(self, state: Any) -> tuple[dict, dict]:
        """All that `state` holds, in the same form; it stays there."""
        raise NotImplementedError

    def merge(self, state: Any, numbers: dict, arrays: dict) -> None:
        """Add to `state` what another node sent."""
        raise NotImplementedError

    def lost(self, node: int) -> None:
        """Take note that `node` is lost; nothing comes from it any more."""


class Event(NamedTuple):
    """What an observer learns at a boundary between segments; nothing in it may be written."""

    step: int  # steps done, from the start of the fit
    items: int  # items visited
    epoch: float  # passes over the data, may be fractional
    # Training time, evaluation and compilation excluded; during an evaluation the workers of a
    # cluster go on with the steps that they have, at most those in flight.
    seconds: float
    rate: float  # step size of the last step
    state: Any  # dpsvi.training.state.State


class Engine(NamedTuple):
    """What a module of :mod:`dpsvi.engines` says of itself, as its ``ENGINE``.

    Parameters
    ----------
    fit : callable(job) -> bool
        Carry out a :class:`dpsvi.training.job.Job` on its threads or ranks, and block; raise
        what any thread or rank raised.  The value says whether the job's observer ended it.
    options : type or None
        Class of the options that it takes as ``cluster``; None: it has none.
    collective : bool
        Whether every process of a launch calls `fit` and gets the same parameters back.
    simulated : bool
        Whether its times are those of a model, not of a clock.
    one_thread : bool
        Whether it runs one thread only.
    """

    fit: Callable[[Any], bool]
    options: type | None = None
    collective: bool = False
    simulated: bool = False
    one_thread: bool = False
