"""Types of the parameters that `engine_parameters` adds, for type checkers and editors.

A constructor names them as ``**run: Unpack[RunOptions]``; those that not every estimator has are
apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, Literal, TypedDict

import numpy as np

from dpsvi.cluster.options import Cluster


class RunOptions(TypedDict, total=False):
    """What every estimator has."""

    engine: str
    n_jobs: int | None
    local_steps: int | None
    most_blind: float | Literal["auto"] | None
    max_batch_size: int | None
    max_iter: int | Literal["auto"]
    learning_decay: float | None
    learning_offset: float
    learning_rate: float | None
    lr_rule: Literal["constant", "per_sample", "per_T"]
    total_samples: float | None
    forgetting: float | None
    early_stopping: bool
    validation_size: float | None
    evaluate_every: float
    tol: float
    n_iter_no_change: int
    warm_start: bool
    random_state: int | np.random.RandomState | np.random.Generator | None
    verbose: int
    callbacks: Sequence[Callable[[Any], object]] | None
    cluster: Cluster | None
    checkpoint_dir: str | PathLike[str] | None
    checkpoint_seconds: float


class BatchOptions(RunOptions, total=False):
    """Of estimators whose own parameters do not name the batch."""

    batch_size: int | None


class RestartOptions(BatchOptions, total=False):
    """Of models that are fitted to arrays, which may begin several times."""

    n_init: int
