"""A virtual cluster without a master: nodes that push to each other, in virtual time.

A node merges what has come, makes its steps, and sends; its messages leave over its own link, one
after the other, while it goes on.  Word that a message was read takes the latency.  At the end all
send what they hold to the first node, whose link, where ``Network.shared``, takes one message after
the other.  They do so, too, when a late node is to join, and get back what that is together.
"""

from __future__ import annotations

from collections import deque

from dpsvi.cluster.nodes.consensus import Consensus
from dpsvi.cluster.nodes.exchanges import reported
from dpsvi.cluster.nodes.peer import Peer
from dpsvi.cluster.transports.virtual import VirtualLinks
from dpsvi.cluster.virtual.virtual_time import VirtualTime
from dpsvi.training.boundary import Boundary, Progress
from dpsvi.training.job import Job, Snapshot

_LATE = "late"  # beside the reasons why a node fails


def fit_peers(job: Job, timing) -> bool:
    """Carry out `job` on its ``job.cluster``; whether the observer ended it."""
    simulation = _Peers(job, timing)
    boundary = simulation.boundary
    try:
        with boundary.interruptible(simulation.consensus):
            simulation.run()
            simulation.end()
    finally:
        simulation.close()
    return boundary.ended


class _Peers(VirtualTime):
    """Nodes, and messages on their way."""

    def __init__(self, job: Job, timing):
        n = job.cluster.n_workers
        super().__init__(job, timing, range(n))
        first = Peer(job, 0, n, self.run_steps, self.clock)
        rest = (Peer(job, i, n, self.run_steps, self.clock, like=first) for i in range(1, n))
        self.peers = [first, *rest]
        self.boundary = Boundary(job, self.clock)
        self._lost: dict[int, str] = {}  # why, of those that others know to be lost
        self._joined: dict[int, float] = {}  # when, of those that have come late
        self._exchanges: list = []  # before the last of them
        self._there: set[int] = set()  # nodes that take part
        self._coming: set[int] = set()  # those that are to join when all have made their turns
        self._round = 0  # how often nodes have joined

    def run(self) -> None:
        """Until all steps are done."""
        late, grace = self.options.late, self.options.grace_seconds
        last = max(late.values(), default=0.0)
        self.now = self._began = last if grace is None else min(grace, last)
        absent = {node for node, second in late.items() if second > self.now}
        faults = [*self._failures, *((late[node], node, _LATE) for node in absent)]
        self._failures = deque(sorted(faults))
        self._there = set(range(len(self.peers))) - absent
        if absent:
            self._go_on(self.job.passes)
        self._begin_round()
        self.boundary.start()
        self.until(lambda: not self.events or self.boundary.ended)
        if not self.boundary.ended and not all(peer.finished for peer in self._live):
            raise RuntimeError("nodes without a master all wait for each other")

    def _begin_round(self):
        """Let all that are there make turns; nothing is on its way."""
        nodes = dict(enumerate(self.peers))
        self._links = VirtualLinks(self, nodes, lambda sender, to: sender, self._arrived)
        self._unread: list[set[int]] = [set() for _ in nodes]  # who has not read the last one
        self._waiting: set[int] = set()  # nodes that wait for a message of others
        self._at_work = set(self._there)  # nodes in the midst of a turn
        for node in sorted(self._there):
            self.at(self.now, self._turn, node, self._round)

    @property
    def _live(self) -> list[Peer]:
        """Nodes that take part and have not failed."""
        return [self.peers[node] for node in sorted(self._there - self.gone)]

    def lose(self, node: int, reason: str) -> None:
        """Let all others go on without `node`."""
        self._lost[node] = reason
        for peer in self._live:
            peer.lose(node, reason)
            self._unread[peer.node].discard(node)
        self._wake(*self._waiting)
        self._let_in()

    def _fail(self, second, node, reason):
        if reason != _LATE:
            super()._fail(second, node, reason)
        elif node not in self.gone:
            self.now = second
            self._coming.add(node)
            self._let_in()

    def _let_in(self):
        """Let late nodes join when nobody is in the midst of a turn, or may be, being silent."""
        silent = self._there & self.gone - self._lost.keys()
        if not self._coming or silent or self._at_work - self.gone:
            return
        passes = self.consensus().passes
        self._exchanges += self._all.exchanges
        self.now += 2 * self._collecting()  # there and back
        self._joined |= dict.fromkeys(self._coming, self.boundary.seconds)
        self._there = (self._there | self._coming) - self.gone
        self._coming, self._round = set(), self._round + 1
        self._go_on(passes)
        self._begin_round()

    def _go_on(self, passes):
        for peer in self._live:
            peer.go_on(passes, self._there)

    def _collecting(self) -> float:
        """Seconds until all have sent what they hold to the first node."""
        network = self.options.network
        seconds = [peer.whole().n_bytes / network.bandwidth for peer in self._live[1:]]
        if not seconds:
            return 0.0
        return network.latency + (sum(seconds) if network.shared else max(seconds))

    def end(self) -> None:
        """Let all send what they hold to the first node, and take the time of that."""
        self.now += self._collecting()
        snapshot = self.consensus()
        exchanges = self._exchanges + self._all.exchanges
        if self.job.report is not None:
            self.job.report.update(
                **reported(exchanges), seconds=self.now - self._began, busy=0.0, lost=self._lost,
                joined=self._joined, timing=self.timing,
            )  # fmt: skip
        if not self.boundary.ended:
            self.boundary.reached(Progress.of(snapshot), lambda: snapshot)

    def consensus(self) -> Snapshot:
        """Of all nodes and all messages, which all stay as they are."""
        self._all = Consensus.of(self._live, self._links.unread(), self.boundary.seconds)
        return self._all.snapshot()

    def _turn(self, node, of_round):
        """Merge what has come, make steps, send; and again at the end of that."""
        if node in self.gone or of_round != self._round:
            return
        self._at_work.discard(node)
        if self._coming:
            self._let_in()
            return
        peer, timing = self.peers[node], self.timing
        began, slower, self.computing = self.now, self.slower[node], node
        for sender, message in self._links.at(node).poll():
            self.now += (timing.turn + timing.touch * message.n_bytes) * slower
            peer.take(sender, message)
            latency = self.options.network.latency
            self.at(self.now + latency, self._read, sender, node, of_round)
        unread = self._unread[node]
        waits = peer.waits and not any(other.finished for other in self._live)
        if waits or (peer.ahead(unread) and not peer.finished):
            self._waiting.add(node)
        elif not peer.finished:
            busy = unread | self._lost.keys()
            found = peer.turn(lambda to: to not in busy and not self.peers[to].finished)
            for to, message in found:
                self.now += timing.touch * message.n_bytes * slower
                unread.add(to)
                self._links.at(node).send(to, message)
            if node == 0 and not peer.finished:  # the last look is at the consensus
                self.boundary.reached(peer.progress, self.consensus)
            self._at_work.add(node)
            self.at(self.now, self._turn, node, of_round)
            if peer.finished:
                self._wake(*self._waiting)
        self.now = began

    def _read(self, node, to, of_round):
        """A node learns that its message was read."""
        if of_round != self._round:
            return
        self._unread[node].discard(to)
        if node in self._waiting:
            self._wake(node)

    def _wake(self, *nodes):
        """Let nodes that wait look again."""
        for node in sorted(nodes):
            self._waiting.discard(node)
            self.at(self.now, self._turn, node, self._round)

    def _arrived(self, node):
        if self.peers[node].finished:
            self._turn(node, self._round)
        elif node in self._waiting:
            self._wake(node)
