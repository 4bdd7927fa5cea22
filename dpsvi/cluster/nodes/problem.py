"""What all nodes of a fit must agree on before they begin."""

from __future__ import annotations

from dpsvi.errors import DpsviError
from dpsvi.training.job import Job


def describe(job: Job) -> dict:
    """What all ranks must agree on."""
    model, passes = job.state.model, job.passes
    return {
        "model": model.name, "shape": list(model.shape), "real": model.real.name,
        "items": passes.n_items, "values": len(job.items.value), "batch_size": passes.batch_size,
        "passes": passes.n_passes, "seed": passes.seed, "shards": passes.n_shards,
        "memory": [model.thread_memory, model.optimizer, model.scratch(0)],
    }  # fmt: skip


def check_same(job: Job, own_rank: int, rank: int, problem: dict) -> None:
    """Compare `problem`, which is how `rank` describes its job, with the `job` of `own_rank`.

    Raises
    ------
    DpsviError
        They differ.
    """
    for key, value in describe(job).items():
        if problem[key] != value:
            raise DpsviError(
                f"rank {rank} fits another problem: {key} is {problem[key]} there, {value} on "
                f"rank {own_rank}"
            )
