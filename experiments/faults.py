"""``python -m experiments.faults``: every strategy, with a node that fails, is slow or is late.

The nodes are those of ``engine="mpi"``; they take turns in one process, and messages are handed
over by hand, so that a fault hits exactly where it is wanted and all of them take minutes.
`experiments.kills` kills real processes.

* ``killed``: a node is gone; the others know at once.
* ``frozen``: it does nothing any more, which the others learn later; what it was sending comes
  after they have gone on without it.
* ``slow``: from then on its turns take ten times as long.
* ``late``: the others have begun without it, and it joins.

Each of the first three ``before`` a turn, while ``sending`` what came of it, and while ``merging``:
with a master when that has its update, without one when the node has just merged those of others;
a late one joins before a turn.  A fit has to end, with all steps that survivors had or were given,
and with parameters that are valid.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dpsvi import Cluster, strategies
from dpsvi.cluster.nodes.consensus import Consensus
from dpsvi.cluster.nodes.master import Master
from dpsvi.cluster.nodes.peer import Peer
from dpsvi.cluster.nodes.worker import Worker
from dpsvi.cluster.transports.messages import deliver
from dpsvi.kernels.jit import as_items
from dpsvi.models.lda.model import make_model
from dpsvi.training.job import Job
from dpsvi.training.ledger import Ledger
from dpsvi.training.schedules import robbins_monro
from dpsvi.training.state import State
from experiments.provenance import described, provenance

KINDS, MOMENTS = ("killed", "frozen", "slow", "late"), ("before", "sending", "merging")
N_NODES, N_ITEMS, N_WORDS, N_PASSES, BATCH = 4, 120, 30, 3, 5
# Turns of all nodes until a frozen one is known to be lost: peers wait for it before that.
_SILENCE = 80
_LATE = 10 * N_NODES  # turns of all nodes that one of a slow node takes
_MOST_TURNS = 20_000  # a fit that makes more hangs


class Fault(NamedTuple):
    """What happens, when, and to whom: in its first turn from `turn` on."""

    kind: str
    moment: str
    node: int
    turn: int


class Outcome(NamedTuple):
    """What came of a fit."""

    struck: bool  # else it ended before the fault
    n_items: int  # visited by survivors
    valid: bool  # parameters are finite and in the domain of the model


class HangError(RuntimeError):
    """A fit does not end."""


def problem(**cluster) -> Job:
    """A small LDA."""
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(N_WORDS, 0.2), 3)
    counts = rng.poisson(20 * rng.dirichlet(np.full(3, 0.3), N_ITEMS) @ topics)
    rows, index = np.nonzero(counts)
    offsets = np.searchsorted(rows, np.arange(N_ITEMS + 1))
    model = make_model(N_WORDS, 3, 0.3, 0.1, local_step="mean_field", n_sweeps=5, tol=0)
    return Job(
        State.start(model, np.random.default_rng(1), 1),
        as_items(offsets, index, counts[rows, index], model.real),
        Ledger(N_ITEMS, BATCH, N_PASSES, 2), robbins_monro(20.0, 0.7), local_steps=1,
        cluster=Cluster(**cluster),
    )  # fmt: skip


def faults(seed: int, n_faults: int) -> Iterator[Fault]:
    """Faults at random moments of a fit, each kind at each kind of moment in turn."""
    rng = np.random.default_rng(seed)
    for i in range(n_faults):
        kind, moment = KINDS[i % len(KINDS)], MOMENTS[i // len(KINDS) % len(MOMENTS)]
        if kind == "late":
            moment = "before"
        # A cluster cannot do without its first node.
        yield Fault(kind, moment, int(rng.integers(1, N_NODES)), int(rng.integers(40)))


def strike(strategy: str, fault: Fault | None) -> Outcome:
    """Fit by `strategy`, with a fault.

    Raises
    ------
    HangError
        The fit does not end.
    """
    job = problem(strategy=strategy)
    fit = _workers if strategies.get(strategy).topology == "star" else _peers
    struck = fit(job, fault or Fault("killed", "before", 1, _MOST_TURNS))
    lam = job.state.natural()
    valid = bool(np.isfinite(lam).all() and (lam >= 0.999 * job.state.model.prior).all())
    return Outcome(struck, job.state.items, valid)


class _Clock:
    """Turns of all nodes, and what the fault makes of them."""

    def __init__(self, fault: Fault):
        self.fault, self.turn = fault, 0
        self.struck = False
        self.known = False  # to the others, that the node is lost
        self._struck_at = 0

    def next(self) -> None:
        self.turn += 1
        if self.turn > _MOST_TURNS:
            raise HangError(f"no end after {self.turn} turns: {self.fault}")

    def hits(self, node: int, moment: str) -> bool:
        """Whether the fault happens now."""
        kind, when, who, turn = self.fault
        if kind == "late" or self.struck or node != who or moment != when or self.turn < turn:
            return False
        self.struck, self._struck_at = True, self.turn
        return True

    def absent(self, node: int) -> bool:
        """Whether `node` is late."""
        return self.fault.kind == "late" and node == self.fault.node and not self.struck

    def joins(self) -> bool:
        """Whether the late node comes now."""
        if not self.absent(self.fault.node) or self.turn < self.fault.turn:
            return False
        self.struck = True
        return True

    def dead(self, node: int) -> bool:
        """Whether `node` does nothing any more."""
        return self.struck and node == self.fault.node and self.fault.kind in ("killed", "frozen")

    def rests(self, node: int) -> bool:
        """Whether a slow node has no turn now."""
        slow = self.struck and node == self.fault.node and self.fault.kind == "slow"
        return slow and (self.turn // N_NODES) % 10 > 0

    def found_out(self) -> bool:
        """Whether the others learn now that the node is lost."""
        silence = _SILENCE if self.fault.kind == "frozen" else 0
        now = self.dead(self.fault.node) and self.turn >= self._struck_at + silence
        now, self.known = now and not self.known, self.known or now
        return now


def _workers(job: Job, fault: Fault) -> bool:
    """A master, and workers that take turns."""
    clock, master = _Clock(fault), Master(job, N_NODES)
    workers = {rank: Worker(job) for rank in range(1, N_NODES + 1)}
    inbox = {rank: deque() for rank in workers}
    late: list[tuple] = []  # (turn, rank, message)

    def to_master(rank, message):
        master.take(rank, message)
        answer()

    def answer():
        for to, message in master.turn():
            inbox[to].append(deliver(message, master.pool, workers[to].pool))

    def hello(rank):
        for _, message in workers[rank].turn():
            to_master(rank, deliver(message, workers[rank].pool, master.pool))

    for rank in workers:
        if not clock.absent(rank):
            hello(rank)
    if clock.absent(fault.node):
        master.wait_no_longer()
        answer()
    while not master.finished:
        for rank, worker in workers.items():
            clock.next()
            if clock.joins():
                hello(fault.node)
            for entry in [entry for entry in late if entry[0] <= clock.turn]:
                late.remove(entry)
                if not master.finished:
                    to_master(*entry[1:])
            if clock.found_out():
                master.lose(fault.node, fault.kind)
                answer()
            if master.finished:
                break
            if not inbox[rank] or clock.dead(rank) or clock.rests(rank):
                continue
            if clock.hits(rank, "before") and clock.dead(rank):
                continue
            worker.take(0, inbox[rank].popleft())
            for _, message in worker.turn():
                copy = deliver(message, worker.pool, master.pool)
                if clock.hits(rank, "sending") and clock.dead(rank):
                    if fault.kind == "frozen":
                        late.append((clock.turn + 2 * _SILENCE, rank, copy))
                    break
                if clock.struck and rank == fault.node and fault.kind == "slow":
                    late.append((clock.turn + _LATE, rank, copy))
                    continue
                to_master(rank, copy)
            clock.hits(rank, "merging")
    master.snapshot()
    return clock.struck


def _peers(job: Job, fault: Fault) -> bool:
    """Peers that take turns; a message is a turn of all nodes on its way."""
    clock = _Clock(fault)
    nodes = [Peer(job, node, N_NODES) for node in range(N_NODES)]
    peers = [peer for peer in nodes if not clock.absent(peer.node)]
    flying: list[tuple] = []  # (turn, from, to, message)
    lost: set[int] = set()
    ended = False  # whether somebody has: nobody waits for messages then
    if len(peers) < N_NODES:
        _share_out(peers, job.passes)
    while not all(peer.finished or peer.node in lost for peer in peers):
        if clock.joins():
            passes = Consensus.of(peers, [entry[3] for entry in flying], 0.0).snapshot().passes
            peers, flying, ended = nodes, [], False
            _share_out(peers, passes)
        for peer in peers:
            node = peer.node
            clock.next()
            if clock.found_out():
                lost.add(fault.node)
                for other in peers:
                    other.lose(fault.node, fault.kind)
                flying = [entry for entry in flying if not {*entry[1:3]} & lost]
            ended = ended or any(other.finished for other in peers)
            if clock.dead(node) or clock.rests(node):
                continue
            for entry in [e for e in flying if e[0] <= clock.turn and e[2] == node]:
                flying.remove(entry)
                peer.take(entry[1], entry[3])
            if clock.hits(node, "merging") and clock.dead(node):
                continue
            if clock.hits(node, "before") and clock.dead(node):
                continue
            unread = {entry[2] for entry in flying if entry[1] == node}
            if peer.finished or (peer.waits and not ended) or peer.ahead(unread):
                continue
            busy = unread | lost | {other.node for other in peers if other.finished}
            found = peer.turn(lambda to, busy=busy: to not in busy)
            if clock.hits(node, "sending") and clock.dead(node):
                continue
            for to, message in found:
                copy = deliver(message, peer.pool, nodes[to].pool)
                flying.append((clock.turn + N_NODES, node, to, copy))
    left = [peer for peer in peers if peer.node not in lost]
    Consensus.of(left, [entry[3] for entry in flying], 0.0).snapshot()
    return clock.struck


def _share_out(peers, passes):
    """Let these peers, and no others, do what is left."""
    for peer in peers:
        peer.go_on(passes, [other.node for other in peers])


@contextmanager
def only_errors():
    """Log nothing else while the block runs: every lost node is warned of."""
    log = logging.getLogger("dpsvi")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)


def main(argv=None) -> None:
    """Strike all strategies; write JSON and a table."""
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(prog="python -m experiments.faults", description=__doc__)
    parser.add_argument("--only", help="some strategies (all)")
    parser.add_argument("--faults", type=int, default=180, help="of a strategy (%(default)s)")
    parser.add_argument("--out", type=Path, default=Path("experiments/results/strategies"))
    args = parser.parse_args(argv)
    source = provenance("experiments.faults", argv, ["numpy", "numba"], {"faults": 0})
    names = args.only.split(",") if args.only else strategies.names()
    lines = [
        f"# Strategies with faults\n\n{described(source)}\n",
        f"{args.faults} fits of {N_NODES} nodes each, one of which is killed, frozen or slow "
        "before a turn, while sending or while merging, or joins late. Fewest items: of those "
        "without faults.\n",
        "| strategy | ended | parameters valid | fewest items |", "| --- | ---: | ---: | ---: |",
    ]  # fmt: skip
    rows = {}
    for name in names:
        with only_errors():
            found = [(fault, strike(name, fault)) for fault in faults(0, args.faults)]
        rows[name] = [{**fault._asdict(), **outcome._asdict()} for fault, outcome in found]
        least = min(outcome.n_items for _, outcome in found) / (N_ITEMS * N_PASSES)
        valid = sum(outcome.valid for _, outcome in found)
        lines.append(f"| {name} | {len(found)} | {valid} | {100 * least:.0f} % |")
        print(lines[-1], flush=True)
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "faults.json").write_text(json.dumps({**source, "rows": rows}) + "\n")
    (args.out / "faults.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
