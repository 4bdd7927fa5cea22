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
from dpsvi.cluster.transports.messages import Message, deliver
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
        self._link = [0.0] * n  # when it is free again
        self._inbox: list[list[Message]] = [[] for _ in range(n)]
        self._flying: dict[int, tuple[int, int, Message]] = {}  # by number: from, to
        self._n_sent = 0
        self._unread: list[set[int]] = [set() for _ in range(n)]  # who has not read the last one
        self._waiting: set[int] = set()  # nodes that go on when they have heard from others
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
            peer.lose(node)
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
        for node, to, message in self._flying.values():
            if not {node, to} & self.gone:
                self._all.add(message)
        for peer in self._live:
            for message in self._inbox[peer.node]:
                self._all.add(message)
        return self._all.snapshot()

    def _turn(self, node):
        """Merge what has come, make steps, send; and again at the end of that."""
        if node in self.gone:
            return
        peer, timing = self.peers[node], self.timing
        began, slower, self.computing = self.now, self.slower[node], node
        for message in self._inbox[node]:
            self.now += (timing.turn + timing.touch * message.n_bytes) * slower
            peer.take(message)
            known = self.now + self.options.network.latency
            self.at(known, self._read, message.header["node"], node)
        self._inbox[node].clear()
        unread = self._unread[node]
        waits = peer.waits and not any(other.finished for other in self._live)
        if waits or (peer.ahead(unread) and not peer.finished):
            self._waiting.add(node)
        elif not peer.finished:
            busy = unread | self._lost.keys()
            found = peer.turn(lambda to: to not in busy and not self.peers[to].finished)
            if found is not None:
                to, message = found
                self.now += timing.touch * message.n_bytes * slower
                self._send(node, to, message)
            if node == 0 and not peer.finished:  # the last look is at the consensus
                self.boundary.reached(peer.progress, self.consensus)
            self.at(self.now, self._turn, node)
            if peer.finished:
                self._wake(*self._waiting)
        self.now = began

    def _read(self, node, to):
        """A node hears that its message was read."""
        self._unread[node].discard(to)
        if node in self._waiting:
            self._wake(node)

    def _wake(self, *nodes):
        """Let nodes that wait look again."""
        for node in sorted(nodes):
            self._waiting.discard(node)
            self.at(self.now, self._turn, node)

    def _send(self, node, to, message):
        network = self.options.network
        leaves = max(self.now, self._link[node]) + message.n_bytes / network.bandwidth
        self._link[node] = leaves
        number, self._n_sent = self._n_sent, self._n_sent + 1
        copy = deliver(message, self.peers[node].pool, self.peers[to].pool)
        self._flying[number] = node, to, copy
        self._unread[node].add(to)
        self.at(leaves + network.latency, self._arrive, to, number)

    def _arrive(self, to, number):
        node, _, message = self._flying.pop(number)
        if {node, to} & self.gone:
            return
        self._inbox[to].append(message)
        if self.peers[to].finished:
            self._turn(to)
        elif to in self._waiting:
            self._wake(to)
