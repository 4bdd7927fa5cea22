"""A virtual cluster (Alg. 1-4): the real algorithm on the real data, in virtual time.

Master and workers are those of ``engine="mpi"``: every local step, every stale reading, every
merge is executed, in the order in which it would happen on the cluster that
:class:`dpsvi.cluster.virtual.VirtualCluster` describes.  Only time is computed instead of spent:

* local steps see each other as :mod:`dpsvi.cluster.virtual.virtual_time` says;
* a message leaves when its link is free; the master takes one message at a time.

A cluster without a master is :mod:`dpsvi.cluster.virtual.peers`.

The same seed gives the same result, bit for bit.
"""

from __future__ import annotations

from collections import deque

from dpsvi import strategies
from dpsvi.base import Engine
from dpsvi.cluster.nodes.master import Master
from dpsvi.cluster.nodes.worker import Worker
from dpsvi.cluster.ranks.prepare import for_workers
from dpsvi.cluster.transports.messages import Message, deliver
from dpsvi.cluster.virtual import VirtualCluster
from dpsvi.cluster.virtual.calibrate import measure
from dpsvi.cluster.virtual.peers import fit_peers
from dpsvi.cluster.virtual.virtual_time import VirtualTime
from dpsvi.training.job import Job


def fit(job: Job) -> bool:
    """Carry out `job` on ``job.cluster``; whether the observer ended it.

    Times that observers and reports get are those of the cluster.

    Raises
    ------
    ValueError
        ``job.cluster`` is not a :class:`~dpsvi.cluster.virtual.VirtualCluster`, or has ranks that
        fail and remember what the parameters are a sum of, or as
        :func:`dpsvi.cluster.ranks.prepare.for_workers`.
    LostMemoryError
        As ``engine="mpi"``.
    LostRankError
        The last worker was lost, or any and ``on_lost="abort"``.
    """
    options = VirtualCluster() if job.cluster is None else job.cluster
    if not isinstance(options, VirtualCluster):
        raise ValueError(f"engine='simulated' needs cluster=VirtualCluster(...), got {options!r}")
    job = for_workers(job, options, options.n_workers)
    if job.state.sums_memory and (options.killed or options.frozen):
        raise ValueError(
            "ranks that remember what the parameters are a sum of cannot be killed or frozen in "
            "virtual time: passes would begin anew without their memory, and with the same failure"
        )
    if strategies.get(options.strategy).topology == "peers":
        return fit_peers(job, options.timing or measure(job))
    simulation = _Simulation(job, options.timing or measure(job))
    master, timing = simulation.master, simulation.timing
    try:
        with master.boundary.interruptible(master.snapshot):
            simulation.run()
    finally:
        master.parameters.renormalise()
        master.report()
        simulation.close()
    if job.report is not None:
        job.report["timing"] = timing
    return master.result()


class _Simulation(VirtualTime):
    """A master and its workers."""

    def __init__(self, job: Job, timing):
        n = job.cluster.n_workers
        super().__init__(job, timing, range(1, n + 1))
        self.master = Master(job, n, self.clock, self.clock)
        first = Worker(job, self.run_steps, self.clock)
        self.workers = {1: first}
        for rank in range(2, n + 1):
            self.workers[rank] = Worker(job, self.run_steps, self.clock, like=first)
        self._inwards = self._outwards = 0.0  # when the master's links are free again
        self._queue: deque[tuple[int, Message]] = deque()
        self._master_busy = False
        self._free_at = dict.fromkeys(self.workers, 0.0)

    def run(self) -> None:
        """Until all steps are done."""
        for rank, worker in self.workers.items():
            self.at(0.0, self._sent, rank, worker.hello())
        self.until(lambda: self.master.finished)

    def lose(self, node: int, reason: str) -> None:
        """Let the master know."""
        self.master.drop(node, reason)
        outbox, self.master.outbox = self.master.outbox, []
        self._post(outbox)

    # --- the network, the master ----------------------------------------------------------------

    def _sent(self, rank, message: Message):
        """A worker has sent a message: it waits for the link."""
        if rank in self.gone:
            return
        network, seconds = self.options.network, message.n_bytes / self.options.network.bandwidth
        start = self.now
        if network.shared:
            start = max(start, self._inwards)
            self._inwards = start + seconds
        self.at(start + seconds + network.latency, self._arrived, rank, message)

    def _arrived(self, rank, message: Message):
        """It waits for the master."""
        if rank in self.gone:
            return
        self._queue.append((rank, message))
        if not self._master_busy:
            self._take()

    def _take(self):
        """The master takes a message, merges what is in it, and answers."""
        self._master_busy = True
        rank, message = self._queue.popleft()
        # By the numbers that are merged, whatever their form on the way.
        rows = [array for name, array in message.arrays.items() if name in ("end", "change")]
        merged = sum(array.size for array in rows) * self.job.state.model.real.itemsize
        worker = self.workers[rank]
        self.master.take(rank, deliver(message, worker.pool, self.master.pool))
        outbox, self.master.outbox = self.master.outbox, []
        read = sum(answer.n_bytes for _, answer in outbox)
        cost = self.timing.message + self.timing.merge * merged + self.timing.read * read
        self.master.busy += cost
        self.at(self.now + cost, self._answer, outbox)

    def _answer(self, outbox):
        """Its answers wait for the link; it turns to the next message."""
        self._post(outbox)
        self._master_busy = False
        if self._queue and not self.master.finished:
            self._take()

    def _post(self, outbox):
        """Answers of the master wait for the link."""
        network = self.options.network
        for rank, answer in outbox:
            seconds = answer.n_bytes / network.bandwidth
            start = self.now
            if network.shared:
                start = max(start, self._outwards)
                self._outwards = start + seconds
            grant = deliver(answer, self.master.pool, self.workers[rank].pool)
            self.at(start + seconds + network.latency, self._turn, rank, grant)

    # --- a worker ---------------------------------------------------------------------------------

    def _turn(self, rank, grant: Message):
        """A worker does what it was allowed to; meanwhile nothing else that it could see happens.

        What it sends, and when, goes into the heap.
        """
        if rank in self.gone:
            return
        if self.now < self._free_at[rank]:  # it came before it was needed
            self.at(self._free_at[rank], self._turn, rank, grant)
            return
        began, spent, self.computing = self.now, 0.0, rank
        timing, slower = self.timing, self.slower[rank]
        if grant.header["reading"] is not None:
            spent = (timing.turn + timing.touch * grant.n_bytes) * slower
        self.now += spent
        for answer in self.workers[rank].turn(grant, spent):
            if answer.header["update"] is not None:
                self.now += timing.touch * answer.n_bytes * slower
            self.at(self.now, self._sent, rank, answer)
        self._free_at[rank], self.now = self.now, began


ENGINE = Engine(fit, options=VirtualCluster, simulated=True)
