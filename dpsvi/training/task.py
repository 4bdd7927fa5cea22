"""What an engine is given: a compiled local step, data, parameters and the tables of a segment."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import NamedTuple

import numpy as np
from numba.core.errors import NumbaError

from dpsvi.base import Items, Model, Shared, ThreadMemory
from dpsvi.errors import ContractError
from dpsvi.kernels.jit import compile_local
from dpsvi.kernels.memory import aligned
from dpsvi.training.compiling import reported
from dpsvi.training.loop import CompiledLoop, Loop
from dpsvi.training.signals import Deferred


class Task(NamedTuple):
    """One segment of a fit: steps that may run in any order without Python in between."""

    local: Callable
    loop: Loop
    shared: Shared
    hyper: np.ndarray  # float64
    items: Items
    order: np.ndarray  # int32: item numbers, step t takes order[t*batch_size:(t+1)*batch_size]
    batch_size: int
    scales: np.ndarray  # float64, (n_steps + 1,)
    gains: np.ndarray  # float64, (n_steps,)
    counter: np.ndarray  # int64, (1,): the next step, handed out atomically
    stop: np.ndarray  # int64, (1,): RUNNING, or why threads leave
    works: tuple[ThreadMemory, ...]  # one for each thread

    def run_thread(self, thread: int, n_steps: int) -> int:
        """Run steps in the calling thread until the counter reaches `n_steps`."""
        return self.loop.run(self, thread, n_steps)

    def batch(self, t: int) -> np.ndarray:
        """Item numbers of step `t`."""
        return self.order[t * self.batch_size : (t + 1) * self.batch_size]


def make_works(
    model: Model, items: Items, batch_size: int, n_threads: int,
    thread_memory: np.ndarray | None = None,
) -> tuple[ThreadMemory, ...]:  # fmt: skip
    """Private memory for each thread, large enough for any batch of `batch_size` items.

    What threads keep between their steps is in `thread_memory`, new memory by default.
    """
    if thread_memory is None:
        thread_memory = np.zeros((n_threads, model.thread_memory))
    lengths = np.diff(items.offsets)
    longest = int(lengths.max(initial=0))
    n_rows, n_columns = model.shape
    n_slots, width = n_rows, n_columns
    if len(items.index):  # sparse items touch at most one row a value, and the common ones
        most = np.partition(lengths, -min(batch_size, len(lengths)))[-batch_size:].sum()
        n_slots = int(most) + model.common_rows
    if model.few_columns:
        width = model.few_columns
    else:
        n_slots = min(n_rows, n_slots)
    real = model.real

    def make(kept):
        return ThreadMemory(
            totals=np.zeros(n_columns),
            slot=np.full(n_rows, -1, np.int32),
            touched=np.empty(n_slots, np.int32),
            expected=aligned((0 if model.few_columns else n_slots, n_columns), real),
            stats=aligned((n_slots, width), real),
            scratch=aligned((1, model.scratch(longest)), real)[0],
            ids=np.empty(longest, np.int32),
            tally=np.empty(n_columns),
            columns=np.zeros((n_slots if model.few_columns else 0, width), np.int32),
            kept=kept,
        )

    return tuple(make(kept) for kept in thread_memory[:n_threads])


def with_memory(works: tuple[ThreadMemory, ...], shared: Shared) -> tuple[ThreadMemory, ...]:
    """`works` with what is kept between steps in `shared`."""
    return tuple(w._replace(kept=k) for w, k in zip(works, shared.thread_memory, strict=True))


@cache
def _compiled(name: str, local: Callable | None, real: np.dtype) -> tuple[Callable | None, Loop]:
    """A local step and the loop that runs it, compiled once; None: one that is not compiled."""
    # Not in this thread: Ctrl-C inside the compiler would be lost or break it.
    with Deferred(), reported(name), ThreadPoolExecutor(1) as pool:
        if local is None:
            return None, pool.submit(Loop, real).result()
        try:
            step = pool.submit(compile_local, local, real).result()
        except NumbaError as error:
            raise ContractError(f"{name}: its local step cannot be compiled: {error}") from error
        return step, pool.submit(CompiledLoop, real).result()


def make_task(model: Model, shared: Shared, items: Items, batch_size: int, works) -> Task:
    """Compile what must be compiled and wrap it up; order and tables come with each segment."""
    empty = np.zeros(0)
    step, loop = _compiled(model.name, model.local if model.compiled else None, model.real)
    return Task(
        step or model.local, loop, shared, model.hyper,
        items, np.zeros(0, np.int32), batch_size, empty, empty,
        np.zeros(1, np.int64), np.zeros(1, np.int64), works,
    )  # fmt: skip
