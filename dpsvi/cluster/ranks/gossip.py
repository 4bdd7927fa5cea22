"""A rank's side of a fit without a master: turns, messages to all others, lost ranks, the end.

What a node does is in :mod:`dpsvi.cluster.nodes.peer`.  Ranks work in rounds, mostly one.  When a
rank has done its part, or learns that the round is to end earlier (for a checkpoint, by a signal,
by the observer), it says so to all others and merges what still comes, until all have said so:
messages of a rank arrive in order, so nothing is on its way then.  All send what they hold to rank
0 and get back what it is together.
"""

from __future__ import annotations

import logging
import time

from dpsvi.cluster.nodes.consensus import Consensus, Looks
from dpsvi.cluster.nodes.exchanges import reported, summary
from dpsvi.cluster.nodes.peer import Peer
from dpsvi.cluster.nodes.worker import describe
from dpsvi.cluster.ranks.lead import forget
from dpsvi.cluster.ranks.pulse import Pulse
from dpsvi.cluster.ranks.world import World
from dpsvi.cluster.transports.channel import DROPPED, LONGEST, POLLS, Channel
from dpsvi.cluster.transports.messages import Pool
from dpsvi.errors import DivergedError, DpsviError, DroppedError, LostRankError
from dpsvi.training.driver import Job
from dpsvi.training.signals import Deferred

log = logging.getLogger(__name__)

DONE, ENDED, SAVE, INTERRUPTED = "done", "ended", "save", "interrupted"
_URGENCY = [DONE, SAVE, ENDED, INTERRUPTED]
_FAILURE_TOLD = 1.0  # seconds
_APART, _LATEST = 0.5, 2.0  # seconds between two ranks that end the job, and at most
_GOOD_BYE = 20.0


def gossip(job: Job, here: World, pulse: Pulse | None) -> bool:
    """Be one of the peers; whether the observer of rank 0 ended the fit.

    Raises
    ------
    LostRankError
        Rank 0 is lost, or any rank and ``on_lost="abort"``.
    DivergedError
        On all ranks, when a parameter became NaN or infinite on any.
    """
    with Deferred() as signals:
        rank = _Rank(job, here, pulse, signals)
        try:
            why = rank.fit()
        except _Told as told:
            raise told.error from None
        except DroppedError:
            raise
        except BaseException as error:
            rank.tell_failure(error)
            raise
    if why == INTERRUPTED:
        raise rank.interrupt or KeyboardInterrupt
    return why == ENDED


class _Told(Exception):
    """Another rank has failed and has told everybody."""

    def __init__(self, error: Exception):
        super().__init__(str(error))
        self.error = error


