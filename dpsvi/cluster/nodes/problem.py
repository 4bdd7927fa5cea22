"""What all nodes of a fit must agree on before they begin."""

from __future__ import annotations

import numpy as np

from dpsvi import strategies
from dpsvi.errors import DpsviError
from dpsvi.training.job import Job

_ALMOST = 1e-3  # relative difference that rounding may bring to a sum


def describe(job: Job) -> dict:
    """What all ranks must agree on: what says most of a difference comes first.

    Of arrays there are sums, and of rates those of two steps: enough to tell other parameters.
    The first parameters matter to peers only; where there is a master all begin with its own.
    """
    model, passes, options = job.state.model, job.passes, job.cluster
    kind, first = strategies.get(options.strategy), passes.clock
    half_way = first + passes.n_left // 2
    rates = np.asarray(job.schedule(np.array([first, half_way])), np.float64).tolist()
    return {
        "strategy": options.strategy,
        "strategy_options": {name: repr(value) for name, value in options.strategy_options.items()},
        "sharding": options.sharding, "statistics": options.statistics,
        "local_decay": options.local_decay, "prefetch": options.prefetch,
        "model": model.name, "shape": list(model.shape), "real": model.real.name,
        "items": passes.n_items, "values": len(job.items.value), "batch_size": passes.batch_size,
        "passes": passes.n_passes, "shards": passes.n_shards,
        "memory": [model.thread_memory, model.optimizer, model.scratch(0)],
        # Those of replicas go by how many are there, which is not known to all at the same time.
        "rates of steps": [] if kind.replicas else rates,
        "sum of the prior": _sum(model.prior), "sum of hyper": _sum(model.hyper),
        "first parameters": _squares(job.state.shared.rows) if kind.topology == "peers" else None,
        "seed": passes.seed,
    }  # fmt: skip


def _squares(rows) -> float:
    """Sum of squares of a matrix that may be large."""
    return float(np.vdot(rows, rows))


def _sum(array) -> float:
    """Of the absolute values, but for those that are infinite."""
    array = np.abs(np.asarray(array, np.float64))
    return float(array[np.isfinite(array)].sum())


def check_same(mine: dict, own_rank: int, rank: int, theirs: dict) -> None:
    """Compare what two ranks say of their jobs (:func:`describe`).

    Raises
    ------
    DpsviError
        They differ.
    """
    for key, value in mine.items():
        if not _same(theirs.get(key), value):
            raise DpsviError(
                f"rank {rank} fits another problem: {key} is {theirs.get(key)} there, {value} on "
                f"rank {own_rank}"
            )


def _same(theirs, mine) -> bool:
    numbers = mine if isinstance(mine, list) else [mine]
    if not numbers or not all(isinstance(number, float) for number in numbers):
        return theirs == mine
    if np.shape(theirs) != np.shape(mine):
        return False
    return bool(np.allclose(theirs, mine, rtol=_ALMOST, atol=0, equal_nan=True))
