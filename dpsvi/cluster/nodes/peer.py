"""A node of a cluster without a master: a replica, its part of the steps, messages to others.

It knows no clock but the one it is given, and nothing of MPI: messages go in by :meth:`Peer.take`,
and each turn gives at most one to send.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable
from copy import copy

import numpy as np

from dpsvi.base import Event
from dpsvi.cluster.nodes.allotment import LOCAL_STEPS
from dpsvi.cluster.nodes.exchanges import Exchange
from dpsvi.cluster.transports.messages import Message, Pool
from dpsvi.training import thread_pool
from dpsvi.training.driver import SMALL_SCALE, Job, Snapshot, blind_steps, run_segment
from dpsvi.training.ledger import Cuts, Passes, Work
from dpsvi.training.state import State
from dpsvi.training.task import make_task, make_works

_TURNS_A_PASS = 16  # at least, of each node: it takes log2(n) messages to hear of all others


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
    left : deque of Work
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
        if like is None:
            works = make_works(model, job.items, batch_size, job.n_jobs)
            self.task = make_task(model, self.state.shared, job.items, batch_size, works)
        else:
            self.task = like.task._replace(shared=self.state.shared, hyper=model.hyper)
        self.strategy = job.cluster.make_strategy()
        self.left = deque(shares(job.passes, n_nodes)[node])
        self.n_done = 0  # steps of this node
        self.n_items = 0
        self._n_given = sum(work.n_steps for work in self.left)
        first = job.passes.clock
        # Of n steps of all nodes this one makes one.
        self._schedule = lambda t: job.schedule(first + n_nodes * np.asarray(t))
        self._n_bytes, self._deaf = 0, 0  # since the last turn; turns since the last merge
        self.begin()

    def begin(self) -> None:
        """Start, or go on, from parameters that all nodes have."""
        self.exchanges: list[Exchange] = []
        self._counted = self.n_done, self.n_items
        self.strategy.begin(self.state, self.node, self.n_nodes)

    def restart(self, state: State) -> None:
        """Go on from `state`, which is what all nodes had together; what was counted is in it."""
        mine = self.state
        mine.shared.rows[...] = state.shared.rows
        mine.scale, mine.step, mine.items = 1.0, state.step, state.items
        mine.model.hyper[:] = state.model.hyper
        mine.recount()
        self.begin()

    @property
    def finished(self) -> bool:
        """Whether this node has done its part."""
        return not self.left

    @property
    def share_done(self) -> float:
        """How much of its part, in [0, 1]."""
        return self.n_done / self._n_given if self._n_given else 1.0

    def take(self, message: Message) -> None:
        """Merge what another node sent."""
        self.strategy.merge(self.state, message.header["numbers"], message.arrays)
        self._n_bytes += message.n_bytes
        self._deaf = 0
        self.pool.give(message.buffer)

    def turn(self, ready: Callable[[int], bool] = lambda node: True) -> tuple[int, Message] | None:
        """Make the next local steps; returns a message and the node it is for.

        There is none where that node is not `ready`: it keeps the share then.
        """
        job, state, passes = self.job, self.state, self.job.passes
        work = self._next()
        n_threads, sizes = min(job.n_jobs, work.n_steps), passes.sizes(work)
        if job.most_blind is not None:
            n_threads = min(n_threads, blind_steps(self._schedule, self.n_done, job.most_blind))
        started = self._clock()
        n_done, _ = run_segment(
            self._run, self.task._replace(works=self.task.works[:n_threads]), state,
            self._schedule, passes.items(work), sizes, self.n_done,
            job.total_items or passes.n_items,
        )  # fmt: skip
        seconds = self._clock() - started
        if n_done < work.n_steps:
            self.left.appendleft(work._replace(first=work.first + n_done))
        if n_done < work.n_steps or state.scale < SMALL_SCALE:
            state.renormalise()
        n_items = int(sizes[:n_done].sum())
        self.n_done += n_done
        self.n_items += n_items
        to, message = self.strategy.target(), None
        if to is not None and ready(to):
            message = self._message("share", *self.strategy.send(state))
            self._n_bytes += message.n_bytes
        self.exchanges.append(
            Exchange(
                self.node, n_items, self._n_bytes, 0.0, self._deaf, seconds, n_done, n_threads
            )
        )
        self._n_bytes, self._deaf = 0, self._deaf + (self.n_nodes > 1)
        return None if message is None else (to, message)

    def whole(self) -> Message:
        """A message with all that this node holds, which stays here, and what it has left to do."""
        numbers, arrays = self.strategy.whole(self.state)
        left = np.array([work[:4] for work in self.left], np.int64).reshape(-1, 4)
        exchanges = np.array(self.exchanges, np.float64).reshape(-1, len(Exchange._fields))
        message = self._message("whole", numbers, {**arrays, "left": left, "exchanges": exchanges})
        n_done, n_items = self._counted
        message.header.update(n_done=self.n_done - n_done, n_items=self.n_items - n_items)
        return message

    def _message(self, kind, numbers, arrays) -> Message:
        return self.pool.message({"kind": kind, "node": self.node, "numbers": numbers}, **arrays)

    def _next(self) -> Work:
        """The steps of the next turn."""
        job = self.job
        most = job.n_jobs * (job.local_steps or LOCAL_STEPS)
        if job.local_steps is None:
            most = min(most, job.passes.steps_a_pass // (self.n_nodes * _TURNS_A_PASS))
        if job.most_blind is not None:  # a replica must not come far from the others
            blind = job.most_blind * self.strategy.bears
            most = min(most, blind_steps(self._schedule, self.n_done, blind))
        work = self.left.popleft()
        last = min(work.last, work.first + max(1, most))
        if last < work.last:
            self.left.appendleft(work._replace(first=last))
        return work._replace(last=last)


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


def copy_of(state: State, n_threads: int) -> State:
    """A replica of `state`, with memory of its own for so many threads."""
    model, shared = state.model, state.shared
    replica = State.resume(
        model._replace(hyper=model.hyper.copy()), shared.rows.copy(), n_threads, step=state.step,
        items=state.items,
    )  # fmt: skip
    replica.scale = state.scale
    return replica


def shares(passes: Passes, n_nodes: int) -> list[list[Work]]:
    """What each node does of what is left: the same answer wherever it is asked for.

    A node has a shard of its own where there are as many shards, else an equal part of each pass.
    """
    position = passes.position()
    ranges = [[*piece, shard] for shard, open_ in enumerate(position["again"]) for piece in open_]
    for epoch in range(passes.n_passes):
        for shard, (begun, first) in enumerate(position["next"]):
            n_steps = passes.steps_of(shard)
            if epoch >= begun and n_steps:
                ranges.append([epoch, first if epoch == begun else 0, n_steps, shard])
    found = [[] for _ in range(n_nodes)]
    for epoch, first, last, shard in ranges:
        if passes.n_shards == n_nodes:
            found[shard].append(Work(epoch, shard, first, last, 0))
            continue
        cuts = np.linspace(first, last, n_nodes + 1).round().astype(int).tolist()
        for node, (begin, end) in enumerate(zip(cuts[:-1], cuts[1:], strict=True)):
            if begin < end:
                found[node].append(Work(epoch, shard, begin, end, 0))
    return found


def rest_of(passes: Passes, left: list) -> Passes:
    """The ledger when of all that `passes` had to do the ranges `left` are still to be done."""
    open_ = Counter()
    for epoch, _, first, last in left:
        open_[epoch] += last - first
    whole = passes.steps_a_pass
    begun = max((e + 1 for e in range(passes.n_passes) if open_[e] < whole), default=0)
    position = passes.position()
    n_done = passes.n_left - sum(last - first for _, _, first, last in left)
    position |= {
        "n_done": passes.n_done + n_done, "clock": passes.clock + n_done,
        "next": [[begun, 0]] * passes.n_shards,
        "again": [
            sorted([e, first, last] for e, s, first, last in left if s == shard and e < begun)
            for shard in range(passes.n_shards)
        ],
    }  # fmt: skip
    return Passes.resume(passes.n_items, passes.batch_size, passes.n_passes, position)
