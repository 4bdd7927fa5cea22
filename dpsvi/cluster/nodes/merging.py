"""One global step of the master: M updates of workers become a change of its parameters.

Alg. 1, lines 4 and 5.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from dpsvi.base import Reading, Star, Update
from dpsvi.cluster.nodes.allotment import Allotment
from dpsvi.cluster.nodes.exchanges import Exchange, reported, summary
from dpsvi.cluster.nodes.grants import Grant
from dpsvi.cluster.nodes.parameters import MasterParameters
from dpsvi.cluster.transports.messages import Message, Pool
from dpsvi.errors import DivergedError
from dpsvi.training.state import State

log = logging.getLogger(__name__)


class Collected(NamedTuple):
    """An update that came back for a grant."""

    grant: Grant
    update: Update
    report: dict  # what the worker says of it
    message: Message  # where it lies

    @classmethod
    def of(cls, grant: Grant, report: dict, message: Message) -> Collected:
        """Read `message`.

        Raises
        ------
        DivergedError
            It holds NaN or infinity.
        """
        arrays = message.arrays
        update = Update(
            grant.worker, grant.reading, report["decay"], report["scale"], arrays.get("end"),
            arrays.get("change"), arrays["totals"], report["n_items"],
            report["share"],
        )  # fmt: skip
        if not np.isfinite(update.totals).all():
            raise DivergedError(f"rank {grant.worker} sent parameters that are NaN or infinite")
        return cls(grant, update, report, message)


class Merger:
    """Merges updates by a strategy, and keeps account of them.

    Parameters
    ----------
    strategy : dpsvi.base.Star
    parameters : MasterParameters
    allotment : Allotment
        Learns how long the steps took.
    pool : Pool
        Gets the buffers of merged messages back.

    Attributes
    ----------
    exchanges : list of Exchange
    """

    def __init__(
        self, strategy: Star, parameters: MasterParameters, allotment: Allotment, pool: Pool
    ):
        self.strategy, self.parameters = strategy, parameters
        self.exchanges: list[Exchange] = []
        self._allotment, self._pool = allotment, pool

    def merge(self, collected: list[Collected], in_use: Iterable[Reading]) -> None:
        """Make one global step, t <- t + 1; `in_use` are the readings of updates still to come."""
        parameters, state = self.parameters, self.parameters.state
        self.strategy(parameters, [one.update for one in collected])
        parameters.end_step()
        for one in collected:
            self._count(one, state)
            self._pool.give(one.message.buffer)
        parameters.forget(in_use)
        short = any(one.report["n_done"] < one.grant.work.n_steps for one in collected)
        parameters.fold_if_small(at_once=short)

    def report(self, busy: float, seconds: float) -> dict:
        """Log and return what exchanges cost; the master computed in `busy` of the `seconds`."""
        reduced, n_steps = self.strategy.reduced, self.parameters.version
        log.info("%s", summary(self.exchanges, busy, seconds))
        if reduced:
            log.info("global_rate reduced in %d of %d global steps", reduced, n_steps)
        return {"global_steps": n_steps, "reduced": reduced, **reported(self.exchanges)}

    def _count(self, one: Collected, state: State) -> None:
        grant, report = one.grant, one.report
        staleness = self.parameters.version - 1 - one.update.reading.version
        waited = max(0.0, report["waited"] - grant.paused)
        self.exchanges.append(
            Exchange(
                grant.worker, report["n_items"], one.message.n_bytes + grant.n_bytes, waited,
                staleness, report["seconds"], report["n_done"], report["n_threads"],
            )
        )  # fmt: skip
        self._allotment.learn(grant.worker, report["n_done"], waited, report["seconds"])
        state.step += report["n_done"]
        state.items += report["n_items"]
