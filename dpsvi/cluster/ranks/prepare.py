"""From a job for one process to one for a master and workers."""

from __future__ import annotations

import numpy as np

from dpsvi.cluster.options import Cluster
from dpsvi.training.driver import Job
from dpsvi.training.ledger import Passes


def for_workers(job: Job, options: Cluster, n_workers: int) -> Job:
    """`job` with its `options`, and with a shard for each worker where that is wanted.

    Raises
    ------
    ValueError
        The model cannot be fitted by workers that hold no documents of their own, or not with
        these options.
    """
    model, shared, passes = job.state.model, job.state.shared, job.passes
    if len(shared.item_memory) or len(shared.value_memory):
        raise ValueError(
            "a master and workers cannot remember local parameters between visits: a document may "
            "be at another worker next time"
        )
    if options.statistics == "bfloat16" and model.real != np.float32:
        raise ValueError(f"statistics='bfloat16' needs float32 parameters, not {model.real}")
    if options.sharding == "shard" and not passes.n_done:
        passes = Passes(
            passes.n_items, passes.batch_size, passes.n_passes, passes.seed, n_workers,
            passes.clock,
        )  # fmt: skip
    return job._replace(cluster=options, passes=passes)
