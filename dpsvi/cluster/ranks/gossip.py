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
from dpsvi.cluster.ranks.attendance import Attendance
from dpsvi.cluster.ranks.heartbeat import Heartbeat
from dpsvi.cluster.ranks.others import Others
from dpsvi.cluster.ranks.world import World
from dpsvi.cluster.transports.messages import as_array, from_array
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
    rank.others.end(missed=not rank.attendance.here)
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
        ranks = [0, *here.others]  # of the nodes
        self.others = Others(job, here, heartbeat, signals)
        self.attendance = Attendance(self.others, here.rank, ranks)
        self.pool = self.others.pool
        self.peer = Peer(job, ranks.index(here.rank), len(ranks), pool=self.pool)
        self.boundary = Boundary(job) if here.rank == 0 else None
        self.round, self.why = 0, DONE
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
            if self.attendance.here:
                self._turns()
                self._end_round()
            found = self._collect() if self.boundary is not None else self._take_consensus()
            if found["why"] not in _GOES_ON:
                return found["why"]
            self._next_round(found)

    def _begin(self):
        """Say hello, and wait until all have, or rank 0 has waited for long enough.

        A rank that finds its compiled code sooner would make its steps alone: replicas that have
        never met have no mean worth having.
        """
        others, attendance = self.others, self.attendance
        grace, started = self.job.cluster.grace_seconds, time.monotonic()
        others.notify(others.live, {"kind": "hello", "problem": others.problem})
        if self.boundary is None:
            self._receive_until(lambda: attendance.begun or self.why != DONE)
            return
        self._receive_until(
            lambda: not attendance.late or self.why != DONE
            or (grace is not None and time.monotonic() - started >= grace)
        )  # fmt: skip
        there = attendance.first(attendance.late if self.why == DONE else set())
        others.notify(others.live, {"kind": "begin", "there": there, "why": self.why})
        self.boundary.start()
        self._begin_with(there)

    def _begin_with(self, there):
        """Make the first turns, one of the ranks that are there, or wait for a later round."""
        if len(there) < len(self.attendance.ranks):
            self._go_on(self.job.passes, there)
        self.attendance.begun = True
        self._take_held()

    def _go_on(self, passes, there):
        """Share out what is left among the ranks that are there."""
        nodes = self.attendance.take_over(there)
        if self.attendance.here:
            self.peer.go_on(passes, nodes)
            self._report_lost()

    # --- a round --------------------------------------------------------------------------------

    def _turns(self):
        """Make turns until this node's part is done or the round is to end."""
        while True:
            self._receive()
            if self.boundary is not None and self.attendance.newcomers:
                self._ask_for(JOIN)
            if self.peer.finished or self.why != DONE:
                return
            unread = [self.attendance.node(rank) for rank in self.others.unread]
            if (self.peer.waits and not self._at_round_end) or self.peer.ahead(unread):
                self.others.rest()
                continue
            for node, message in self.peer.turn(self._ready):
                message.header["round"], to = self.round, self.attendance.ranks[node]
                self.others.send(to, message)
                self.others.unread.add(to)
            if self.boundary is not None and not self.peer.finished:
                self._look()  # the last look is at the consensus

    def _ready(self, node) -> bool:
        """Whether `node` is at work and has read the last message.

        Else mass would pile up where nobody fits with it, and be lost with a rank that is stopped.
        """
        rank = self.attendance.ranks[node]
        busy = self.others.unread | self._at_round_end
        return rank in self.attendance.there and rank not in busy

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
        for node, reason in self.attendance.newly_gone():
            self.peer.lose(node, reason)

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
        if later or (kind == "share" and not self.attendance.begun):
            self._held.append((rank, message))
        elif kind == "begin":
            self.pool.give(message.buffer)
            self._ask_for(header["why"])  # a signal came before: nobody is to make a step
            self._begin_with(header["there"])
        elif kind == "share":
            self.peer.take(self.attendance.node(rank), message)
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
        others, attendance = self.others, self.attendance
        header = {"kind": "round_end", "why": self.why, "round": self.round}
        others.notify(attendance.there, header)
        # One that has ended before it was told that it is late gets what all come to.
        self._receive_until(
            lambda: self._consensus is not None
            or (attendance.there <= self._at_round_end and not others.unread)
        )
        if self.boundary is None and self._consensus is None:
            others.send(0, self.peer.whole())

    def _collect(self) -> dict:
        """Rank 0: what all nodes hold together becomes everybody's; how the fit goes on."""
        others, boundary, attendance = self.others, self.boundary, self.attendance
        self._receive_until(lambda: attendance.there <= {rank for rank, _ in self._whole})
        seconds = boundary.seconds
        together = Consensus(self.peer, seconds)
        for rank, message in self._whole:
            if rank in attendance.there:
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
        found, plan = {"kind": "consensus", "why": why, "next_round": self.round + 1}, {}
        if why == JOIN:
            there = attendance.let_in(seconds, snapshot.passes.n_done)
            plan = {"there": there, "passes": snapshot.passes.position()}
        lost = np.array(sorted(self.here.lost), np.int32)
        arrays = {"lost": lost, "plan": as_array(plan)}
        for rank in sorted(attendance.there if why in _GOES_ON else others.live):
            others.send(rank, state_message(self.pool, found, snapshot.state, **arrays))
        if why not in _GOES_ON:
            self._at_round_end = set()
            self._receive_until(lambda: others.live <= self._at_round_end)
            self._report(seconds)
        return found | plan

    def _take_consensus(self) -> dict:
        """Any other rank: take over what rank 0 makes of what all hold; how the fit goes on."""
        self._receive_until(lambda: self._consensus is not None)
        message, self._consensus = self._consensus, None
        found = message.header | from_array(message.arrays["plan"])
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
            self.attendance.reckon_with_all()
            self._report_lost()
        self.round, self._at_round_end = found["next_round"], set()
        self.why = DONE if self.interrupt is None else INTERRUPTED  # by a signal meanwhile
        self._take_held()

    def _report(self, seconds):
        if not self._exchanges:  # a signal came before the first turn
            return
        log.info("%s", summary(self._exchanges, 0.0, seconds))
        if self.job.report is not None:
            ranks = self.attendance.ranks
            lost = {rank: why for rank, why in self.others.lost.items() if rank in ranks}
            self.job.report.update(
                **reported(self._exchanges), seconds=seconds, busy=0.0, lost=lost,
                joined=self.attendance.joined,
            )  # fmt: skip
