"""GAP (Im, Ma, Kim and Taylor 2016): pairs of nodes exchange replicas, whose mean is the result.

The authors train several pairs of networks, each a generator and a discriminator, and let partners
change every few updates.  Here, after every `period` turns, the nodes are paired at random, and the
two of a pair exchange their replicas, so that each goes on with the data of another node: the
partner of a replica is the data of the node where it is.  With `last_rows` they exchange only the
last rows of their replicas, and all others stay: where these are a discriminator, and the others
its generator, each generator gets another discriminator, as in the paper.

All nodes draw the same pairs.  In its turn each of the two sends a copy of its replica, and takes
over what comes from the other in its place.  What its steps have made of the copy meanwhile is a
decay a and additive statistics b (:mod:`dpsvi.strategies.decay`), which follow the replica v that
has come::

    v - prior <- a (v - prior) + b

This is convex, as the steps are, so v stays a valid natural parameter where, as in all models here,
rows do not bind each other.  Nothing else draws replicas together.  Reported is their mean, which
is convex, too; over MPI all nodes go on from it when a checkpoint has been written.

There is one of each replica, and of each part of one that moves: a node takes another one over only
if its own has been, or will be, taken over there.  One that is on its way counts as if it had come.
The two of a pair wait for each other with their next exchange, not with their steps.  So a node
that has done its part ends the exchanges of those who are to meet it, while a lost one is passed
over; what it had is lost with it.  A node that is behind keeps the copies of all who wait for it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpsvi.base import Peers
from dpsvi.errors import check_number


def partner(node: int, n_nodes: int, *meeting: int) -> int | None:
    """The node that `node` meets at the meeting of these numbers; of an odd number one meets none.

    Examples
    --------
    >>> [partner(node, 5, 0, 1) for node in range(5)]
    [4, None, 3, 2, 0]
    """
    order = np.random.default_rng([n_nodes, *meeting]).permutation(n_nodes).tolist()
    place = order.index(node) ^ 1
    return order[place] if place < n_nodes else None


class _Sent(NamedTuple):
    """What a node has sent of its replica, of which it still has a copy."""

    meeting: int
    decay: float  # of the copy, since then
    rows: np.ndarray  # of then, decayed so


class Strategy(Peers):
    """See :class:`dpsvi.base.Peers`.

    Parameters
    ----------
    period : int, >= 1
        Turns of a node from one meeting to the next.
    last_rows : int, >= 1, or None
        Rows of the parameters, the last ones, that the two exchange, not more than there are; None:
        all.

    Examples
    --------
    >>> from dpsvi import DPSVILDA, VirtualCluster
    >>> from dpsvi.datasets import load_lee
    >>> cluster = VirtualCluster(n_workers=4, strategy="gap", strategy_options={"period": 2})
    >>> lda = DPSVILDA(5, engine="simulated", cluster=cluster, max_iter=2, random_state=0)
    >>> lda.fit(load_lee()).components_.shape[0]
    5
    """

    incremental = False  # the mean of n nodes would get 1 / n of each change

    def __init__(self, period: int = 4, last_rows: int | None = None):
        check_number("period", period, low=1, integer=True)
        if last_rows is not None:
            check_number("last_rows", last_rows, low=1, integer=True)
        self.period, self.last_rows = period, last_rows

    def begin(self, state, node: int, n_nodes: int, before: dict | None) -> None:
        """Draw pairs anew; all nodes know how many steps all have made.

        Raises
        ------
        ValueError
            `last_rows` is more than there are.
        """
        n_rows = len(state.shared.rows)
        if self.last_rows is not None:
            check_number("last_rows", self.last_rows, low=1, high=n_rows, integer=True)
        self._moving = slice(n_rows - (self.last_rows or n_rows), n_rows)
        state.renormalise()
        self._node, self._n_nodes, self._seed = node, n_nodes, state.step
        self._lost = frozenset[int]()
        self._turns = self._meeting = 0
        self._came: dict[int, np.ndarray] = {}  # replicas from meetings that this node is to reach
        self._sent: _Sent | None = None
        self._n_whole = 1  # nodes that the state is the mean of
        self._of_others: dict[int, _Sent] = {}

    def renormalise(self, state) -> None:
        """Let the replica that was sent decay as its copy did in the local steps."""
        if self._sent is not None:
            meeting, decay, rows = self._sent
            rows = rows * state.model.real.type(state.scale)
            self._sent = _Sent(meeting, decay * state.scale, rows)
        state.renormalise()

    def lost(self, node: int) -> None:
        """Keep the replica that `node` was to take over."""
        self._lost |= {node}
        if self._sent is not None and self._partner() == node:
            self._sent = None

    def target(self) -> int | None:
        """The other node of the pair when a meeting is due, until a copy has been sent."""
        self._turns += 1
        while self._sent is None and self._turns >= self.period * (self._meeting + 1):
            to = self._partner()
            if to is not None and to not in self._lost:
                return to
            self._next()
        return None

    def send(self, state) -> tuple[dict, dict]:
        """A copy of what moves; one that has come already takes its place at once."""
        self.renormalise(state)
        rows, meeting = state.shared.rows[self._moving].copy(), self._meeting
        numbers = {"meeting": meeting, "to": self._partner()}
        self._sent = _Sent(meeting, 1.0, rows)
        if meeting in self._came:
            self._take_over(state, self._came[meeting])
        return numbers, {"rows": rows}

    def whole(self, state) -> tuple[dict, dict]:
        """The replica, and what was sent of it, in whose place another may be on its way."""
        self.renormalise(state)
        numbers, arrays = {"node": self._node}, {"rows": state.shared.rows}
        if self._sent is not None:
            numbers |= {"meeting": self._sent.meeting, "decay": self._sent.decay}
            arrays["sent"] = self._sent.rows
        return numbers, arrays

    def merge(self, state, numbers: dict, arrays: dict) -> None:
        """Take over, or keep, what was sent of a replica; take the mean of whole nodes."""
        self.renormalise(state)
        theirs, meeting = arrays["rows"], numbers.get("meeting")
        if "to" not in numbers:
            self._n_whole += 1
            rows = state.shared.rows
            rows += (theirs - rows) / state.model.real.type(self._n_whole)
            if meeting is not None:
                sent = _Sent(meeting, numbers["decay"], arrays["sent"].copy())
                self._of_others = {**self._of_others, numbers["node"]: sent}
        elif self._n_whole > 1:
            to = numbers["to"]
            sent = self._sent if to == self._node else self._of_others.get(to)
            if sent is not None and sent.meeting == meeting:
                change = state.model.real.type(sent.decay) * theirs - sent.rows
                state.shared.rows[self._moving] += change / state.model.real.type(self._n_whole)
        elif self._sent is not None and self._sent.meeting == meeting:
            self._take_over(state, theirs)
        elif meeting >= self._meeting:
            self._came[meeting] = theirs.copy()
        state.recount()

    def _partner(self):
        return partner(self._node, self._n_nodes, self._seed, self._meeting)

    def _take_over(self, state, theirs):
        """Go on with what has come in place of what was sent."""
        _, decay, rows = self._sent
        state.shared.rows[self._moving] += state.model.real.type(decay) * theirs - rows
        state.recount()
        self._next()

    def _next(self):
        """Wait for the next meeting."""
        self._came.pop(self._meeting, None)
        self._sent, self._meeting = None, self._meeting + 1
