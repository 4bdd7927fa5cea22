"""Messages in virtual time: each waits for its link, and takes its bytes and the latency."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any

from dpsvi.cluster.transports.messages import Message, deliver


class VirtualLinks:
    """The links of a virtual cluster; messages from and to nodes that have failed are dropped.

    Parameters
    ----------
    time : dpsvi.cluster.virtual.virtual_time.VirtualTime
    nodes : dict of int
        The nodes, of which only the pools are used.
    link : callable(sender, receiver) -> hashable or None
        Names the link of a message, which takes one after the other; None: one of its own.
    on_arrival : callable(node)
        Called when a message has arrived there.
    """

    def __init__(
        self, time, nodes: Mapping[int, Any], link: Callable[[int, int], Hashable | None],
        on_arrival: Callable[[int], None],
    ):  # fmt: skip
        self._time, self._link, self._on_arrival = time, link, on_arrival
        self._pools = {node: each.pool for node, each in nodes.items()}
        self._inbox: dict[int, deque] = {node: deque() for node in nodes}
        self._flying: dict[int, tuple[int, int, Message]] = {}  # by number: from, to
        self._n_sent = 0
        self._free_at: dict[Hashable, float] = {}  # of the links

    def at(self, node: int) -> Endpoint:
        """The end at `node`."""
        return Endpoint(self, node)

    def carry(self, sender: int, to: int, message: Message) -> None:
        """Bring a copy of `message` on its way."""
        if sender in self._time.gone:
            return
        network, link = self._time.options.network, self._link(sender, to)
        start = max(self._time.now, self._free_at.get(link, 0.0))
        leaves = start + message.n_bytes / network.bandwidth
        if link is not None:
            self._free_at[link] = leaves
        number, self._n_sent = self._n_sent, self._n_sent + 1
        copy = deliver(message, self._pools[sender], self._pools[to])
        self._flying[number] = sender, to, copy
        self._time.at(leaves + network.latency, self._arrive, number)

    def _arrive(self, number):
        sender, to, message = self._flying.pop(number)
        if not {sender, to} & self._time.gone:
            self._inbox[to].append((sender, message))
            self._on_arrival(to)

    def arrived(self, node: int) -> Iterator[tuple[int, Message]]:
        """Take what has arrived at `node` by now, one after the other."""
        while self._inbox[node]:
            yield self._inbox[node].popleft()

    def unread(self) -> list[Message]:
        """All messages that are on their way or not yet polled, and will be read."""
        gone = self._time.gone
        flying = [message for *ends, message in self._flying.values() if not gone & {*ends}]
        inboxes = [inbox for node, inbox in self._inbox.items() if node not in gone]
        return [*flying, *(message for inbox in inboxes for _, message in inbox)]


class Endpoint:
    """One node's end of :class:`VirtualLinks`; a :class:`dpsvi.cluster.contracts.Transport`."""

    def __init__(self, links: VirtualLinks, node: int):
        self._links, self._node = links, node
        self.lost: dict[int, str] = {}  # a failure is an event of virtual time, reported there

    def send(self, node: int, message: Message) -> None:
        """Bring a copy of `message` on its way; its buffer goes back to the sender's pool."""
        self._links.carry(self._node, node, message)

    def poll(self) -> Iterator[tuple[int, Message]]:
        """What has arrived by now, with the sender."""
        return self._links.arrived(self._node)

    def newly_lost(self) -> dict[int, str]:
        """Nobody."""
        return {}
