"""How several workers fit one model: what they send, and what a strategy makes of it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Protocol

import numpy as np


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

    def joined(self, parameters: Parameters, worker: int) -> None:
        """Take note that `worker`, one of those that were expected, comes after the first step."""

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
