"""A rank's side of a fit without a master: turns, rounds, signals, the end.

What a node does is in :mod:`dpsvi.cluster.nodes.peer`.  Ranks work in rounds, mostly one, and begin
the first together, when rank 0 says so.  When a rank has done its part, or learns that the round is
to end earlier (for a checkpoint, by a signal, by the observer, for a late rank that has come), it
says so to all others and merges what still comes, until all have said so: messages of a rank arrive
in order, so nothing is on its way then.  All send what they hold to rank 0 and get back what it is
together; so does a late rank, which has nothing to send, and all share out what is left to do.
"""

from __future__ import annotations

import logging
import time
from contextlib import contextmanager

import numpy as np

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
from dpsvi.training.ledger import Ledger
from dpsvi.training.signals import Deferred

log = logging.getLogger(__name__)

DONE, JOIN, SAVE, ENDED, INTERRUPTED = "done", "join", "save", "ended", "interrupted"
_URGENCY = [DONE, JOIN, SAVE, ENDED, INTERRUPTED]
_GOES_ON = JOIN, SAVE


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
        self._begun = False  # whether rank 0 has said who is there
        self.absent: set[int] = set()  # ranks that were not, and have not joined
        self._joined: dict[int, float] = {}  # training time when the others of them did
        self._known = set(self.others.live)  # ranks that the node reckons with
        self._at_round_end: set[int] = set()  # ranks that have ended this round
        self._held: list = []  # messages of the next round
        self._whole: list = []
        self._consensus = None  # the message of rank 0 that ends a round
        self._exchanges: list = []
        self.interrupt: KeyboardInterrupt | None = None  # of this rank

    def fit(self) -> str:
        """Rounds until all is done; returns why it ended."""
        self._begin()
        while True:
            if self.here.rank not in self.absent:
                self._turns()
                self._end_round()
            found = self._collect() if self.boundary is not None else self._take_consensus()
            if found["why"] not in _GOES_ON:
                return found["why"]
            self._next_round(found)

    @property
    def _there(self) -> set[int]:
        """The other ranks that take part."""
        return self.others.live - self.absent

    @property
    def _newcomers(self) -> set[int]:
        """Late ranks that have come."""
        return self.absent & self.others.greeted & self.others.live

    def _begin(self):
        """Say hello, and wait until all have, or rank 0 has waited for long enough.

        A rank that finds its compiled code sooner would make its steps alone: replicas that have
        never met have no mean worth having.
        """
        others, grace, started = self.others, self.job.cluster.grace_seconds, time.monotonic()
        others.notify(others.live, {"kind": "hello", "problem": describe(self.job)})
        if self.boundary is None:
            self._receive_until(lambda: self._begun or self.why != DONE)
            return
        self._receive_until(
            lambda: others.live <= others.greeted or self.why != DONE
            or (grace is not None and time.monotonic() - started >= grace)
        )  # fmt: skip
        absent = others.live - others.greeted if self.why == DONE else set()
        if absent:
            log.warning(
                "%d of %d ranks begin; the others join when they come",
                len(others.live - absent) + 1, len(others.live) + 1,
            )  # fmt: skip
        there = sorted({0, *others.live - absent})
        others.notify(others.live, {"kind": "begin", "there": there})
        self.boundary.start()
        self._begin_with(there)

    def _begin_with(self, there):
        """Make the first turns, one of the ranks that are there, or wait for a later round."""
        if len(there) < len(self.ranks):
            self._go_on(self.job.passes, there)
        self._begun = True
        self._take_held()

    def _go_on(self, passes, there):
        """Share out what is left among the ranks that are there."""
        self.absent = set(self.ranks) - set(there)
        if self.here.rank in there:
            self.peer.go_on(passes, [self.ranks.index(rank) for rank in there])
            self._known = set(there) - {self.here.rank}
            self._report_lost()

    # --- a round --------------------------------------------------------------------------------

    def _turns(self):
        """Make turns until this node's part is done or the round is to end."""
        while True:
            self._receive()
            if self.boundary is not None and self._newcomers:
                self._ask_for(JOIN)
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
        return rank in self._there and not {rank} & (others.unread | self._at_round_end)

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
        for rank in sorted(self._known - self._there):
            self.peer.lose(self.ranks.index(rank), self.others.lost.get(rank, "late"))
        self._known &= self._there

    def _receive_until(self, condition):
        """Receive until `condition` holds."""
        while not condition():
            self._receive()
            if not condition():
                self.others.rest()

    def _take(self, rank, message):
        header = message.header
        kind = header["kind"]
        later = header.get("round", self.round) > self.round
        if later or (kind == "share" and not self._begun):
            self._held.append((rank, message))
        elif kind == "begin":
            self.pool.give(message.buffer)
            self._begin_with(header["there"])
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

    def _take_held(self):
        held, self._held = self._held, []
        for rank, message in held:
            self._take(rank, message)

    # --- the end of a round ---------------------------------------------------------------------

    def _end_round(self):
        """Say that this node makes no more turns, wait until all have, send what it holds."""
        others = self.others
        others.notify(
            self._there, {"kind": "round_end", "why": self.why, "round": self.round}
        )
        # One that has ended before it was told that it is late gets what all come to.
        self._receive_until(
            lambda: self._consensus is not None
            or (self._there <= self._at_round_end and not others.unread)
        )
        if self.boundary is None and self._consensus is None:
            others.send(0, self.peer.whole())

    def _collect(self) -> dict:
        """Rank 0: what all nodes hold together becomes everybody's; how the fit goes on."""
        others, boundary = self.others, self.boundary
        self._receive_until(lambda: self._there <= {rank for rank, _ in self._whole})
        seconds = boundary.seconds
        together = Consensus(self.peer, seconds)
        for rank, message in self._whole:
            if rank in self._there:
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
        found = {"kind": "consensus", "why": why, "next_round": self.round + 1}
        if why == JOIN:
            found |= self._let_in(seconds, snapshot)
        lost = np.array(sorted(self.here.lost), np.int32)
        for rank in sorted(self._there if why in _GOES_ON else others.live):
            others.send(rank, state_message(self.pool, found, snapshot.state, lost=lost))
        if why not in _GOES_ON:
            self._at_round_end = set()
            self._receive_until(lambda: others.live <= self._at_round_end)
            self._report(seconds)
        return found

    def _let_in(self, seconds, snapshot) -> dict:
        """Rank 0: let late ranks join; what all must know of it."""
        newcomers = self._newcomers
        self.absent = self.absent - newcomers
        self._joined |= dict.fromkeys(newcomers, seconds)
        for rank in sorted(newcomers):
            log.info("rank %d joins after %d steps", rank, snapshot.passes.n_done)
        return {"there": sorted({0, *self._there}), "passes": snapshot.passes.position()}

    def _take_consensus(self) -> dict:
        """Any other rank: take over what rank 0 makes of what all hold; how the fit goes on."""
        self._receive_until(lambda: self._consensus is not None)
        message, self._consensus = self._consensus, None
        found = message.header
        adopt(self.job.state, message)
        self.here.lost |= set(message.arrays["lost"].tolist())
        self.pool.give(message.buffer)
        if found["why"] not in _GOES_ON:
            self.others.notify([0], {"kind": "round_end", "why": found["why"]})
        return found

    def _next_round(self, found):
        """All nodes go on from what they have together, and with those who join."""
        if found["why"] == JOIN:
            passes = self.job.passes
            sizes = passes.n_items, passes.batch_size, passes.n_passes
            self._go_on(Ledger.resume(*sizes, found["passes"]), found["there"])
        else:
            self.peer.restart(self.job.state)
            self._known = set(self.ranks) - {self.here.rank}
            self._report_lost()
        self.round, self._at_round_end = found["next_round"], set()
        self.why = DONE if self.interrupt is None else INTERRUPTED  # by a signal meanwhile
        self._take_held()

    def _report(self, seconds):
        if not self._exchanges:  # a signal came before the first turn
            return
        log.info("%s", summary(self._exchanges, 0.0, seconds))
        if self.job.report is not None:
            lost = {rank: why for rank, why in self.others.lost.items() if rank in self.ranks}
            self.job.report.update(
                **reported(self._exchanges), seconds=seconds, busy=0.0, lost=lost,
                joined=self._joined,
            )  # fmt: skip
