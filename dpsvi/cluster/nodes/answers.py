"""Answers of the master: which worker gets steps and rows now, and which has to wait."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpsvi.base import Star
from dpsvi.cluster.nodes.allotment import Allotment
from dpsvi.cluster.nodes.grants import Grants
from dpsvi.cluster.nodes.rows import RowSender
from dpsvi.cluster.transports.messages import Message, Pool
from dpsvi.training.boundary import Boundary
from dpsvi.training.job import Job


class Ask(NamedTuple):
    """What a worker asks for."""

    worker: int
    want: int | None  # the grant whose rows are wanted; None: the first steps
    touched: np.ndarray | None  # these rows
    n_bytes: int = 0  # of the message, unless an update came with it


class Answers:
    """Answers workers in the order in which they ask, as soon as that can be.

    A worker waits while too many steps are in flight, or, where the strategy goes in rounds, until
    it is drawn for one.

    Parameters
    ----------
    job : Job
    strategy : dpsvi.base.Star
    rows : RowSender
    pool : Pool
        For the messages.
    allotment : Allotment
    boundary : Boundary
        Knows how long nobody was answered.

    Attributes
    ----------
    waiting : list of Ask
        Not answered yet.
    grants : Grants
    withheld : set of int
        Grants whose rows had to wait for others to end theirs.
    """

    def __init__(
        self, job: Job, strategy: Star, rows: RowSender, pool: Pool, allotment: Allotment,
        boundary: Boundary,
    ):  # fmt: skip
        self._job, self._strategy, self._rows, self._pool = job, strategy, rows, pool
        self._allotment, self._boundary = allotment, boundary
        self.waiting: list[Ask] = []
        self.grants = Grants()
        self.withheld: set[int] = set()
        self._drawn: set[int] = set()  # who takes part in a round and has not begun it
        self._paused_before: dict[int, float] = {}  # pauses till a worker's last answer

    def answer(
        self, workers: set[int], n_workers: int, n_collected: int
    ) -> list[tuple[int, Message]]:
        """The messages for those of the `workers` that can be answered, with the destination.

        `n_workers` are these and those that may join; `n_collected` steps are made and not merged.
        """
        asks, self.waiting, found = self.waiting, [], []
        for ask in asks:
            message = self._answer(ask, workers, n_workers, n_collected)
            if message is None:
                self.waiting.append(ask)
            else:
                found.append((ask.worker, message))
        return found

    def draw(self) -> bool:
        """Begin a round; whether anybody can take part in it."""
        able = [ask.worker for ask in self.waiting if ask.want is not None]
        self._drawn = set(self._strategy.drawn(able)) if able else set()
        return bool(able)

    def drop(self, worker: int) -> None:
        """Answer `worker` no more, and expect nothing of it."""
        self.waiting = [ask for ask in self.waiting if ask.worker != worker]
        self.grants.drop(worker)

    def _answer(self, ask, workers, n_workers, n_collected) -> Message | None:
        if ask.want is not None:
            if self._strategy.synchronous and ask.worker not in self._drawn:
                return None
            in_flight = n_collected + sum(g.work.n_steps for g in self.grants.being_made())
            wanted = self.grants[ask.want].work.n_steps
            if in_flight and in_flight + wanted > self._allotment.room(n_workers):
                self.withheld.add(ask.want)
                return None
        most = self._allotment.steps(ask.worker, n_workers)
        work = self._job.passes.grant(ask.worker, most, workers)
        if work is None and ask.want is None:
            return None
        header = {"kind": "grant", "reading": ask.want, "work": None, "work_id": None}
        if work is not None:
            header["work"] = list(work)
            header["work_id"] = self.grants.open(ask.worker, work)
        if ask.want is None:
            return self._pool.message(header)
        alone = self._allotment.alone(n_workers)
        message, n_bytes, reading = self._rows.send(ask.worker, ask.touched, header, alone)
        paused = self._boundary.paused - self._paused_before.get(ask.worker, 0.0)
        self._paused_before[ask.worker] = self._boundary.paused
        self._drawn.discard(ask.worker)
        self.grants.read(ask.want, reading, n_bytes + ask.n_bytes, paused)
        return message
