"""What a fit on several processes can be told."""

from __future__ import annotations

from dataclasses import dataclass

from dpsvi import strategies
from dpsvi.errors import check_choice, check_flag, check_number


@dataclass(frozen=True)
class Cluster:
    """Options of ``engine="mpi"``; pass them as ``cluster=Cluster(...)``.

    Parameters
    ----------
    strategy : {"decay", "displacement"}
        How updates of workers become one.  ``"displacement"`` is the paper's; ``"decay"`` stays
        valid at any staleness.
    master_batch : int, >= 1
        M, updates that are merged at a time (Alg. 1, line 3).
    global_rate : float, > 0
        gamma of Alg. 1: 1 adds the M updates, 1/M averages them.  At most 1 for ``"decay"``.
    strict : bool
        Refuse an unstable `global_rate` (:class:`~dpsvi.errors.UnstableError`) instead of
        reducing it with a warning.
    local_decay : {"exact", "as_read"}
        The decay in a local step of several threads: of the parameters as they are, or of those
        that the thread has read, over-written like the rest of the step (Alg. 4, line 8).  Without
        other threads both are the same.  ``"as_read"`` costs by the rows of a worker in every step.
    sharding : {"whole", "shard"}
        Each worker draws from the whole corpus, or from a part of its own.
    statistics : {"float32", "bfloat16"}
        What workers send.  bfloat16 is half as long; the rounding errors are kept and sent with
        the next update of the row.
    prefetch : bool
        Ask for the next parameters before the local steps instead of after them: nobody waits for
        the network, and everybody's parameters are one update older.
    waiting : float in (0, 0.9] or None
        Steer B, the local steps, so that workers wait for this share of their time.  None: as many
        as rates and passes allow.  Of no effect where the estimator's `local_steps` is given.
    master_works : bool
        Rank 0 computes too, in a thread.  It always does when it is alone.
    silent_seconds : float, > 0
        A rank not heard of for so long is lost.
    on_lost : {"drop", "abort"}
        Go on without a lost worker, or end the job.

    Raises
    ------
    ValueError, TypeError
        An option is out of its range.
    """

    strategy: str = "decay"
    master_batch: int = 1
    global_rate: float = 1.0
    strict: bool = False
    local_decay: str = "exact"
    sharding: str = "whole"
    statistics: str = "float32"
    prefetch: bool = False
    waiting: float | None = None
    master_works: bool = False
    silent_seconds: float = 20.0
    on_lost: str = "drop"

    def __post_init__(self):
        check_choice("local_decay", self.local_decay, ["exact", "as_read"])
        check_choice("sharding", self.sharding, ["whole", "shard"])
        check_choice("statistics", self.statistics, ["float32", "bfloat16"])
        check_choice("on_lost", self.on_lost, ["drop", "abort"])
        check_number("master_batch", self.master_batch, low=1, integer=True)
        check_number("silent_seconds", self.silent_seconds, low=0, open_low=True)
        for name in ("strict", "prefetch", "master_works"):
            check_flag(name, getattr(self, name))
        if self.waiting is not None:
            check_number("waiting", self.waiting, low=0, high=0.9, open_low=True)
        self.make_strategy()

    def make_strategy(self):
        """The strategy; raises ValueError when it does not exist or refuses the rate."""
        check_choice("strategy", self.strategy, strategies.names())
        return strategies.get(self.strategy)(self.global_rate, self.strict)
