"""Messages between nodes of one process: each lies in the inbox of its receiver until it polls."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from dpsvi.cluster.transports.messages import Message, deliver


class Endpoint:
    """One node's end of a :class:`Memory`; a :class:`dpsvi.cluster.contracts.Transport`."""

    def __init__(self, memory: Memory, node: int):
        self.lost: dict[int, str] = {}
        self._memory, self._node = memory, node
        self._newly_lost: dict[int, str] = {}

    def send(self, node: int, message: Message) -> None:
        """Copy `message` for `node`; its buffer goes back to the sender's pool."""
        if node not in self.lost:
            self._memory.carry(self._node, node, message)

    def poll(self) -> Iterator[tuple[int, Message]]:
        """What has arrived by now, with the sender."""
        return self._memory.arrived(self._node)

    def newly_lost(self) -> dict[int, str]:
        """Nodes found lost since the last call, with the reason."""
        found, self._newly_lost = self._newly_lost, {}
        return found

    def lose(self, node: int, reason: str) -> None:
        """Note that `node` is lost."""
        if node not in self.lost:
            self.lost[node] = self._newly_lost[node] = reason


class _Sent(NamedTuple):
    arrives: int
    sender: int
    message: Message


class Memory:
    """The messages of all nodes.

    Parameters
    ----------
    nodes : dict of int
        The nodes, of which only the pools are used.
    delay : int, >= 0
        How many units of `time` a message is on its way.
    time : int
        To begin with.

    Attributes
    ----------
    time : int
        The driver lets it pass.
    """

    def __init__(self, nodes: Mapping[int, Any], delay: int = 0, time: int = 0):
        self.time, self._delay = time, delay
        self._pools = {node: each.pool for node, each in nodes.items()}
        self._inbox: dict[int, deque[_Sent]] = {node: deque() for node in nodes}
        self._ends = {node: Endpoint(self, node) for node in nodes}

    def at(self, node: int) -> Endpoint:
        """The end at `node`."""
        return self._ends[node]

    def carry(self, sender: int, to: int, message: Message) -> None:
        """Bring a copy of `message` on its way."""
        copy = deliver(message, self._pools[sender], self._pools[to])
        self._inbox[to].append(_Sent(self.time + self._delay, sender, copy))

    def arrived(self, node: int) -> Iterator[tuple[int, Message]]:
        """Take what has arrived at `node` by now, one after the other."""
        inbox = self._inbox[node]
        while inbox and inbox[0].arrives <= self.time:
            _, sender, message = inbox.popleft()
            yield sender, message

    def unread(self, *nodes: int) -> list[Message]:
        """Messages to `nodes`, all by default, that are on their way or not yet polled."""
        return [sent.message for node in nodes or self._inbox for sent in self._inbox[node]]

    def lose(self, node: int, reason: str) -> None:
        """Lose `node`, with all that is on its way to it and from it."""
        for other, end in self._ends.items():
            if other != node:
                end.lose(node, reason)
        self._inbox[node].clear()
        for other, inbox in self._inbox.items():
            self._inbox[other] = deque(sent for sent in inbox if sent.sender != node)
