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

from dpsvi import strategies
from dpsvi.base import Engine
from dpsvi.cluster.nodes.master import Master
from dpsvi.cluster.nodes.worker import Worker
from dpsvi.cluster.options import Cluster
from dpsvi.cluster.ranks.prepare import for_workers
from dpsvi.cluster.transports.virtual import VirtualLinks
from dpsvi.cluster.turns import replay
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
        fail and remember what the parameters are a sum of, or replays what cannot be, or as
        :func:`dpsvi.cluster.ranks.prepare.for_workers`.
    LostMemoryError
        As ``engine="mpi"``.
    LostRankError
        The last worker was lost, or any and ``on_lost="abort"``.
    """
    options = _virtual(job.cluster)
    job = for_workers(job, options, options.n_workers)
    if job.state.sums_memory and (options.killed or options.frozen):
        raise ValueError(
            "ranks that remember what the parameters are a sum of cannot be killed or frozen in "
            "virtual time: passes would begin anew without their memory, and with the same failure"
        )
    if options.replay is not None:
        return _replayed(job)
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


def _virtual(options: Cluster | None) -> VirtualCluster:
    options = VirtualCluster() if options is None else options
    if not isinstance(options, VirtualCluster):
        raise ValueError(f"engine='simulated' needs cluster=VirtualCluster(...), got {options!r}")
    return options


def _replayed(job: Job) -> bool:
    """Make a recorded fit again."""
    options = job.cluster
    for refused, why in (
        (strategies.get(options.strategy).topology == "peers", f"strategy={options.strategy!r}"),
        (job.n_jobs > 1, f"n_jobs={job.n_jobs}"),
        (job.local_steps is None, "local_steps=None"),
        (options.waiting is not None, f"waiting={options.waiting!r}"),
    ):
        if refused:
            raise ValueError(
                f"replay needs a master, one thread a worker and local_steps, got {why}: else what "
                "workers do depends on more than the order of their messages"
            )
    master = replay(job, options.n_workers, options.replay)
    master.parameters.renormalise()
    master.report()
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
        nodes = {0: self.master, **self.workers}
        self._links = VirtualLinks(self, nodes, self._link, self._arrived)
        self._master_busy = False
        self._free_at = dict.fromkeys(self.workers, 0.0)

    def run(self) -> None:
        """Until all steps are done."""
        for rank in self.workers:
            self.at(self.options.late.get(rank, 0.0), self._ready, rank)
        if self.options.grace_seconds is not None:
            self.at(self.options.grace_seconds, self._wait_no_longer)
        self.until(lambda: self.master.finished)

    def _ready(self, rank):
        """A worker says hello."""
        for to, message in self.workers[rank].turn():
            self._links.at(rank).send(to, message)

    def _wait_no_longer(self):
        self.master.wait_no_longer()
        self._send_answers()

    def lose(self, node: int, reason: str) -> None:
        """Let the master know."""
        self.master.lose(node, reason)
        self._send_answers()

    def _send_answers(self):
        for rank, answer in self.master.turn():
            self._links.at(0).send(rank, answer)

    def _link(self, sender, to):
        """The master's one link, each way, where all share it."""
        return (sender == 0) if self.options.network.shared else None

    def _arrived(self, node):
        if node != 0:
            self._turn(node)
        elif not self._master_busy:
            self._take()

    def _take(self):
        """The master takes a message, if there is one, merges what is in it, and answers."""
        found = next(self._links.at(0).poll(), None)
        self._master_busy = found is not None
        if found is None:
            return
        rank, message = found
        # By the numbers that are merged, whatever their form on the way.
        rows = [array for name, array in message.arrays.items() if name in ("end", "change")]
        merged = sum(array.size for array in rows) * self.job.state.model.real.itemsize
        self.master.take(rank, message)
        answers = self.master.turn()
        read = sum(answer.n_bytes for _, answer in answers)
        cost = self.timing.message + self.timing.merge * merged + self.timing.read * read
        self.master.busy += cost
        self.at(self.now + cost, self._answer, answers)

    def _answer(self, answers):
        """Its answers wait for the link; it turns to the next message."""
        for rank, answer in answers:
            self._links.at(0).send(rank, answer)
        self._master_busy = False
        if not self.master.finished:
            self._take()

    def _turn(self, rank):
        """A worker does what it was allowed to; meanwhile nothing else that it could see happens.

        What it sends, and when, goes into the heap.
        """
        if rank in self.gone:
            return
        if self.now < self._free_at[rank]:  # it came before it was needed
            self.at(self._free_at[rank], self._turn, rank)
            return
        began, self.computing = self.now, rank
        timing, slower, worker = self.timing, self.slower[rank], self.workers[rank]
        for sender, grant in self._links.at(rank).poll():
            worker.take(sender, grant)
            if grant.header["reading"] is not None:
                self.now += (timing.turn + timing.touch * grant.n_bytes) * slower
        for to, answer in worker.turn():
            if answer.header["update"] is not None:
                self.now += timing.touch * answer.n_bytes * slower
            self.at(self.now, self._links.at(rank).send, to, answer)
        self._free_at[rank], self.now = self.now, began


def _n_sharing(options: Cluster | None) -> int:
    options = _virtual(options)
    return options.n_sharing(options.n_workers)


ENGINE = Engine(fit, options=VirtualCluster, simulated=True, n_sharing=_n_sharing)
