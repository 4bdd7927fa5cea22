"""The other ranks of a fit without a master: messages to and from them, and how they are lost."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable

from dpsvi.cluster.contracts import DROPPED, LONGEST, POLLS
from dpsvi.cluster.nodes.problem import check_same, describe
from dpsvi.cluster.ranks.heartbeat import Heartbeat
from dpsvi.cluster.ranks.lead import forget
from dpsvi.cluster.ranks.world import World
from dpsvi.cluster.transports.messages import Message, Pool
from dpsvi.errors import DivergedError, DroppedError, LostRankError
from dpsvi.training.job import Job
from dpsvi.training.signals import Deferred

log = logging.getLogger(__name__)

_CLOSE_SECONDS, _CLOSE_SECONDS_UNHEARD = 20.0, 1.0  # seconds, at most
_APART, _LATEST = 0.5, 2.0  # seconds between two ranks that end the job, and at most
# What a node does with these is its own to say; the rest is handled here.
_OF_THE_FIT = {"begin", "share", "round_end", "whole", "consensus"}


class Others:
    """All ranks but this one.

    Parameters
    ----------
    job : Job
    here : World
    heartbeat : Heartbeat or None
        None where this process is alone.
    signals : Deferred
        Delivered where this rank only waits for the others' end.

    Attributes
    ----------
    pool : Pool
        For messages to them.
    live : set of int
        Ranks that are not lost.
    greeted : set of int
        Ranks that have said that they are ready.
    unread : set of int
        Those that have not yet said that they read the last share.
    """

    def __init__(self, job: Job, here: World, heartbeat: Heartbeat | None, signals: Deferred):
        self.job, self.here, self.heartbeat, self.signals = job, here, heartbeat, signals
        self.problem = describe(job)  # as it is before the first step
        self.pool = Pool(shared=bool(here.near))
        self.live = {0, *here.others} - {here.rank}
        self.greeted: set[int] = set()
        self.unread: set[int] = set()
        self.channel = None
        if self.live:
            self.channel = here.channel(self.pool, heartbeat.silent)
        self._pause = POLLS[0]
        self._failure_known = False  # that the fit has failed

    @property
    def lost(self) -> dict[int, str]:
        """Ranks that are lost, with the reason."""
        return {} if self.channel is None else self.channel.lost

    def send(self, rank: int, message: Message) -> None:
        """Begin to send `message`."""
        self.channel.send(rank, message)

    def notify(self, ranks: Iterable[int], header: dict) -> None:
        """Send the same short message to each of `ranks`."""
        for rank in sorted(ranks):
            self.send(rank, self.pool.message(header))

    def receive(self) -> list[tuple[int, Message]]:
        """What has come that is the node's to handle, with the rank of the sender.

        Raises
        ------
        LostRankError
            Rank 0 is lost, or any rank and ``on_lost="abort"``, or another rank has failed.
        DivergedError
            On another rank, which says so.
        DroppedError
            The others continue without this rank.
        """
        if self.channel is None:
            return []
        found = []
        for rank, message in self.channel.poll():
            self._pause = POLLS[0]
            if message.header["kind"] in _OF_THE_FIT:
                found.append((rank, message))
            else:
                self._take(rank, message.header)
                self.pool.give(message.buffer)
        for rank, reason in self.channel.newly_lost().items():
            self._lose(rank, reason)
            if self.here.rank != 0:  # which may not find out by itself
                self.notify([0], {"kind": "lost", "rank": rank, "reason": reason[:LONGEST]})
        return found

    def rest(self) -> None:
        """Sleep before :meth:`receive` is called again, the longer the longer nothing has come."""
        self._pause = self.channel.rest(self._pause)

    def end(self, error: BaseException | None = None, missed: bool = False) -> None:
        """Say the last words: to ranks that were silent, to all where the fit has failed here.

        Where this rank has `missed` the fit, the others need not look at what it has said, and MPI
        may keep that until they do.
        """
        if self.channel is None:
            return
        if self.here.rank == 0:
            for rank in self.here.frozen:
                self.channel.notify(rank, self.pool.message({"kind": "stop", "reason": DROPPED}))
        if error is not None and not self._failure_known:
            diverged = isinstance(error, DivergedError)
            self.notify(
                self.live, {"kind": "failed", "reason": str(error)[:LONGEST], "diverged": diverged}
            )
        heard = error is None and not missed
        self.channel.close(_CLOSE_SECONDS if heard else _CLOSE_SECONDS_UNHEARD)

    def _take(self, rank, header):
        kind = header["kind"]
        if kind == "read":
            self.unread.discard(rank)
        elif kind == "lost":
            if header["rank"] in self.live:
                self.channel.abandon(header["rank"], header["reason"])
                self._lose(header["rank"], header["reason"])
        elif kind == "hello":
            check_same(self.problem, self.here.rank, rank, header["problem"])
            self.greeted.add(rank)
        elif kind == "failed":
            self._fail(rank, header)
        elif kind == "stop" and header["reason"] == DROPPED:
            self._was_dropped()  # it was silent, or somebody could not read its message
        elif kind == "stop":  # of a master, who has another strategy and waits for an answer
            self.send(rank, self.pool.message({"kind": "bye"}))
            reason = header["reason"].removeprefix("failed: ")
            self._fail(rank, {"reason": reason, "diverged": False})

    def _lose(self, rank, reason):
        """A rank is dead or silent: rank 0 says so to all others."""
        if rank not in self.live:
            return
        if self.here.rank != 0:
            if rank == 0:
                # One after the other: the first that raises ends the job.
                time.sleep(min(_APART * (self.here.rank - 1), _LATEST))
                raise LostRankError(f"rank 0, which collects the end, is lost: {reason}")
            self._drop(rank, reason)
            return
        forget(rank, reason, self.here, self.heartbeat)
        if self.job.cluster.on_lost == "abort":
            raise LostRankError(f"rank {rank} is lost: {reason}")
        self._drop(rank, reason)
        self.notify(self.live, {"kind": "lost", "rank": rank, "reason": reason[:LONGEST]})

    def _drop(self, rank, reason):
        if rank not in self.live:
            return
        self.live.discard(rank)
        self.unread.discard(rank)
        if self.here.rank == 0:
            log.warning(
                "rank %d is lost (%s), and with it its part of the mass and of the steps; %d ranks "
                "are left", rank, reason, len(self.live) + 1,
            )  # fmt: skip

    def _fail(self, rank, header):
        reason, self._failure_known = header["reason"], True
        time.sleep(min(_APART * self.here.rank, _LATEST))
        if header["diverged"]:
            raise DivergedError(reason)
        raise LostRankError(f"rank {rank} failed: {reason}")

    def _was_dropped(self):
        self.here.left = self._failure_known = True
        log.warning("the others continue without this rank: it was silent for too long")

        def check_rank_0():
            self.signals.deliver()
            if 0 in self.channel.lost:
                raise LostRankError("rank 0 is lost: its process ended")

        # Not before they have ended: a rank that leaves with an error ends the whole job.
        while self.channel.receive(check_rank_0)[1].header["kind"] not in ("stop", "consensus"):
            pass
        raise DroppedError("the others continue without this rank: it was silent for too long")
