"""Push-sum row by row: nodes send only the rows that have changed most, no master.

In :mod:`dpsvi.strategies.push_sum` a node has one weight, and sends the whole matrix with a half of
it.  Here every row r has a weight w_ir of its own, 1 at first, so that rows can be sent apart: a
node sends a share of its rows with half of their weights, and whoever receives takes the weighted
mean of each::

    z_ir <- (w_ir z_ir + w_r z_r) / (w_ir + w_r)        w_ir <- w_ir + w_r

No message changes the sums over all nodes and messages of w_r and of w_r z_r, for any row; their
quotient is what is reported.  The mean is convex, so z_i stays a valid natural parameter where, as
in all models here, rows do not bind each other.

Sent are the rows that have changed most, in absolute values, since they were last sent, whether by
local steps or by what has come.  Decay does not count: it is the same at all nodes.  Two more
matrices are needed, and a turn costs a few passes over them.

Weights are sent as float32, and what that takes away stays with the sender.

As bfloat16, the upper half of a float32, numbers take half of the bytes.  A row that is sent is
rounded, and what that takes away, the sender, who keeps as much weight as it sends, adds to what it
keeps: the sums stay as they are.  It is for models whose statistics are not negative: their
parameters stay in their domain, as rounding takes off at most a 256th part of a number.
"""

from __future__ import annotations

import numpy as np

from dpsvi.base import Peers
from dpsvi.errors import check_choice, check_number
from dpsvi.kernels.bfloat16 import rounded
from dpsvi.strategies._graphs import Graph, InTurn, check_graph

_LEAST_SENT = 2.0**-20  # as in `push_sum`: rows of less weight are kept


class Strategy(Peers):
    """See :class:`dpsvi.base.Peers`.

    Parameters
    ----------
    share : float, in (0, 1]
        Of the rows, that a message holds at most; one row at least.
    graph : {"exponential", "ring", "torus", "complete"} or list of lists of int
        Who sends to whom, see :mod:`dpsvi.strategies._graphs`.
    together : int >= 1, or None
        How many nodes a local step is made for: its rate is ``1 - (1 - rho)**together``.  None: all
        n, as if they agreed.  With a small share they are far apart, and each of them learns more
        from many of its own steps than from the last one.
    numbers : {"float32", "bfloat16"}
        What the rows of messages are made of, of a model with parameters of float32.  What a node
        holds in the end is always sent as it is.
    """

    incremental = False  # the mean of n nodes would get 1 / n of each change

    def __init__(
        self, share: float = 0.1, graph: Graph = "exponential", together: int | None = None,
        numbers: str = "float32",
    ):  # fmt: skip
        check_number("share", share, low=0, high=1, open_low=True)
        check_graph(graph)
        if together is not None:
            check_number("together", together, low=1, integer=True)
        check_choice("numbers", numbers, ["float32", "bfloat16"])
        self.share, self.graph, self.together, self.numbers = share, graph, together, numbers

    def averaged(self, n_workers: int) -> int:
        """Nodes that a step is made for."""
        return n_workers if self.together is None else min(self.together, n_workers)

    def begin(self, state, node: int, n_nodes: int, before: dict | None) -> None:
        """Give all rows a weight of 1.

        Raises
        ------
        ValueError
            The graph has another number of nodes, or the model cannot be sent as bfloat16.
        """
        model = state.model
        if self.numbers == "bfloat16" and (model.real != np.float32 or not model.nonnegative):
            raise ValueError(
                f"numbers='bfloat16' is for parameters of float32 and statistics that are not "
                f"negative: not for {model.name} with {model.real}"
            )
        n_asked = before["n_asked"] if before else 0
        self._turns = InTurn(self.graph, node, n_nodes, n_asked)
        state.renormalise()
        self._weights = np.ones(len(state.shared.rows))
        self._known = state.shared.rows.copy()  # each row as it was last sent, and has decayed
        self._change = np.empty_like(self._known)

    def renormalise(self, state) -> None:
        """Let what is known decay as the rows did in the local steps."""
        self._known = self._known * state.model.real.type(state.scale)  # copies have it, too
        state.renormalise()

    def state(self) -> dict:
        """How often it was asked whom to send to."""
        return {"n_asked": self._turns.n_asked}

    def lost(self, node: int) -> None:
        """Send to others instead of `node`."""
        self._turns.lose(node)

    def target(self) -> int | None:
        """The next out-neighbour."""
        return self._turns.next()

    def send(self, state) -> tuple[dict, dict]:
        """The rows that have changed most, with half of their weights."""
        self.renormalise(state)
        rows = state.shared.rows
        np.subtract(rows, self._known, out=self._change)
        np.abs(self._change, out=self._change)
        changed = np.einsum("ij->i", self._change)  # a sum of rows that is faster than `sum`
        changed[self._weights < _LEAST_SENT] = 0
        n = max(1, round(self.share * len(rows)))
        sent = np.sort(np.argpartition(-changed, n - 1)[:n])
        sent = sent[changed[sent] > 0]
        weights = (self._weights[sent] / 2).astype(np.float32)
        self._weights[sent] -= weights
        self._known[sent] = rows[sent]
        numbers, arrays = self._message(state, sent, weights)
        if self.numbers == "bfloat16":
            arrays["rows"], lost = _short(arrays["rows"])
            _add(state, sent, lost)
        return numbers, arrays

    def whole(self, state) -> tuple[dict, dict]:
        """All rows, with all of their weights."""
        self.renormalise(state)
        return self._message(state, np.arange(len(state.shared.rows)), self._weights)

    def merge(self, state, numbers: dict, arrays: dict) -> None:
        """Take the weighted mean of the rows that have come."""
        if state.scale != 1.0:  # local steps were made since
            self.renormalise(state)
        sent, theirs = arrays["sent"], arrays["weights"]
        rows, weights = state.shared.rows, self._weights.copy()
        weights[sent] += theirs
        share = (theirs / weights[sent]).astype(state.model.real)[:, None]
        theirs = arrays["rows"]
        if theirs.dtype == np.uint16:
            theirs = (theirs.astype(np.uint32) << 16).view(np.float32)
        _add(state, sent, share * (theirs - rows[sent, : theirs.shape[1]]))
        self._weights = weights

    def _message(self, state, sent, weights):
        rows = state.shared.rows
        numbered = sent.astype(np.min_scalar_type(len(rows)))  # two bytes, of fewer than 65,536
        told = rows[sent, : state.model.sent_columns]
        return {}, {"rows": told, "sent": numbered, "weights": weights}


def _add(state, sent, change):
    """Add to some rows, and to the totals; a turn counts these anew only once, for the time."""
    columns = change.shape[1]
    state.shared.rows[sent, :columns] += change
    state.shared.totals[0, :columns] += change.sum(axis=0, dtype=np.float64)


def _short(rows):
    """The nearest bfloat16 numbers, as uint16, and by how much those are too small."""
    short = rounded(rows.view(np.int32))
    return short.astype(np.uint16), rows - (short << 16).view(np.float32)
