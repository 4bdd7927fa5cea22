"""What peers have come to together, and what an observer gets to see while they are at work."""

from __future__ import annotations

from copy import copy

import numpy as np

from dpsvi.base import Event
from dpsvi.cluster.nodes.exchanges import Exchange
from dpsvi.cluster.nodes.peer import Peer, copy_of
from dpsvi.cluster.nodes.shares import rest_of
from dpsvi.cluster.transports.messages import Message
from dpsvi.training.driver import Snapshot
from dpsvi.training.ledger import Cuts


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
        self._left = [work[:4] for work in peer.left]
        self.exchanges = list(peer.exchanges)

    def add(self, message: Message) -> None:
        """Merge what another node holds, or a message that is on its way."""
        header, arrays = message.header, message.arrays
        self._strategy.merge(self._state, header["numbers"], arrays)
        if header["kind"] == "whole":
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
        return Snapshot(state, passes, self._seconds, (job.cluster.strategy, {}))


class Looks:
    """Calls the observer of a job with the replica of one node, at that node's progress.

    Between two messages nobody knows more.

    Parameters
    ----------
    peer : Peer
    """

    def __init__(self, peer: Peer):
        self.peer, self.job = peer, peer.job
        passes = self.job.passes
        self._cuts = Cuts(passes.steps_a_pass, self.job.observe_every)
        self._before, self._n_left = passes.n_done, passes.n_left
        self._last = self._before
        self._step, self._items = self.job.state.step, self.job.state.items

    def __call__(self, seconds: float) -> bool:
        """After a turn: whether the observer wants the fit to end here."""
        peer, job = self.peer, self.job
        if peer.finished:  # the last look is at the consensus
            return False
        last, self._last = self._last, self._before + int(self._n_left * peer.share_done)
        # For whoever shows progress; the consensus knows what was really done.
        job.state.step = self._step + self._last - self._before
        job.state.items = self._items + peer.n_nodes * peer.n_items
        if job.observer is None:
            return False
        if not self._cuts.crossed(last, self._last):
            return False
        return self._look(self._last, job.state.items, seconds, peer.state)

    def end(self, snapshot: Snapshot) -> bool:
        """After all turns of all nodes."""
        if self.job.observer is None or not self._n_left:
            return False
        state = snapshot.state
        return self._look(snapshot.passes.n_done, state.items, snapshot.seconds, state)

    def _look(self, n_done, items, seconds, state) -> bool:
        passes = self.job.passes
        new = n_done - self._before
        rate = float(self.job.schedule(np.array([passes.clock + new]))[0])
        epoch = n_done / passes.steps_a_pass
        return bool(
            self.job.observer(Event(self._step + new, items, epoch, seconds, rate, state))
        )
