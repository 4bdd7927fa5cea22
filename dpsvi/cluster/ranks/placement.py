"""What runs where: one line in the log before a fit, and warnings of cores that are used twice."""

from __future__ import annotations

import logging
import os
import platform

from dpsvi.cluster.ranks.waiting import all_gather
from dpsvi.cluster.ranks.world import library, world
from dpsvi.training.signals import Deferred

log = logging.getLogger(__name__)

_HOST = 64  # bytes of a host's name


def placement(n_threads: int, master_works: bool, signals: Deferred) -> None:
    """Log one line that says what runs where; warn of cores used twice.  Collective."""
    import numba
    import numpy as np

    here = world()
    if here.lost:
        if here.rank == 0:
            log.info("%d of %d ranks are left", here.size - len(here.lost), here.size)
        return
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    mine = np.zeros(2 + _HOST // 8, np.int64)
    mine[:2] = cores, os.cpu_count()
    name = np.frombuffer(platform.node().encode()[:_HOST], np.uint8)
    mine[2:].view(np.uint8)[: len(name)] = name
    places = all_gather(here.data, mine, signals) if here.size > 1 else mine[None]
    if here.rank != 0:
        return
    hosts = [row[2:].tobytes().rstrip(b"\0").decode(errors="replace") for row in places]
    seen = sorted(set(places[:, 0].tolist()))
    log.info(
        "%d ranks on %d hosts, %d threads a rank, %s cores seen by a rank; %s, numba %s",
        here.size, len(set(hosts)), n_threads, "-".join(map(str, seen)),
        library(), numba.__version__,
    )  # fmt: skip
    for host in sorted(set(hosts)):
        # A master that does not work sleeps: it does not count.
        sleeps = here.size > 1 and not master_works and host == hosts[0]
        n_working, there = hosts.count(host) - sleeps, int(places[hosts.index(host), 1])
        if n_working * n_threads > there:
            log.warning(
                "%s: %d working ranks x %d threads on %d cores", host, n_working, n_threads, there
            )
        if seen[0] < n_threads:
            log.warning(
                "%s: a rank is bound to %d cores and has %d threads; mpiexec --bind-to none, or "
                "srun --cpus-per-task", host, seen[0], n_threads,
            )  # fmt: skip
