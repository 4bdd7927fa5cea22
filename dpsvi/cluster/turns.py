"""Nodes that take turns in one process: asynchrony with a staleness that is chosen, not met.

The nodes are those of ``engine="mpi"``; messages go through memory.  n workers in turn have
staleness D' = n - 1 from the n-th update on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from dpsvi.cluster.contracts import MASTER, Node, Transport
from dpsvi.cluster.nodes.consensus import Consensus
from dpsvi.cluster.nodes.master import Master
from dpsvi.cluster.nodes.peer import Peer
from dpsvi.cluster.nodes.worker import Worker
from dpsvi.cluster.transports.memory import Memory
from dpsvi.cluster.transports.messages import Message
from dpsvi.training.job import Job


def take_turns(
    job: Job, n_workers: int, on_turn: Callable[[Master, int], None] | None = None,
    late: Mapping[int, int] | None = None,
) -> Master:  # fmt: skip
    """Carry out `job` with `n_workers` workers that take turns; returns the master.

    Parameters
    ----------
    job : Job
        With ``cluster`` set.
    n_workers : int
    on_turn : callable or None
        Called before each turn with the master and the number of turns so far; it may make the
        master lose a worker.
    late : dict of int to int, or None
        Workers that say hello after so many turns of all, or never, if the fit ends before.
    """
    late = dict(late or {})
    master = Master(job, n_workers)
    workers = {rank: Worker(job) for rank in range(1, n_workers + 1)}
    memory = Memory({0: master, **workers})
    serve = partial(exchange, master, memory.at(0))
    for rank in workers.keys() - late.keys():
        exchange(workers[rank], memory.at(rank), serve)
    if late:
        master.wait_no_longer()
        serve()
    turns = 0
    while not master.finished:
        before = turns
        for rank in [rank for rank, turn in late.items() if turn <= turns]:
            del late[rank]
            exchange(workers[rank], memory.at(rank), serve)
        for rank, worker in workers.items():
            if rank in master.lost or not memory.unread(rank) or master.finished:
                continue
            if on_turn is not None:
                on_turn(master, turns)
                serve()
                if rank in master.lost:
                    continue
            turns += 1
            exchange(worker, memory.at(rank), serve)
        owed = [rank for rank in workers if memory.unread(rank) and rank not in master.lost]
        if turns == before and not owed and not master.finished:
            raise RuntimeError("nobody can go on: the master owes an answer")
    return master


def replay(job: Job, n_workers: int, order: Sequence[int]) -> Master:
    """Carry out `job` as another driver did whose master took and answered messages in this order.

    What workers compute follows from what they are sent, so the end is the same to the bit, where
    each has one thread and nothing is given out by the time that others took.

    Parameters
    ----------
    job : Job
        With ``cluster`` set.
    n_workers : int
    order : sequence of int
        Of :attr:`dpsvi.cluster.nodes.master.Master.order`.

    Raises
    ------
    ValueError
        Another fit was recorded, or one that lost a worker.
    """
    master = Master(job, n_workers, lambda: 0.0, lambda: 0.0)
    workers = {rank: Worker(job, clock=lambda: 0.0) for rank in range(1, n_workers + 1)}
    memory = Memory({0: master, **workers})
    said = {rank: worker.turn() for rank, worker in workers.items()}
    for number, rank in enumerate(order):
        if master.finished:
            break  # workers said more that nobody waited for
        if rank == MASTER:
            exchange(master, memory.at(MASTER))
            continue
        found = next(said[rank], None)
        if found is None:
            if not memory.unread(rank) and job.cluster.grace_seconds is not None:
                master.wait_no_longer()  # nor did it then, for those who had not said hello
                exchange(master, memory.at(MASTER))
            receive(workers[rank], memory.at(rank))
            said[rank] = workers[rank].turn()
            found = next(said[rank], None)
        if found is None:
            raise ValueError(f"another fit was replayed: message {number} of it is of rank {rank}")
        memory.at(rank).send(*found)
        receive(master, memory.at(MASTER))
    if not master.finished:
        raise ValueError(f"another fit was replayed, or one that lost ranks: {len(order)} messages")
    return master


def receive(node: Node, transport: Transport) -> None:
    """Let `node` know who is lost, and take what has come."""
    for lost, reason in transport.newly_lost().items():
        node.lose(lost, reason)
    for sender, message in transport.poll():
        node.take(sender, message)


def exchange(node: Node, transport: Transport, on_sent: Callable[[], None] | None = None) -> None:
    """One turn of `node`; `on_sent` is called after each message that it sends."""
    receive(node, transport)
    for to, message in node.turn():
        transport.send(to, message)
        if on_sent is not None:
            on_sent()


def peers_take_turns(
    job: Job, n_nodes: int, delay: int = 0,
    on_turn: Callable[[list[Peer], list[Message]], None] | None = None,
    late: Mapping[int, int] | None = None,
) -> list[Peer]:  # fmt: skip
    """Carry out `job` with nodes that take turns, and leave what they come to in its state.

    Parameters
    ----------
    job : Job
        With ``cluster`` set; its strategy has the topology ``"peers"``.
    n_nodes : int
    delay : int
        Turns, of all nodes, that a message is on its way.
    on_turn : callable or None
        Called after each turn with the nodes and the messages that nobody has read yet.
    late : dict of int to int, or None
        Nodes, not the first, that join after so many turns of all, or never, if the fit ends
        before.

    Returns
    -------
    list of Peer
        Those that were there.
    """
    late = dict(late or {})
    nodes = [Peer(job, node, n_nodes) for node in range(n_nodes)]
    peers = [peer for peer in nodes if peer.node not in late]
    memory = Memory(dict(enumerate(nodes)), delay)
    if late:
        _go_on(peers, job.passes)
    while not all(peer.finished for peer in peers):
        if came := [node for node, turn in late.items() if turn <= memory.time]:
            passes = Consensus.of(peers, memory.unread(), 0.0).snapshot().passes
            memory = Memory(dict(enumerate(nodes)), delay, memory.time)
            late = {node: turn for node, turn in late.items() if node not in came}
            peers = [peer for peer in nodes if peer.node not in late]
            _go_on(peers, passes)
        for peer in peers:
            node = peer.node
            for each in peers:  # messages are merged as they arrive
                receive(each, memory.at(each.node))
            waits = peer.waits and not any(other.finished for other in peers)
            if not (peer.finished or waits):
                exchange(peer, memory.at(node))
            memory.time += 1
            if on_turn is not None:
                on_turn(peers, memory.unread())
    Consensus.of(peers, memory.unread(), 0.0).snapshot()
    return peers


def _go_on(peers, passes):
    """Let these nodes, and no others, do what is left."""
    for peer in peers:
        peer.go_on(passes, [other.node for other in peers])
