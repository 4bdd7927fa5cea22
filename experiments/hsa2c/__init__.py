"""The actor-critic of the paper: Figures 5 and 6 on a virtual cluster, Table 2 beside our own.

* ``paced``: a cluster of slow nodes and what an exchange takes on it
* ``figure5``: moves per second over nodes and B
* ``links``: the same measured over TCP between two network namespaces; ``paced_rank``: a rank of it
* ``figure6``: seconds to a score over nodes and B
* ``table``: scores of the algorithms after as many moves
* ``replicas``: the steps of workers with parameters of their own
* ``speed``: learning moves per second, and seconds to a score, of this machine; ``over_mpi``: a
  fit of it on several ranks
* ``atari``: scores of Atari's games; ``atari_rates``: moves per second over MPI
* ``runs``: what was run is kept, with where it comes from
"""
