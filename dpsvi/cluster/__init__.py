"""Asynchronous master and workers (Alg. 1-4), whatever carries their messages.

::

    passes.Passes      which steps, given to whom, done or not
    master.Master      hands out steps and rows, merges updates by a strategy      no MPI
    worker.Worker      reads rows, makes local steps, sends an update              no MPI
    messages           one buffer: JSON header + arrays
    channel, pulse     MPI: non-blocking messages; who is alive
    dpsvi.engines.mpi  puts them together

One exchange of a worker that holds work k and has been told its rows::

    ask(update k-1, rows wanted for k)  ->  grant(rows for k, work k+1)
"""

from dpsvi.cluster.options import Cluster

__all__ = ["Cluster"]
