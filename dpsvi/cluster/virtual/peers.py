"""A virtual cluster without a master: nodes that push to each other, in virtual time.

A node merges what has come, makes its steps, and sends; its messages leave over its own link, one
after the other, while it goes on.  Word that a message was read takes the latency.  At the end all
send what they hold to the first node, whose link, where ``Network.shared``, takes one message after
the other.
"""

from __future__ import annotations

from dpsvi.cluster.nodes.consensus import Consensus
from dpsvi.cluster.nodes.exchanges import reported
from dpsvi.cluster.nodes.peer import Peer
from dpsvi.cluster.transports.virtual import VirtualLinks
from dpsvi.cluster.virtual.virtual_time import VirtualTime
from dpsvi.training.boundary import Boundary, Progress
from dpsvi.training.job import Job, Snapshot


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
        nodes = dict(enumerate(self.peers))
        self._links = VirtualLinks(self, nodes, lambda sender, to: sender, self._arrived)
        self._unread: list[set[int]] = [set() for _ in range(n)]  # who has not read the last one
        self._waiting: set[int] = set()  # nodes that wait for a message of others
        self._lost: dict[int, str] = {}  # why, of those that others know to be lost

    def run(self) -> None:
        """Until all steps are done."""
        for node in range(len(self.peers)):
            self.at(0.0, self._turn, node)
        self.boundary.start()
        self.until(lambda: not self.events or self.boundary.ended)
        if not self.boundary.ended and not all(peer.finished for peer in self._live):
            raise RuntimeError("nodes without a master all wait for each other")

    @property
    def _live(self) -> list[Peer]:
        """Nodes that have not failed."""
        return [peer for peer in self.peers if peer.node not in self.gone]

    def lose(self, node: int, reason: str) -> None:
        """Let all others go on without `node`."""
        self._lost[node] = reason
        for peer in self._live:
            peer.lose(node, reason)
            self._unread[peer.node].discard(node)
        self._wake(*self._waiting)

    def end(self) -> None:
        """Let all send what they hold to the first node, and take the time of that."""
        network = self.options.network
        if others := self._live[1:]:
            seconds = [peer.whole().n_bytes / network.bandwidth for peer in others]
            self.now += network.latency + (sum(seconds) if network.shared else max(seconds))
        snapshot = self.consensus()
        exchanges = self._all.exchanges
        if self.job.report is not None:
            self.job.report.update(
                **reported(exchanges), seconds=self.now, busy=0.0, lost=self._lost,
                timing=self.timing,
            )  # fmt: skip
        if not self.boundary.ended:
            self.boundary.reached(Progress.of(snapshot), lambda: snapshot)

    def consensus(self) -> Snapshot:
        """Of all nodes and all messages, which all stay as they are."""
        self._all = Consensus(self.peers[0], self.boundary.seconds)
        for peer in self._live[1:]:
            self._all.add(peer.whole())
        for message in self._links.unread():
            self._all.add(message)
        return self._all.snapshot()

    def _turn(self, node):
        """Merge what has come, make steps, send; and again at the end of that."""
        if node in self.gone:
            return
        peer, timing = self.peers[node], self.timing
        began, slower, self.computing = self.now, self.slower[node], node
        for sender, message in self._links.at(node).poll():
            self.now += (timing.turn + timing.touch * message.n_bytes) * slower
            peer.take(sender, message)
            self.at(self.now + self.options.network.latency, self._read, sender, node)
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
            self.at(self.now, self._turn, node)
            if peer.finished:
                self._wake(*self._waiting)
        self.now = began

    def _read(self, node, to):
        """A node learns that its message was read."""
        self._unread[node].discard(to)
        if node in self._waiting:
            self._wake(node)

    def _wake(self, *nodes):
        """Let nodes that wait look again."""
        for node in sorted(nodes):
            self._waiting.discard(node)
            self.at(self.now, self._turn, node)

    def _arrived(self, node):
        if self.peers[node].finished:
            self._turn(node)
        elif node in self._waiting:
            self._wake(node)
