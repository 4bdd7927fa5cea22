"""The contracts of a cluster: what a node is, and what carries its messages.

::

    node 0  --turn--> messages --send--> transport --poll--> messages --take-->  node 1

A **node** does its part of a fit (a master, a worker, a peer).  It has no clock but the one it is
given, and knows neither MPI nor processes: messages go in by :meth:`Node.take`, and those to send
come out of :meth:`Node.turn`.  A **transport** is the end of the line at one node.  A driver stands
between the two: rounds of turns in one process (:mod:`dpsvi.cluster.turns`), the ranks of a launch
(:mod:`dpsvi.cluster.ranks`), events in virtual time (:mod:`dpsvi.engines.simulated`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from dpsvi.cluster.transports.messages import Message, Pool

MASTER = 0  # its node, where there is one
POLLS = 5e-5, 1e-3  # seconds between two polls of a transport, at first and at most
# Reasons why a node is lost; others, such as silence, are in the words of whoever found out.
ENDED = "its process ended"
UNREADABLE = "its message cannot be read"
DROPPED = "dropped"  # what a node is told that the others do not wait for any more
LONGEST = 200  # characters of a reason


class Node(Protocol):
    """One node of a fit.

    Attributes
    ----------
    pool : Pool
        Gives the buffers of the messages it sends; takes back those of what it was sent.
    """

    pool: Pool

    def take(self, sender: int, message: Message, /) -> None:
        """Receive one message of node `sender`."""

    def turn(self) -> Iterable[tuple[int, Message]]:
        """Do what there is to do; gives the messages to send, each when it is due, and for whom."""

    def lose(self, node: int, reason: str, /) -> None:
        """Continue without `node`.

        Raises
        ------
        LostRankError
            That cannot be.
        """


class Transport(Protocol):
    """What carries the messages of one node: in memory, over MPI, or in virtual time.

    The messages of one node to another arrive in order, or, once it is lost, not at all.

    Attributes
    ----------
    lost : dict of int
        Nodes that are lost, with the reason.
    """

    lost: dict[int, str]

    def send(self, node: int, message: Message, /) -> None:
        """Begin to send `message`, which is the transport's from now on; returns at once."""

    def poll(self) -> Iterable[tuple[int, Message]]:
        """What has arrived by now, in the order of arrival, with the sender."""

    def newly_lost(self) -> dict[int, str]:
        """Nodes found lost since the last call, with the reason."""
