"""Asynchronous master and workers (Alg. 1-4), whatever carries their messages.

::

    passes.Passes      which steps, given to whom, done or not
    master.Master      hands out steps and rows, merges updates by a strategy      no MPI
    worker.Worker      reads rows, makes local steps, sends an update              no MPI
    allotment          how many steps at a time                                    no MPI
    messages           one buffer: JSON header + arrays                            no MPI
    channel, pulse     non-blocking messages; who is alive
    neighbours         ranks of this host: woken by a ring, they share
    buffers, window    memory for messages, and the master's rows
    lead, follow       rank 0 and the others: messages, lost ranks, signals, the end
    dpsvi.engines.mpi  puts them together

    virtual, calibrate       a cluster that is not there; what work costs
    dpsvi.engines.simulated  master and workers in virtual time

One exchange of a worker that holds work k and has been told its rows::

    ask(update k-1, rows wanted for k)  ->  grant(rows for k, work k+1)
"""

from dpsvi.cluster.options import Cluster

__all__ = ["Cluster"]
