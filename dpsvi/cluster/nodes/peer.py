"""A node of a cluster without a master: a replica, its part of the steps, messages to others.

It knows no clock but the one it is given, and nothing of MPI; see
:class:`dpsvi.cluster.contracts.Node`.  Each turn gives at most one message to send.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

import numpy as np

from dpsvi.cluster.nodes.allotment import LOCAL_STEPS
from dpsvi.cluster.nodes.exchanges import Exchange
from dpsvi.cluster.nodes.shares import shares
from dpsvi.cluster.transports.messages import Message, Pool
from dpsvi.training import thread_pool
from dpsvi.training.boundary import Progress
from dpsvi.training.driver import blind_steps, run_segment
from dpsvi.training.job import Job
from dpsvi.training.ledger import Ledger, StepRange
from dpsvi.training.state import State
from dpsvi.training.task import make_task, make_works, with_memory

# Turns while somebody has not read a message.  What it is sent meanwhile, and what it sends when it
# goes on, is as old as that.  All steps of a slow node are its own, so the fit hardly takes longer.
_MOST_AHEAD = 16
_OF_STRATEGY = "strategy."  # before the names of its arrays
_TURNS_A_PASS = 16  # at least, of each node: something of all others takes log2(n) messages


class Peer:
    """One node of a job.

    Parameters
    ----------
    job : Job
        Its state is where all nodes start from, and its ledger says what there is to do; neither
        is changed.
    node, n_nodes : int
    run : callable
        How the steps of a segment are done, as in :func:`dpsvi.training.driver.run_segment`.
    clock : callable
        Seconds.
    like : Peer or None
        One of the same process whose memory for local steps this one shares: only one of them
        computes at a time.
    pool : Pool or None
        For its messages.

    Attributes
    ----------
    state : State
        The replica.
    left : deque of StepRange
        What this node has still to do.
    """

    def __init__(
        self, job: Job, node: int, n_nodes: int, run=thread_pool.run, clock=time.perf_counter,
        like: Peer | None = None, pool: Pool | None = None,
    ):  # fmt: skip
        self.job, self.node, self.n_nodes, self.pool = job, node, n_nodes, pool or Pool()
        self._run, self._clock = run, clock
        self.state = copy_of(job.state, job.n_jobs)
        model, batch_size = self.state.model, job.passes.batch_size
        shared = self.state.shared
        if like is None:
            works = make_works(model, job.items, batch_size, job.n_jobs, shared.thread_memory)
            self.task = make_task(model, shared, job.items, batch_size, works)
        else:
            works = with_memory(like.task.works, shared)
            self.task = like.task._replace(shared=shared, hyper=model.hyper, works=works)
        self.strategy = job.cluster.make_strategy()
        self._n_bytes, self._staleness = 0, 0  # since the last turn; turns since the last merge
        self._has_sent = False  # in the last turn
        self._share_out(job.passes, range(n_nodes))
        self._begin(None if job.strategy_state is None else self._mine(job.strategy_state[1]))

    def _share_out(self, passes: Ledger, there: Collection[int]) -> None:
        """Take this node's part of what `passes` have left for the nodes that are `there`."""
        self.job = job = self.job._replace(passes=passes)
        self._n_there = n = len(there)
        self.left = deque(shares(passes, n)[sorted(there).index(self.node)])
        self.n_done = 0  # steps of this node, of its part
        self.n_items = 0
        self._n_given = sum(work.n_steps for work in self.left)
        self._first = job.state.step, job.state.items
        first = passes.clock
        # Of n steps of all nodes this one makes one.
        self._schedule = lambda t: job.schedule(first + n * np.asarray(t))

    def _begin(self, before: dict | None) -> None:
        """Start, or go on, from parameters that all nodes have."""
        self.exchanges: list[Exchange] = []
        self._counted = self.n_done, self.n_items
        self._sent_at: dict[int, int] = {}  # turns before the last message to each node
        self.strategy.begin(self.state, self.node, self.n_nodes, before)

    def _mine(self, content: dict) -> dict | None:
        """What a checkpoint of as many nodes holds of this one."""
        if content.get("n_nodes") != self.n_nodes:
            return None
        end = f"_{self.node}"
        found = {name.removesuffix(end): v for name, v in content.items() if name.endswith(end)}
        return found or None  # None: it was lost

    def restart(self, state: State) -> None:
        """Go on from `state`, which is what all nodes had together; what was counted is in it."""
        self._adopt(state)
        self._begin(self.strategy.state())

    def go_on(self, passes: Ledger, there: Collection[int]) -> None:
        """Go on from the state of the job, with the nodes that are `there`, this one among them.

        They share out what `passes` have left, as at the beginning of a fit.
        """
        self._adopt(self.job.state)
        before, self.strategy = self.strategy.state(), self.job.cluster.make_strategy()
        self._share_out(passes, there)
        self._begin(before)
        for node in sorted({*range(self.n_nodes)} - {*there}):
            self.lose(node, "late")

    def _adopt(self, state):
        self._staleness, self._has_sent = 0, False
        mine = self.state
        self.strategy.renormalise(mine)
        mine.shared.rows[...] = state.shared.rows
        mine.scale, mine.step, mine.items = 1.0, state.step, state.items
        mine.model.hyper[:] = state.model.hyper
        mine.recount()

    @property
    def finished(self) -> bool:
        """Whether this node has done its part."""
        return not self.left

    def ahead(self, unread: Iterable[int]) -> bool:
        """Whether nodes that have `unread` messages of this one are to read them before it goes on.

        Nodes do not wait for each other in a circle: one that waits reads what comes.
        """
        return any(len(self.exchanges) - self._sent_at[node] >= _MOST_AHEAD for node in unread)

    @property
    def waits(self) -> bool:
        """Whether this node waits for a message before its next turn.

        Nodes do not wait for each other in a circle: one that waits has sent a message in its last
        turn, and whoever reads that goes on.  A node that could not send does not wait, and neither
        does one whose message may have gone to a lost node.
        """
        tau = self.strategy.tau
        return tau is not None and self._has_sent and self._staleness > tau

    @property
    def progress(self) -> Progress:
        """How far all nodes are if they are as far as this one: nobody knows more."""
        passes, (step, items) = self.job.passes, self._first
        share = self.n_done / self._n_given if self._n_given else 1.0
        n_done = int(passes.n_left * share)
        state = replace(self.state, step=step + n_done, items=items + self._n_there * self.n_items)
        return Progress(state, passes.n_done + n_done, passes.clock + n_done)

    def lose(self, node: int, reason: str) -> None:
        """Continue without another node."""
        self._has_sent = False
        self.strategy.lost(node)

    def take(self, sender: int, message: Message) -> None:
        """Merge what another node sent."""
        self.strategy.merge(self.state, message.header["numbers"], message.arrays)
        self._n_bytes += message.n_bytes
        self._staleness = 0
        self.pool.give(message.buffer)

    def turn(self, ready: Callable[[int], bool] = lambda node: True) -> list[tuple[int, Message]]:
        """Make the next local steps; returns a message, with the node it is for.

        There is none where that node is not `ready`: it keeps the share then.
        """
        job, state, passes = self.job, self.state, self.job.passes
        work = self._next()
        n_threads, sizes = min(job.n_jobs, work.n_steps), passes.sizes(work)
        if job.most_blind is not None:
            n_threads = min(n_threads, blind_steps(self._schedule, self.n_done, job.most_blind))
        started = self._clock()
        n_done = run_segment(
            self._run, self.task._replace(works=self.task.works[:n_threads]), state,
            self._schedule, passes.items(work), sizes, self.n_done,
            job.total_items or passes.n_items,
        )  # fmt: skip
        seconds = self._clock() - started
        if n_done < work.n_steps:
            self.left.appendleft(work._replace(first=work.first + n_done))
        if n_done < work.n_steps or state.small:
            self.strategy.renormalise(state)
        n_items = int(sizes[:n_done].sum())
        self.n_done += n_done
        self.n_items += n_items
        to, message = self.strategy.target(), None
        if to is not None and ready(to):
            message = self._message("share", *self.strategy.send(state))
            self._n_bytes += message.n_bytes
        exchange = self.node, n_items, self._n_bytes, 0.0, self._staleness, seconds
        self.exchanges.append(Exchange(*exchange, n_done, n_threads))
        self._n_bytes, self._staleness = 0, self._staleness + (self.n_nodes > 1)
        self._has_sent = message is not None
        if message is None:
            return []
        self._sent_at[to] = len(self.exchanges)
        return [(to, message)]

    def whole(self) -> Message:
        """A message with all that this node holds, which stays here, and what it has left to do."""
        numbers, arrays = self.strategy.whole(self.state)
        kept = self.strategy.state()
        arrays = {**arrays, **{f"{_OF_STRATEGY}{name}": value for name, value in kept.items()
                               if isinstance(value, np.ndarray)}}  # fmt: skip
        left = np.array([work[:4] for work in self.left], np.int64).reshape(-1, 4)
        exchanges = np.array(self.exchanges, np.float64).reshape(-1, len(Exchange._fields))
        message = self._message("whole", numbers, {**arrays, "left": left, "exchanges": exchanges})
        n_done, n_items = self._counted
        message.header.update(
            n_done=self.n_done - n_done, n_items=self.n_items - n_items,
            kept={name: value for name, value in kept.items() if not isinstance(value, np.ndarray)},
        )  # fmt: skip
        return message

    def _message(self, kind, numbers, arrays) -> Message:
        return self.pool.message({"kind": kind, "node": self.node, "numbers": numbers}, **arrays)

    def _next(self) -> StepRange:
        """The steps of the next turn."""
        job = self.job
        most = job.n_jobs * (job.local_steps or LOCAL_STEPS)
        if job.local_steps is None:
            most = min(most, job.passes.steps_a_pass // (self._n_there * _TURNS_A_PASS))
        if job.most_blind is not None:  # a replica must not come far from the others
            blind = job.most_blind * self.strategy.staleness_factor
            most = min(most, blind_steps(self._schedule, self.n_done, blind))
        work = self.left.popleft()
        last = min(work.last, work.first + max(1, most))
        if last < work.last:
            self.left.appendleft(work._replace(first=last))
        return work._replace(last=last)


def kept_by(message: Message) -> dict:
    """What :meth:`Peer.whole` says of its strategy's own state; arrays are copied."""
    arrays = {
        name.removeprefix(_OF_STRATEGY): array.copy() for name, array in message.arrays.items()
        if name.startswith(_OF_STRATEGY)
    }  # fmt: skip
    return {**message.header["kept"], **arrays}


def copy_of(state: State, n_threads: int) -> State:
    """A replica of `state`, with memory of its own for so many threads."""
    model, shared = state.model, state.shared
    replica = State.resume(
        model._replace(hyper=model.hyper.copy()), shared.rows.copy(), n_threads, step=state.step,
        items=state.items,
    )  # fmt: skip
    replica.scale = state.scale
    return replica
