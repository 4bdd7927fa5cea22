"""A cluster that is not there: what its nodes, its network and its master cost, in seconds.

``engine="simulated"`` executes the algorithm as ``engine="mpi"`` does and only keeps time by these
numbers; see :mod:`dpsvi.engines.simulated`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields

import numpy as np

from dpsvi import strategies
from dpsvi.cluster.options import Cluster
from dpsvi.errors import check_number


@dataclass(frozen=True)
class Network:
    """Links between nodes; each message of n bytes takes ``latency + n / bandwidth``.

    Parameters
    ----------
    latency : float, >= 0
        Seconds.
    bandwidth : float, > 0
        Bytes per second of every node's link, each way.
    shared : bool
        All messages of the master go over its one link, one after the other.  Else its link is as
        wide as those of all workers together.
    """

    latency: float = 5e-4
    bandwidth: float = 1.25e8
    shared: bool = True

    def __post_init__(self) -> None:
        check_number("latency", self.latency, low=0)
        if self.bandwidth != np.inf:
            check_number("bandwidth", self.bandwidth, low=0, open_low=True)


GIGABIT = Network()
TEN_GIGABIT = Network(bandwidth=1.25e9)


@dataclass(frozen=True)
class Timing:
    """What work costs on a machine; :func:`dpsvi.cluster.virtual.calibrate.measure` finds out.

    Parameters
    ----------
    step, value : float
        Seconds of a local step: ``step + value * (values in its batch)``, one thread at work.
    spread : tuple of float
        Evenly spaced quantiles of measured by predicted seconds of a step; 1 on average.
    contention : float
        Share by which every further thread of a worker slows all of them down: they share cache
        and memory, and write to the same rows.
    apart : float
        The same for every thread of another worker on the socket, which has rows of its own.
    lost : float
        Share of the additions that are over-written, for every further thread of a worker.
    turn, touch : float
        Seconds of a worker besides the local steps: for any message, and for a byte of rows that
        it reads or writes into one.
    message, read, merge : float
        Seconds of the master for any message, and for a byte of rows that it reads or merges.
    """

    step: float
    value: float
    spread: tuple[float, ...] = (1.0,)
    contention: float = 0.0
    apart: float = 0.0
    lost: float = 0.0
    turn: float = 0.0
    touch: float = 0.0
    message: float = 0.0
    read: float = 0.0
    merge: float = 0.0

    def __post_init__(self) -> None:
        for cost in fields(self):
            value = getattr(self, cost.name)
            for number in value if cost.name == "spread" else [value]:
                check_number(cost.name, number, low=0)
        if not self.spread:
            raise ValueError("spread must have at least one quantile")
        object.__setattr__(self, "spread", tuple(self.spread))

    def draw(self, rng: np.random.Generator, n_values: int) -> float:
        """Seconds of one step over so many values, alone on its socket."""
        typical = self.step + self.value * n_values
        if len(self.spread) == 1:
            return typical * self.spread[0]
        place = rng.random() * (len(self.spread) - 1)
        low = int(place)
        share = place - low
        return typical * ((1 - share) * self.spread[low] + share * self.spread[low + 1])


@dataclass(frozen=True, kw_only=True)
class VirtualCluster(Cluster):
    """Options of ``engine="simulated"``: those of ``engine="mpi"``, and the cluster itself.

    Parameters
    ----------
    n_workers : int, >= 1
        n, besides the master; `n_jobs` of the estimator is the number p of threads of each.
    network : Network
    timing : Timing or None
        None: measured on this machine before the fit begins.
    workers_a_node : int, >= 1
        Workers that share a socket.
    cores : int or None
        Cores of a socket, None for as many as there are threads.
    smt_gain : float, >= 0
        Share of throughput that a second thread adds to a core.
    stragglers : (float, float)
        Share of the workers that are slow, and how many times slower they are.
    killed, frozen : dict of int to float
        Ranks that fail, and the virtual second from which on they do nothing; rank 0 cannot.  That
        a rank is killed the others know at once, that it is frozen after `silent_seconds`.  What a
        rank has sent that has not arrived by then is lost with it.
    late : dict of int to float
        Ranks that are ready at this virtual second, not at 0.  After `grace_seconds`, if given,
        the others begin without them.
    seed : int
        Of the times that are drawn.  The same seed, timing and estimator give the same result.
    replay : sequence of int or None
        ``exchanges_["order"]`` of a fit over MPI: it is made again, with the same result to the
        bit, and nothing is timed.  That needs one thread a worker, ``local_steps`` of the
        estimator, and the same parameters otherwise.

    Raises
    ------
    ValueError, TypeError
        An option is out of its range, or `master_works` is true.

    Examples
    --------
    >>> import numpy as np
    >>> from dpsvi import DPSVILDA, VirtualCluster
    >>> from dpsvi.cluster.virtual import TEN_GIGABIT, Timing
    >>> timing = Timing(step=1e-4, value=1e-7)  # seconds; by default they are measured
    >>> eight = VirtualCluster(n_workers=8, network=TEN_GIGABIT, timing=timing)
    >>> X = np.random.default_rng(0).poisson(1.0, size=(400, 20))
    >>> lda = DPSVILDA(2, engine="simulated", cluster=eight, batch_size=8, random_state=0).fit(X)
    >>> lda.history_[-1]["seconds"] < 1  # of the virtual clock
    True

    >>> VirtualCluster(n_workers=4, killed={2: 1.5}).killed  # rank 2, after 1.5 seconds
    {2: 1.5}
    """

    n_workers: int = 1
    network: Network = GIGABIT
    timing: Timing | None = None
    workers_a_node: int = 1
    cores: int | None = None
    smt_gain: float = 0.25
    stragglers: tuple[float, float] = (0.0, 1.0)
    killed: Mapping[int, float] = field(default_factory=dict, hash=False)
    frozen: Mapping[int, float] = field(default_factory=dict, hash=False)
    late: Mapping[int, float] = field(default_factory=dict, hash=False)
    seed: int = 0
    replay: Sequence[int] | None = field(default=None, hash=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        for rank in () if self.replay is None else self.replay:
            check_number("a rank in replay", rank, low=0, high=self.n_workers, integer=True)
        check_number("n_workers", self.n_workers, low=1, integer=True)
        check_number("workers_a_node", self.workers_a_node, low=1, integer=True)
        if self.cores is not None:
            check_number("cores", self.cores, low=1, integer=True)
        check_number("smt_gain", self.smt_gain, low=0)
        if not isinstance(self.network, Network):
            raise TypeError(f"network must be a Network, got {self.network!r}")
        if not isinstance(self.timing, Timing | None):
            raise TypeError(f"timing must be a Timing or None, got {self.timing!r}")
        if not isinstance(self.stragglers, Sequence) or len(self.stragglers) != 2:
            raise TypeError(f"stragglers must be a share and a factor, got {self.stragglers!r}")
        check_number("stragglers[0]", self.stragglers[0], low=0, high=1)
        check_number("stragglers[1]", self.stragglers[1], low=1)
        check_number("seed", self.seed, low=0, integer=True)
        for name in ("killed", "frozen", "late"):
            self._check_faults(name)
        if self.master_works:
            raise ValueError("master_works=True cannot be simulated")

    def _check_faults(self, name: str) -> None:
        faults = getattr(self, name)
        if not isinstance(faults, Mapping):
            raise TypeError(f"{name} must be a dict of ranks and seconds, got {faults!r}")
        last = self.n_workers - (strategies.get(self.strategy).topology == "peers")
        for rank, second in faults.items():
            check_number(f"rank in {name}", rank, low=1, high=last, integer=True)
            check_number(f"{name}[{rank}]", second, low=0)

    def slowdown(self, n_threads: int, timing: Timing) -> float:
        """How many times longer a step takes with `n_threads` in every worker.

        Examples
        --------
        >>> VirtualCluster(cores=4).slowdown(2, Timing(step=1e-4, value=1e-7, contention=0.1))
        1.1
        """
        k = n_threads * min(self.workers_a_node, self.n_workers)
        cores = self.cores or k
        on_cores = min(k, cores)
        own = min(n_threads, on_cores)
        slower = 1 + timing.contention * (own - 1) + timing.apart * (on_cores - own)
        if k > cores:
            second = min(1.0, (k - cores) / cores)
            slower *= (k / cores) / (1 + self.smt_gain * second)
        return slower
