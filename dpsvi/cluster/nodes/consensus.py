"""What peers have come to together."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy

from dpsvi.cluster.nodes.exchanges import Exchange
from dpsvi.cluster.nodes.peer import Peer, copy_of, kept_by
from dpsvi.cluster.nodes.shares import rest_of
from dpsvi.cluster.transports.messages import Message
from dpsvi.training.job import Snapshot


class Consensus:
    """What all nodes together have come to; made from one node's replica and what others hold.

    Parameters
    ----------
    peer : Peer
    seconds : float
        Training time of all that was done for `peer`'s job.

    Attributes
    ----------
    exchanges : list of Exchange
    """

    def __init__(self, peer: Peer, seconds: float):
        self.job, self._seconds = peer.job, seconds
        self._state, self._strategy = copy_of(peer.state, 1), copy(peer.strategy)
        self._strategy.renormalise(self._state)
        self._kept: dict = {"n_nodes": peer.n_nodes}  # of the strategies of all nodes
        self._keep(peer.node, self._strategy.state())
        self._left = [work[:4] for work in peer.left]
        self.exchanges = list(peer.exchanges)

    @classmethod
    def of(cls, peers: Iterable[Peer], messages: Iterable[Message], seconds: float) -> Consensus:
        """That of `peers` of one process, and of `messages` that none of them has read."""
        first, *rest = peers
        together = cls(first, seconds)
        for peer in rest:
            together.add(peer.whole())
        for message in messages:
            together.add(message)
        return together

    def add(self, message: Message) -> None:
        """Merge what another node holds, or a message that is on its way."""
        header, arrays = message.header, message.arrays
        self._strategy.merge(self._state, header["numbers"], arrays)
        if header["kind"] == "whole":
            self._keep(header["node"], kept_by(message))
            self._left += arrays["left"].tolist()
            self._state.step += header["n_done"]
            self._state.items += header["n_items"]
            self.exchanges += [
                Exchange(*map(int, e[:3]), e[3], int(e[4]), e[5], *map(int, e[6:]))
                for e in arrays["exchanges"].tolist()
            ]

    def snapshot(self) -> Snapshot:
        """Parameters, clocks and ledger, of which the state of the job becomes the first two."""
        job, state, mine = self.job, self.job.state, self._state
        mine.renormalise()
        state.shared.rows[...] = mine.shared.rows
        state.scale = 1.0
        state.recount()
        state.step, state.items = mine.step, mine.items
        passes = rest_of(job.passes, self._left)
        return Snapshot(state, passes, self._seconds, (job.cluster.strategy, self._kept))

    def _keep(self, node, content):
        self._kept |= {f"{name}_{node}": value for name, value in content.items()}
