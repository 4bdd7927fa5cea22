"""A rank's side of a fit without a master: turns, rounds, signals, the end.

What a node does is in :mod:`dpsvi.cluster.nodes.peer`.  Ranks work in rounds, mostly one, and begin
the first together.  When a rank has done its part, or learns that the round is to end earlier (for
a checkpoint, by a signal, by the observer), it says so to all others and merges what still comes,
until all have said so: messages of a rank arrive in order, so nothing is on its way then.  All send
what they hold to rank 0 and get back what it is together.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager

from dpsvi.cluster.nodes.adopt import adopt, state_message
from dpsvi.cluster.nodes.consensus import Consensus
from dpsvi.cluster.nodes.exchanges import reported, summary
from dpsvi.cluster.nodes.peer import Peer
from dpsvi.cluster.nodes.problem import describe
from dpsvi.cluster.ranks.heartbeat import Heartbeat
from dpsvi.cluster.ranks.others import Others
from dpsvi.cluster.ranks.world import World
from dpsvi.training.boundary import Boundary, Progress
from dpsvi.training.job import Job
from dpsvi.training.signals import Deferred

log = logging.getLogger(__name__)

DONE, ENDED, SAVE, INTERRUPTED = "done", "ended", "save", "interrupted"
_URGENCY = [DONE, SAVE, ENDED, INTERRUPTED]


def gossip(job: Job, here: World, heartbeat: Heartbeat | None, signals: Deferred) -> bool:
    """Be one of the peers; whether the observer of rank 0 ended the fit.

    Raises
    ------
    LostRankError
        Rank 0 is lost, or any rank and ``on_lost="abort"``.
    DivergedError
        On all ranks, when a parameter became NaN or infinite on any.
    """
    rank = _Rank(job, here, heartbeat, signals)
    try:
        why = rank.fit()
    except BaseException as error:
        rank.others.end(error)
        raise
    rank.others.end()
    signals.deliver()
    if rank.interrupt is not None:
        raise rank.interrupt
    if why == INTERRUPTED:
        # A signal that comes after the fit, where nothing is ready for it, would end the job.
        signals.expect()
        raise KeyboardInterrupt
    return why == ENDED


class _Rank:
    """One process of the fit."""

    def __init__(self, job: Job, here: World, heartbeat: Heartbeat | None, signals: Deferred):
        self.job, self.here, self.signals = job, here, signals
        self.ranks = [0, *here.others]  # of the nodes
        self.others = Others(job, here, heartbeat, signals)
        self.pool = self.others.pool
        self.peer = Peer(job, self.ranks.index(here.rank), len(self.ranks), pool=self.pool)
        self.boundary = Boundary(job) if here.rank == 0 else None
        self.round, self.why = 0, DONE
        self._known_live = set(self.others.live)  # as the node knows
        self._at_round_end: set[int] = set()  # ranks that have ended this round
        self._held: list = []  # messages of the next round
        self._whole: list = []
        self._consensus = None  # the message of rank 0 that ends a round
        self._exchanges: list = []
        self.interrupt: KeyboardInterrupt | None = None  # of this rank

    def fit(self) -> str:
        """Rounds until all is done; returns why it ended."""
        others = self.others
        others.notify(others.live, {"kind": "hello", "problem": describe(self.job)})
        # A rank that finds its compiled code sooner would make its steps alone: replicas that have
        # never met have no mean worth having.
        self._receive_until(lambda: others.live <= others.greeted or self.why != DONE)
        if self.boundary is not None:
            self.boundary.start()
        while True:
            self._turns()
            header = {"kind": "round_end", "why": self.why, "round": self.round}
            others.notify(others.live, header)
            self._receive_until(lambda: others.live <= self._at_round_end and not others.unread)
            why = self._collect() if self.boundary is not None else self._send_whole()
            if why != SAVE:
                return why
            self._next_round()

    # --- a round --------------------------------------------------------------------------------

    def _turns(self):
        """Make turns until this node's part is done or the round is to end."""
        while True:
            self._receive()
            if self.peer.finished or self.why != DONE:
                return
            unread = [self.ranks.index(rank) for rank in self.others.unread]
            if (self.peer.waits and not self._at_round_end) or self.peer.ahead(unread):
                self.others.rest()
                continue
            for node, message in self.peer.turn(self._ready):
                message.header["round"] = self.round
                self.others.send(self.ranks[node], message)
                self.others.unread.add(self.ranks[node])
            if self.boundary is not None and not self.peer.finished:
                self._look()  # the last look is at the consensus

    def _ready(self, node) -> bool:
        """Whether `node` is at work and has read the last message.

        Else mass would pile up where nobody fits with it, and be lost with a rank that is stopped.
        """
        rank, others = self.ranks[node], self.others
        return rank in others.live and rank not in others.unread and rank not in self._at_round_end

    def _look(self):
        """Rank 0, after a turn: a checkpoint needs what all ranks hold, the end of the round."""
        with self._interrupts():
            if self.boundary.observe(self.peer.progress):
                self._ask_for(ENDED)
            elif self.boundary.due:
                self._ask_for(SAVE)

    def _ask_for(self, why):
        """End the round for this reason, unless there is a weightier one."""
        self.why = max(self.why, why, key=_URGENCY.index)

    @contextmanager
    def _interrupts(self):
        """An interrupt in this context ends the round, on all ranks."""
        try:
            yield
        except KeyboardInterrupt as interrupt:
            self.interrupt = interrupt
            self._ask_for(INTERRUPTED)

    def _receive(self):
        """Take what has come: messages and signals."""
        received = self.others.receive()
        self._report_lost()
        for rank, message in received:
            self._take(rank, message)
        with self._interrupts():
            self.signals.deliver()

    def _report_lost(self):
        """Report ranks to the node that are lost since the last report, or since it began."""
        for rank in sorted(self._known_live - self.others.live):
            self.peer.lose(self.ranks.index(rank), self.others.lost[rank])
        self._known_live &= self.others.live

    def _receive_until(self, condition):
        """Receive until `condition` holds."""
        while not condition():
            self._receive()
            if not condition():
                self.others.rest()

    def _take(self, rank, message):
        header = message.header
        kind = header["kind"]
        if header.get("round", self.round) > self.round:
            self._held.append((rank, message))
        elif kind == "share":
            self.peer.take(self.ranks.index(rank), message)
            self.others.notify([rank], {"kind": "read"})
        elif kind == "whole":
            self._whole.append((rank, message))
        elif kind == "consensus":
            self._consensus = message
        elif kind == "round_end":
            self._at_round_end.add(rank)
            self._ask_for(header["why"])
            self.pool.give(message.buffer)

    # --- the end of a round ---------------------------------------------------------------------

    def _collect(self) -> str:
        """Rank 0: what all nodes hold together becomes everybody's."""
        others, boundary = self.others, self.boundary
        self._receive_until(lambda: others.live <= {rank for rank, _ in self._whole})
        seconds = boundary.seconds
        together = Consensus(self.peer, seconds)
        for rank, message in self._whole:
            if rank in others.live:
                together.add(message)
            self.pool.give(message.buffer)
        self._whole = []
        self._exchanges += together.exchanges
        snapshot = together.snapshot()
        if self.why == DONE:
            with self._interrupts():
                if boundary.reached(Progress.of(snapshot), lambda: snapshot):
                    self._ask_for(ENDED)
        if self.why in (SAVE, INTERRUPTED):
            boundary.save(snapshot)
        why = self.why
        header = {"kind": "consensus", "why": why, "lost": sorted(self.here.lost)}
        for rank in sorted(others.live):
            others.send(rank, state_message(self.pool, header, snapshot.state))
        if why != SAVE:
            self._at_round_end = set()
            self._receive_until(lambda: others.live <= self._at_round_end)
            self._report(seconds)
        return why

    def _send_whole(self) -> str:
        """Any other rank: send what it holds, take over what rank 0 makes of it."""
        self.others.send(0, self.peer.whole())
        self._receive_until(lambda: self._consensus is not None)
        message, self._consensus = self._consensus, None
        header = message.header
        adopt(self.job.state, message)
        self.pool.give(message.buffer)
        self.here.lost |= set(header["lost"])
        if header["why"] != SAVE:
            self.others.notify([0], {"kind": "round_end", "why": header["why"]})
        return header["why"]

    def _next_round(self):
        """All nodes go on from what they have together."""
        self.peer.restart(self.job.state)
        self._known_live = set(self.ranks) - {self.here.rank}
        self._report_lost()
        self.round, self._at_round_end = self.round + 1, set()
        self.why = DONE if self.interrupt is None else INTERRUPTED  # by a signal meanwhile
        held, self._held = self._held, []
        for rank, message in held:
            self._take(rank, message)

    def _report(self, seconds):
        if not self._exchanges:  # a signal came before the first turn
            return
        log.info("%s", summary(self._exchanges, 0.0, seconds))
        if self.job.report is not None:
            lost = {rank: why for rank, why in self.others.lost.items() if rank in self.ranks}
            self.job.report.update(
                **reported(self._exchanges), seconds=seconds, busy=0.0, lost=lost
            )
