"""Workers taking turns in one process: asynchrony with a staleness that is chosen, not met.

The master and the workers are those of ``engine="mpi"``; only the messages are handed over by
hand.  n workers in turn have staleness D' = n - 1 from the n-th update on.  Peers, too, can take
turns.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from dpsvi.cluster.nodes.consensus import Consensus
from dpsvi.cluster.nodes.master import Master
from dpsvi.cluster.nodes.peer import Peer
from dpsvi.cluster.nodes.worker import Worker
from dpsvi.cluster.transports.messages import deliver
from dpsvi.training.job import Job


def take_turns(
    job: Job, n_workers: int, on_turn: Callable[[Master, int], None] | None = None
) -> Master:
    """Carry out `job` with `n_workers` workers that take turns; returns the master.

    Parameters
    ----------
    job : Job
        With ``cluster`` set.
    n_workers : int
    on_turn : callable or None
        Called before each turn with the master and the number of turns so far; it may drop a
        worker.
    """
    master = Master(job, n_workers)
    workers = {rank: Worker(job) for rank in range(1, n_workers + 1)}
    inbox = {rank: deque() for rank in workers}

    def hand_out():
        while master.outbox:
            to, answer = master.outbox.pop(0)
            inbox[to].append(deliver(answer, master.pool, workers[to].pool))

    def to_master(rank, message):
        master.take(rank, deliver(message, workers[rank].pool, master.pool))
        hand_out()

    for rank, worker in workers.items():
        to_master(rank, worker.hello())
    turns = 0
    while not master.finished:
        before = turns
        for rank in list(workers):
            if rank in master.lost or not inbox[rank] or master.finished:
                continue
            if on_turn is not None:
                on_turn(master, turns)
                hand_out()
                if rank in master.lost:
                    continue
            turns += 1
            for message in workers[rank].turn(inbox[rank].popleft()):
                to_master(rank, message)
        owed = [rank for rank in workers if inbox[rank] and rank not in master.lost]
        if turns == before and not owed and not master.finished:
            raise RuntimeError("nobody can go on: the master owes an answer")
    return master


def peers_take_turns(
    job: Job, n_nodes: int, delay: int = 0,
    on_turn: Callable[[list[Peer], list], None] | None = None,
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
        Called after each turn with the nodes and the messages on their way.

    Returns
    -------
    list of Peer
    """
    peers = [Peer(job, node, n_nodes) for node in range(n_nodes)]
    flying = deque()  # (turn of the arrival, node, message)
    turn = 0
    while not all(peer.finished for peer in peers):
        for peer in peers:
            while flying and flying[0][0] <= turn:
                _, to, message = flying.popleft()
                peers[to].take(message)
            waits = peer.waits and not any(other.finished for other in peers)
            found = None if peer.finished or waits else peer.turn()
            if found is not None:
                to, message = found
                copy = deliver(message, peer.pool, peers[to].pool)
                flying.append((turn + delay, to, copy))
            turn += 1
            if on_turn is not None:
                on_turn(peers, [message for _, _, message in flying])
    together = Consensus(peers[0], 0.0)
    for peer in peers[1:]:
        together.add(peer.whole())
    for _, _, message in flying:
        together.add(message)
    together.snapshot()
    return peers
