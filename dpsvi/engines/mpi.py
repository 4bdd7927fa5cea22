"""DPSVI on several processes (Alg. 1-4): rank 0 is the master, the others are workers.

Every rank calls :func:`fit` with the same job and gets the same parameters back.  A process alone
is master and worker at once.  With a strategy for peers there is no master: all ranks are alike,
and rank 0 only collects the end.
"""

from __future__ import annotations

from dpsvi import strategies
from dpsvi.base import Engine
from dpsvi.cluster.options import Cluster
from dpsvi.cluster.ranks.follow import follow
from dpsvi.cluster.ranks.gossip import gossip
from dpsvi.cluster.ranks.heartbeat import Heartbeat
from dpsvi.cluster.ranks.lead import lead
from dpsvi.cluster.ranks.placement import placement
from dpsvi.cluster.ranks.prepare import for_workers
from dpsvi.cluster.ranks.world import World, world
from dpsvi.errors import DroppedError, LostMemoryError, LostRankError
from dpsvi.training.job import Job
from dpsvi.training.signals import Deferred


def fit(job: Job) -> bool:
    """Carry out `job` together with the other ranks; whether the observer of rank 0 ended it.

    Raises
    ------
    LostRankError
        Rank 0 or the last worker is lost, or any rank and ``on_lost="abort"``.
    LostMemoryError
        On all ranks that are left, when one is lost on whose memory the parameters depend.
    DivergedError
        On all ranks, when a parameter became NaN or infinite on any.
    """
    # A rank that a signal ends says so to the others, which it cannot before all have begun.
    with Deferred(take_over=True) as signals:
        return _fit(job, world(), signals)


def _fit(job: Job, here: World, signals: Deferred) -> bool:
    here.fits += 1
    options = job.cluster or Cluster()
    peers = strategies.get(options.strategy).topology == "peers"
    n_workers = len(here.others) + (peers or options.master_works or not here.others)
    job = for_workers(job, options, n_workers)
    if not job.state.sums_memory:  # such a fit goes on from another, which has said so
        placement(job.n_jobs, peers or options.master_works, signals)
    heartbeat = Heartbeat(here.beats, options.silent_seconds) if here.size > 1 else None
    if heartbeat is not None:
        for rank in here.lost:
            heartbeat.forget(rank)
        heartbeat.start()
    try:
        if peers:
            return gossip(job, here, heartbeat, signals)
        if here.rank:
            return follow(job, here, heartbeat, signals)
        return lead(job, here, heartbeat, n_workers, signals)
    except (DroppedError, LostMemoryError):
        raise
    except Exception as error:
        # With a master others go on without a worker that fails.
        here.failed = peers or isinstance(error, LostRankError)
        raise
    finally:
        if heartbeat is not None:
            heartbeat.stop()


def _n_sharing(options: Cluster | None) -> int:
    # Of all ranks that were started: who is lost is not known to all at the same time.
    here, options = world(), options or Cluster()
    return options.n_sharing(here.size - (here.size > 1 and not options.master_works))


ENGINE = Engine(fit, options=Cluster, collective=True, n_sharing=_n_sharing)
