"""Ownership: the rows are cut into blocks, each of which one node owns at a time, no master.

After extreme stochastic variational inference (ESVI; Raman et al. 2019) and the nomadic blocks of
NOMAD (Yun et al. 2014): there is one true copy of every block, that of its owner, and blocks go
round a ring of nodes.  Nodes make local steps on all rows; those of blocks that they do not own are
copies, of when they last had them.  What the steps of a node make of a copy is a decay a and
additive statistics b (:mod:`dpsvi.strategies.decay`), which wait until the block v comes by::

    v - prior <- a (v - prior) + b

and begin again, as 1 and 0, when it is sent on.  So every step counts exactly once, as it does with
a master: there is no mean of replicas, and only b can be stale.  The step is convex, so v stays a
valid natural parameter where, as in all models here, rows do not bind each other.  A message is one
block, 1/n of the matrix; but a step is known to all others only when a block has gone round, so
fewer steps may be made between two messages than with a master.

There are as many blocks as nodes, of neighbouring rows, and no more than rows: a model of one row
is one block that nodes have in turn, while all others go on with a copy.  A node that has several
blocks sends all of them but one, so that they do not come to travel together.  A node that cannot
be sent to in n turns is passed over.  Not at once: nodes of equal speed go in step, and the same
one would be passed over each time, so that it went on with a copy that was never renewed.

What a lost node had done to blocks since it last had them is lost with it.  For a block that it
owned the node that had sent it there takes its own copy as the true one, once the block has had the
time to come round twice.  If it does come after all, from a third node, then of two such blocks the
one with fewer owners behind it ends where the other one has been, and what it alone knew is lost.

At the end rank 0 gets all blocks and what waits for them; one that is still missed is its own copy.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpsvi.base import Peers

_STALENESS_FACTOR = 3.0  # of all nodes together
# A block that was sent to a lost node is taken for lost, too, after so many times as long as any
# block has been away.  On each of n ways a message waits for the end of a turn, and for a link.
_PATIENCE = 2
_TURNS_A_WAY = 2


class _Block(NamedTuple):
    """What a node knows of a block: of the time when it last had it, unless it owns it."""

    age: int  # how often it had been sent before; -1: this node has not had it yet
    to: int = -1  # the node that it was sent to
    turn: int = 0  # of this node, when it was sent
    unit: float = 1.0  # as much of the rows, as they are kept now, stands for 1 of then
    base: np.ndarray | None = None  # the rows of then, as they are kept now


class Strategy(Peers):
    """See :class:`dpsvi.base.Peers`.

    Attributes
    ----------
    owned : list of int
        Blocks that this node owns, in the order in which they came.
    """

    replicas = False

    def __init__(self):
        self.owned: list[int] = []
        self._lost: set[int] = set()

    def begin(self, state, node: int, n_nodes: int, before: dict | None) -> None:
        """Give every node a block, that of a lost one to the next on the ring."""
        state.renormalise()
        self._node, self._n_nodes, self._turn = node, n_nodes, 0
        self._asked, self._waited, self._passed = None, 0, set()
        self._longest = _TURNS_A_WAY * n_nodes
        # A step waits for n / 2 turns on average, in each of n nodes.
        self.staleness_factor = 2 * _STALENESS_FACTOR / n_nodes**2
        n_rows, columns = len(state.shared.rows), state.model.sent_columns
        cuts = np.linspace(0, n_rows, min(n_nodes, n_rows) + 1).round().astype(int).tolist()
        self._rows = [slice(*ends) for ends in zip(cuts[:-1], cuts[1:], strict=True)]
        self.owned = [k for k in range(len(self._rows)) if self._behind(k - 1)[0] == node]
        to = self._behind(node)[0]  # as if this node had sent all others on
        self._blocks = [
            _Block(0) if k in self.owned
            else _Block(-1, to, base=state.shared.rows[rows, :columns].copy())
            for k, rows in enumerate(self._rows)
        ]  # fmt: skip

    def renormalise(self, state) -> None:
        """Let what is known of blocks be kept as the rows are."""
        real, scale = state.model.real, state.scale
        self._blocks = [
            block if block.base is None
            else block._replace(unit=block.unit * scale, base=block.base * real.type(scale))
            for block in self._blocks
        ]  # fmt: skip
        state.renormalise()

    def lost(self, node: int) -> None:
        """Send no block to `node`, and miss those that it has."""
        self._lost = self._lost | {node}

    def target(self) -> int | None:
        """The next node on the ring that can be sent to; nobody where this node owns no block."""
        if self._asked is not None:
            self._waited += 1
            if self._waited >= self._n_nodes:
                self._passed.add(self._asked)
                self._waited = 0
        self._turn += 1
        if self._turn % self._n_nodes == 0:
            self._passed.clear()
        self._replace_lost()
        able = [k for k in self._behind(self._node) if k not in self._passed and k != self._node]
        self._asked = able[0] if able and self.owned else None
        return self._asked

    def send(self, state) -> tuple[dict, dict]:
        """The blocks that this node has had for longest, all but one if there are several."""
        n = max(1, len(self.owned) - 1)
        sent, kept = self.owned[:n], self.owned[n:]
        arrays = self._content(state, sent)
        arrays["ages"] += 1
        for k in sent:
            block, base = self._blocks[k], self._part(state, k).copy()
            self._put(k, _Block(block.age, self._asked, self._turn, 1 / state.scale, base))
        self.owned, self._asked, self._waited = kept, None, 0
        return {}, arrays

    def whole(self, state) -> tuple[dict, dict]:
        """The blocks that this node owns, and what waits for all others."""
        return {}, self._content(state, list(range(len(self._rows))))

    def merge(self, state, numbers: dict, arrays: dict) -> None:
        """Take over blocks that have come, or add to what waits for them."""
        first = 0
        for k, age, owned, decay in zip(
            *(arrays[name].tolist() for name in ("blocks", "ages", "owned", "decays")), strict=True
        ):
            last = first + self._rows[k].stop - self._rows[k].start
            theirs, first = arrays["rows"][first:last], last
            if not owned:
                self._add(state, k, decay, theirs)
            elif age > self._blocks[k].age:
                self._take(state, k, age, theirs)

    def _take(self, state, k, age, theirs):
        """Own a block, after what waited for it."""
        real, block = state.model.real, self._blocks[k]
        rows = self._part(state, k)
        if block.base is None:  # this node has one that was taken for lost
            _change(state, rows, theirs / real.type(state.scale))
        else:
            _change(state, rows, theirs * real.type(block.unit) + (rows - block.base))
            self.owned = [*self.owned, k]
            self._longest = max(self._longest, self._turn - block.turn)
        self._put(k, _Block(age))

    def _add(self, state, k, decay, found):
        """Let a decay and statistics of another node follow those of this one."""
        real, block = state.model.real, self._blocks[k]
        rows = self._part(state, k)
        _change(state, rows, real.type(decay) * rows + found / real.type(state.scale))
        if block.base is not None:
            base = block.base * real.type(decay)
            self._put(k, block._replace(unit=block.unit * decay, base=base))

    def _content(self, state, blocks):
        """Blocks that this node owns; what waits for others."""
        rows, decays, real = [], [], state.model.real
        for k in blocks:
            found, block = self._part(state, k), self._blocks[k]
            if block.base is not None:
                found = found - block.base
            rows.append(real.type(state.scale) * found)
            decays.append(state.scale * block.unit)
        return {
            "blocks": np.array(blocks, np.int32),
            "ages": np.array([self._blocks[k].age for k in blocks], np.int64),
            "owned": np.array([self._blocks[k].base is None for k in blocks]),
            "decays": np.array(decays), "rows": np.concatenate(rows),
        }  # fmt: skip

    def _part(self, state, k):
        """The rows of block `k`, in the columns that are sent."""
        return state.shared.rows[self._rows[k], : state.model.sent_columns]

    def _replace_lost(self):
        """Own what this node has sent to a lost one and has not seen again."""
        missed = self._turn - _PATIENCE * self._longest
        for k, block in enumerate(self._blocks):
            if block.base is not None and block.to in self._lost and block.turn < missed:
                self._put(k, _Block(max(0, block.age)))
                self.owned = [*self.owned, k]

    def _behind(self, node):
        """Nodes that are not lost, from the next one behind `node` on the ring round to it."""
        ring = [(node + i) % self._n_nodes for i in range(1, self._n_nodes + 1)]
        return [other for other in ring if other not in self._lost]

    def _put(self, k, block):
        """Know this of block `k`; copies of the strategy share lists."""
        self._blocks = [*self._blocks[:k], block, *self._blocks[k + 1 :]]


def _change(state, rows, new):
    """Replace `rows`, some of those of `state`, and keep the totals in step."""
    before = rows.sum(axis=0, dtype=np.float64)
    rows[...] = new
    state.shared.totals[0, : rows.shape[1]] += rows.sum(axis=0, dtype=np.float64) - before