class _Rank:
    """One process of the fit."""

    def __init__(self, job: Job, here: World, pulse: Pulse | None, signals: Deferred):
        self.job, self.here, self.pulse, self.signals = job, here, pulse, signals
        self.ranks = [0, *here.others]  # of the nodes
        self.pool = Pool(shared=bool(here.near))
        self.channel = None
        if len(self.ranks) > 1:
            self.channel = Channel(here.data, self.pool, here.near, pulse.silent)
            self.channel.gone |= dict.fromkeys(here.lost, "lost in an earlier fit")
        self.live = set(self.ranks) - {here.rank}
        self.peer = Peer(job, self.ranks.index(here.rank), len(self.ranks), pool=self.pool)
        self.looks = Looks(self.peer) if here.rank == 0 else None
        self.round, self.why = 0, DONE
        self._through: set[int] = set()  # ranks that have ended this round
        self._unread: set[int] = set()  # ranks that have not yet said that they read a message
        self._held: list = []  # messages of the next round
        self._whole: list = []
        self._all = None  # the message of rank 0 that ends a round
        self._started, self._paused = time.perf_counter(), 0.0
        self._exchanges: list = []
        self.interrupt: KeyboardInterrupt | None = None  # of this rank

    @property
    def seconds(self) -> float:
        """Training time."""
        return self.job.seconds + time.perf_counter() - self._started - self._paused

    def fit(self) -> str:
        """Rounds until all is done; returns why it ended."""
        for rank in self.live:
            self._send(rank, {"kind": "hello", "problem": describe(self.job)})
        while True:
            self._turns()
            self._send_all({"kind": "through", "why": self.why})
            self._until(lambda: self.live <= self._through and not self._unread)
            why = self._collect() if self.here.rank == 0 else self._hand_over()
            if why != SAVE:
                return why
            self._next_round()

    # --- a round --------------------------------------------------------------------------------

    def _turns(self):
        """Make turns until this node's part is done or the round is to end."""
        while True:
            self._listen()
            self._deliver()
            if self.peer.finished or self.why != DONE:
                return
            found = self.peer.turn(self._ready)
            if found is not None:
                node, message = found
                message.header["round"] = self.round
                self.channel.send(self.ranks[node], message)
                self._unread.add(self.ranks[node])
            if self.looks is not None:
                self._look()

    def _ready(self, node) -> bool:
        """Whether `node` is at work and has read the last message.

        Else mass would pile up where nobody fits with it, and be lost with a rank that is stopped.
        """
        rank = self.ranks[node]
        return rank in self.live and rank not in self._unread and rank not in self._through

    def _look(self):
        """The observer of rank 0, and checkpoints."""
        seconds, began = self.seconds, time.perf_counter()
        if self._observe(self.looks, seconds):
            self._ask_for(ENDED)
        elif self.job.checkpoint is not None and self.job.checkpoint.due:
            self._ask_for(SAVE)
        self._paused += time.perf_counter() - began

    def _observe(self, look, *arguments) -> bool:
        """Call the observer, which may end the fit as a signal does."""
        try:
            return look(*arguments)
        except KeyboardInterrupt as interrupt:
            self.interrupt = interrupt
            self._ask_for(INTERRUPTED)
            return False

    def _ask_for(self, why):
        """End the round for this reason, unless there is a weightier one."""
        self.why = max(self.why, why, key=_URGENCY.index)

    def _deliver(self):
        try:
            self.signals.deliver()
        except KeyboardInterrupt as interrupt:
            self.interrupt = interrupt
            self._ask_for(INTERRUPTED)

    def _until(self, condition):
        """Listen until `condition` holds."""
        pause = POLLS[0]
        while not condition():
            heard = self._listen()
            self._deliver()
            pause = POLLS[0] if heard else self.channel.rest(pause)

    # --- the end of a round ---------------------------------------------------------------------

    def _collect(self) -> str:
        """Rank 0: what all nodes hold together becomes everybody's."""
        self._until(lambda: self.live <= {rank for rank, _ in self._whole})
        seconds = self.seconds
        together = Consensus(self.peer, seconds)
        for rank, message in self._whole:
            if rank in self.live:
                together.add(message)
            self.pool.give(message.buffer)
        self._whole = []
        self._exchanges += together.exchanges
        snapshot, job = together.snapshot(), self.job
        if self.why == DONE and self._observe(self.looks.end, snapshot):
            self.why = ENDED
        why = self.why
        if job.checkpoint is not None:
            job.checkpoint(snapshot, why in (SAVE, INTERRUPTED))
        state, model = snapshot.state, snapshot.state.model
        header = {
            "kind": "together", "why": why, "step": state.step, "items": state.items,
            "lost": sorted(self.here.lost),
        }  # fmt: skip
        self._send_all(header, rows=state.shared.rows, hyper=model.hyper, prior=model.prior)
        if why != SAVE:
            self._through = set()
            self._until(lambda: self.live <= self._through)
            for rank in self.here.frozen:
                stop = self.pool.message({"kind": "stop", "reason": DROPPED})
                self.channel.tell(rank, stop)
            self._report(seconds)
        return why

    def _hand_over(self) -> str:
        """Any other rank: send what it holds, take over what rank 0 makes of it."""
        self.channel.send(0, self.peer.whole())
        self._until(lambda: self._all is not None)
        message, self._all = self._all, None
        header, state = message.header, self.job.state
        state.shared.rows[...] = message.arrays["rows"]
        state.scale, state.step, state.items = 1.0, header["step"], header["items"]
        state.model.hyper[:] = message.arrays["hyper"]
        state.model.prior[...] = message.arrays["prior"]
        state.recount()
        self.pool.give(message.buffer)
        self.here.lost |= set(header["lost"])
        if header["why"] != SAVE:
            self._send(0, {"kind": "through", "why": header["why"]})
            self.channel.flush(_GOOD_BYE)
        return header["why"]

    def _next_round(self):
        """All nodes go on from what they have together."""
        self.peer.restart(self.job.state)
        self.round, self.why, self._through = self.round + 1, DONE, set()
        held, self._held = self._held, []
        for rank, message in held:
            self._take(rank, message)

    def _report(self, seconds):
        exchanges = self._exchanges
        log.info("%s", summary(exchanges, 0.0, seconds))
        if self.job.report is not None:
            self.job.report.update(
                **reported(exchanges), seconds=seconds, busy=0.0,
                lost={rank: self.channel.gone[rank] for rank in self.ranks
                      if self.channel and rank in self.channel.gone},
            )  # fmt: skip

    # --- messages ---------------------------------------------------------------------------------

    def _send(self, rank, header, **arrays):
        self.channel.send(rank, self.pool.message({**header, "round": self.round}, **arrays))

    def _send_all(self, header, **arrays):
        for rank in sorted(self.live):
            self._send(rank, header, **arrays)

    def _listen(self) -> bool:
        """Take what has come; whether there was anything."""
        if self.channel is None:
            return False
        heard = False
        for rank, message in self.channel.poll():
            heard = True
            self._take(rank, message)
        for rank, reason in self.channel.lost().items():
            heard = True
            self._lose(rank, reason)
        return heard

    def _take(self, rank, message):
        header = message.header
        kind = header["kind"]
        if header.get("round", self.round) > self.round:
            self._held.append((rank, message))
            return
        if kind == "share":
            self.peer.take(message)
            self._send(rank, {"kind": "read"})
            return
        if kind == "whole":
            self._whole.append((rank, message))
            return
        if kind == "together":
            self._all = message
            return
        if kind == "through":
            self._through.add(rank)
            self._ask_for(header["why"])
        elif kind == "read":
            self._unread.discard(rank)
        elif kind == "lost":
            self.channel.abandon(header["rank"], header["reason"])
            self._drop(header["rank"], header["reason"])
        elif kind == "hello":
            self._check(rank, header["problem"])
        elif kind == "failed":
            self._fail(rank, header)
        elif kind == "stop":  # only rank 0 says so, to a rank that was silent
            self._left_behind()
        self.pool.give(message.buffer)

    def _check(self, rank, problem):
        for key, value in describe(self.job).items():
            if problem[key] != value:
                raise DpsviError(
                    f"rank {rank} fits another problem: {key} is {problem[key]} there, {value} on "
                    f"rank {self.here.rank}"
                )

    # --- what goes wrong --------------------------------------------------------------------------

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
        forget(rank, reason, self.here, self.pulse)
        if self.job.cluster.on_lost == "abort":
            raise LostRankError(f"rank {rank} is lost: {reason}")
        self._drop(rank, reason)
        self._send_all({"kind": "lost", "rank": rank, "reason": reason[:LONGEST]})

    def _drop(self, rank, reason):
        if rank not in self.live:
            return
        self.live.discard(rank)
        self._unread.discard(rank)
        if self.here.rank == 0:
            log.warning(
                "rank %d is lost (%s), and with it its part of the mass and of the steps; %d ranks "
                "are left", rank, reason, len(self.live) + 1,
            )  # fmt: skip

    def _fail(self, rank, header):
        reason = header["reason"]
        diverged = header["diverged"]
        time.sleep(min(_APART * self.here.rank, _LATEST))
        raise _Told(
            DivergedError(reason) if diverged else LostRankError(f"rank {rank} failed: {reason}")
        )

    def _left_behind(self):
        log.warning("the others go on without this rank: it was silent for too long")

        def still_there():
            if 0 in self.channel.gone:
                raise LostRankError("rank 0 is lost: its process ended")

        # Not before they have ended: a rank that leaves with an error ends the whole job.
        while self.channel.receive(still_there)[1].header["kind"] not in ("stop", "together"):
            pass
        self.here.left = True
        raise DroppedError("the others have gone on without this rank: it was silent for too long")

    def tell_failure(self, error: Exception) -> None:
        """Let all others end, too."""
        if self.channel is None:
            return
        diverged = isinstance(error, DivergedError)
        self._send_all({"kind": "failed", "reason": str(error)[:LONGEST], "diverged": diverged})
        self.channel.flush(_FAILURE_TOLD)
