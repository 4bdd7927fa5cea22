"""From a job for one process to one for a master and workers."""

from __future__ import annotations

import logging

import numpy as np

from dpsvi import learners
from dpsvi.cluster.options import Cluster
from dpsvi.training.job import Job
from dpsvi.training.ledger import Ledger

log = logging.getLogger(__name__)


def check_counts_once(options: Cluster, name: str) -> None:
    """Check that changes of statistics of the model `name` reach the parameters exactly once.

    Raises
    ------
    ValueError
        The options would lose, repeat or round some.
    """
    why = "by changes of statistics (incremental inference): each change must count exactly once"
    if not options.make_strategy().incremental:
        raise ValueError(f"strategy={options.strategy!r} cannot fit {name} {why}")
    for option, needed in (("global_rate", 1.0), ("statistics", "float32")):
        value = getattr(options, option)
        if value != needed:
            raise ValueError(f"{option}={value!r} cannot fit {name} {why}; it needs {needed!r}")


def check_remembers(options: Cluster) -> None:
    """Check that workers can remember something of items between visits.

    Raises
    ------
    ValueError
        The strategy has no master.
    """
    if options.make_strategy().topology == "peers":
        raise ValueError(
            f"strategy={options.strategy!r} has no master, and its nodes remember nothing of items "
            "between visits"
        )


def for_workers(job: Job, options: Cluster, n_workers: int) -> Job:
    """`job` with its `options`, and with a shard for each worker where that is wanted.

    It is wanted where something is remembered of items, too: that is with their worker.

    Raises
    ------
    ValueError
        The model cannot be fitted with these options.
    """
    model, shared, passes = job.state.model, job.state.shared, job.passes
    strategy = options.make_strategy()
    if learners.get(model.learner).COUNTS_ONCE:
        check_counts_once(options, model.name)
    if job.state.remembers:
        check_remembers(options)
    if options.local_decay == "as_read" and model.few_columns:
        raise ValueError(
            f"local_decay='as_read' over-writes whole rows, and a local step of {model.name} here "
            f"knows {model.few_columns} columns of a row"
        )
    one_pass = strategy.topology == "star" and strategy.one_pass
    if one_pass and not learners.get(model.learner).ESTIMATES:
        raise ValueError(
            f"strategy={options.strategy!r} adds the statistics of items, and {model.name} has "
            f"none: its learner is {model.learner!r}"
        )
    if one_pass and passes.n_passes > 1:
        log.warning(
            "strategy %r is for one pass over the data, not %d: %s", options.strategy,
            passes.n_passes, strategy.one_pass,
        )  # fmt: skip
    # Workers and peers have memories of their own: those of a fit in one process end here.
    shared.thread_memory[...] = 0
    shared.optimizer[...] = 0
    if options.statistics == "bfloat16" and model.real != np.float32:
        raise ValueError(f"statistics='bfloat16' needs float32 parameters, not {model.real}")
    if (options.sharding == "shard" or job.state.remembers) and not passes.n_done:
        passes = Ledger(
            passes.n_items, passes.batch_size, passes.n_passes, passes.seed, n_workers,
            passes.clock,
        )  # fmt: skip
    before = job.strategy_state
    if before is not None and before[0] != options.strategy:
        if before[1]:
            log.warning(
                "the checkpoint's state of strategy %r is of no use for %r", before[0],
                options.strategy,
            )  # fmt: skip
        before = None
    schedule = job.schedule
    if strategy.averaged(n_workers) > 1:
        shares = learners.get(model.learner).ESTIMATES
        schedule = _of_replicas(schedule, strategy.averaged(n_workers), shares)
    return job._replace(cluster=options, passes=passes, schedule=schedule, strategy_state=before)


def _of_replicas(schedule, n, shares: bool):
    """Rates for steps on one of so many replicas; see :class:`dpsvi.base.Strategy`."""

    def of_one(t):
        rates = np.asarray(schedule(t), np.float64)
        return 1 - (1 - rates) ** n if shares else n * rates

    return of_one
