"""Asynchronous master and workers (Alg. 1-4), or peers, whatever carries their messages.

::

    training.ledger          which steps, given to whom, done or not
    training.boundary        what happens between segments: observer, checkpoint, clock
    contracts                what a node and a transport are                          no MPI
    nodes.master             hands out steps, answers workers                         no MPI
    nodes.answers, grants    who gets steps and rows now; steps that have not come back    no MPI
    nodes.merging, rows      one global step; what workers get to read                no MPI
    nodes.parameters, change_log    the master's parameters; what was added lately    no MPI
    nodes.worker             reads rows, makes local steps, sends an update           no MPI
    nodes.allotment          how many steps at a time                                 no MPI
    nodes.peer               a node without a master: a replica, its part of the steps  no MPI
    nodes.shares, consensus  the ledger in parts; what peers have together            no MPI
    nodes.problem, adopt     what all agree on before a fit; what all have after it   no MPI
    transports.messages      one buffer: JSON header + arrays                         no MPI
    transports.memory, virtual    carry messages within a process, in virtual time    no MPI
    transports.channel, chunks    carry them over MPI, never blocking; as bytes
    transports.neighbours    ranks of one host wake each other
    transports.buffers, window    memory that they share: for messages, and the master's rows
    turns                    nodes that take turns in one process                     no MPI
    ranks.lead, follow       rank 0 and the others: messages, lost ranks, signals, the end
    ranks.gossip, others     a rank that is a peer; the ranks it talks to
    ranks.attendance         which peers take part
    ranks.heartbeat, world       who is alive, and who takes part
    ranks.placement              what runs where
    virtual                  a cluster that is described; what work costs
    dpsvi.engines.mpi, simulated    put them together

One exchange of a worker that holds work k and has been told its rows::

    ask(update k-1, rows wanted for k)  ->  grant(rows for k, work k+1)
"""

from dpsvi.cluster.options import Cluster

__all__ = ["Cluster"]
