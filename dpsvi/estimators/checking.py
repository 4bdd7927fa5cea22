"""Whether a model of somebody's own keeps to what a local step must do, told before it is fitted.

A fit runs the local step millions of times, compiled, without checks of indices: one that writes
where it should not may end anywhere, or nowhere.  Here it is run on a few items, with such checks.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from numbers import Integral
from typing import Any

import numba
import numpy as np
from numba.core.errors import NumbaError
from sklearn.base import clone

from dpsvi.base import Items
from dpsvi.errors import ContractError
from dpsvi.estimators.base import SVIEstimator
from dpsvi.kernels.jit import FLAGS, abi
from dpsvi.training.items import count, take
from dpsvi.training.state import State
from dpsvi.training.task import make_works

_ITEMS = 10  # that are looked at
_ROUNDING = 0.01  # of the largest statistic; an item that is forgotten takes away more


def check_model(estimator: Any, X: Any, y: Any = None, **others: Any) -> None:
    """Check the local step of a model of your own on a few items.

    It must return how many rows it touched, name each of them once and no others than its items
    name or all steps share, leave ``work.slot`` as it was, write nothing else than its statistics,
    and these must be numbers, with the sign that the model promises, not all 0, and the sum of what
    each item gives alone.  See :class:`dpsvi.base.Model`.

    Parameters
    ----------
    estimator : estimator
        It is not changed.
    X, y : as for its ``fit``
    **others
        What else ``fit`` is given, such as `groups` or `lengths`.

    Raises
    ------
    ContractError
        The local step does something else; the message says what.
    ValueError, TypeError
        `fit` would refuse the parameters or the data, or this is no estimator of dpsvi.

    Examples
    --------
    >>> from dpsvi import DPSVIGaussianMixture, check_model
    >>> from sklearn.datasets import load_iris
    >>> check_model(DPSVIGaussianMixture(3), load_iris().data)
    """
    if not isinstance(estimator, SVIEstimator):
        raise TypeError(f"estimator must be a variational model of dpsvi, got {estimator!r}")
    beginning = clone(estimator).set_params(engine="serial", cluster=None, checkpoint_dir=None)
    beginning.check_params()
    beginning._note_fixed(going_on=False)
    items = beginning._read(X, y, reset=True, **others)
    beginning._n_seen = count(items)
    state = beginning._begin(items, None, beginning._generator(), False)
    check_local_step(state, items)


def check_local_step(state: State, items: Items) -> None:
    """The same of a state, whose memories of items change, and items."""
    chosen = np.unique(np.linspace(0, count(items) - 1, _ITEMS).astype(np.int32))
    run = _Checked(state, items, len(chosen))
    whole = run(chosen)
    alone = sum(run(chosen[i : i + 1]) for i in range(len(chosen)))
    largest = max(np.abs(whole).max(), np.abs(alone).max())
    if largest == 0 and take(items, chosen).value.any():
        raise run.error(f"gives no statistics of the items {chosen.tolist()}")
    if np.abs(whole - alone).max() > _ROUNDING * largest:
        raise run.error(
            f"gives other statistics of the items {chosen.tolist()} together than the sum of each "
            "alone"
        )


@cache
def _with_checks(local: Callable, real: np.dtype) -> Callable:
    """A local step, compiled such that it looks at every index."""
    flags = FLAGS | {"cache": False, "boundscheck": True}
    return numba.njit(abi(real)[3], **flags)(local)


class _Checked:
    """A local step with checks: called with item numbers, gives their statistics as a matrix."""

    def __init__(self, state: State, items: Items, batch_size: int):
        self.state, self.items, model = state, items, state.model
        self.local = model.local
        if model.compiled:
            try:
                self.local = _with_checks(model.local, model.real)
            except NumbaError as error:
                raise self.error(f"cannot be compiled: {error}") from error
        (self.work,) = make_works(model, items, batch_size, 1)
        shared = state.shared
        self.memories = (
            shared.item_memory, shared.value_memory, shared.thread_memory, shared.optimizer
        )
        self.at_first = [memory.copy() for memory in self.memories]

    def error(self, what: str) -> ContractError:
        """The error that says what the local step does."""
        return ContractError(f"{self.state.model.name}: the local step {what}")

    def __call__(self, batch: np.ndarray) -> np.ndarray:
        state, work, model = self.state, self.work, self.state.model
        for memory, at_first in zip(self.memories, self.at_first, strict=True):
            memory[...] = at_first  # every visit is a first one
        before = [state.shared.rows.copy(), state.shared.totals.copy()]
        work.totals[:] = state.shared.totals.sum(axis=0)
        try:
            n = self.local(state.shared, state.scale, model.hyper, self.items, batch, work)
        except IndexError as error:
            raise self.error(f"reads or writes outside of an array: {error}") from error
        if not isinstance(n, Integral) or not 0 <= n <= len(work.touched):
            raise self.error(
                f"must return how many rows it touched, 0 to {len(work.touched)}, returned {n!r}"
            )
        self._check_rows(work.touched[:n], work.columns[:n])
        self._check_named(work.touched[:n], batch)
        if (work.slot != -1).any():
            raise self.error(f"leaves work.slot of row {int(np.argmax(work.slot != -1))} set")
        for now, then in zip((state.shared.rows, state.shared.totals), before, strict=True):
            if not np.array_equal(now, then):
                raise self.error("writes the shared parameters, which the engine does")
        return self._statistics(n)

    def _check_rows(self, touched, columns) -> None:
        n_rows, n_columns = self.state.model.shape
        for name, numbers, end in (("row", touched, n_rows), ("column", columns, n_columns)):
            wrong = numbers[(numbers < 0) | (numbers >= end)]
            if wrong.size:
                raise self.error(f"names {name} {wrong.flat[0]}, there are 0 to {end - 1}")
        if not columns.size and len(np.unique(touched)) < len(touched):
            raise self.error("names a row twice: work.touched must hold each once")

    def _check_named(self, touched, batch) -> None:
        """Workers are sent no other rows, and send none back."""
        if not len(self.items.index):
            return  # each item may touch all
        n_rows, common = self.state.model.shape[0], self.state.model.common_rows
        named = np.concatenate([take(self.items, batch).index, np.arange(n_rows - common, n_rows)])
        others = np.setdiff1d(touched, named)
        if others.size:
            raise self.error(
                f"touches row {others[0]}, which is in the index of none of the items "
                f"{batch.tolist()}, and none of the last {common}, its model's common_rows"
            )

    def _statistics(self, n: int) -> np.ndarray:
        """What it has found, (n_rows, n_columns); taken away, as the engine does."""
        work, model = self.work, self.state.model
        found = np.zeros(model.shape)
        stats = work.stats[:n].astype(np.float64)
        if len(work.columns):
            np.add.at(found, (work.touched[:n, None], work.columns[:n]), stats)
        else:
            found[work.touched[:n]] = stats
            work.stats[:n] = 0
            if work.stats.any():
                raise self.error(f"writes statistics behind the first {n}, which it returned")
        if not np.isfinite(found).all():
            raise self.error("gives statistics that are NaN or infinite")
        if model.nonnegative and (stats < 0).any():
            raise self.error(f"gives a statistic of {stats.min():g}; its model says nonnegative")
        if found[:, model.sent_columns :].any():
            raise self.error(f"gives statistics of columns from {model.sent_columns}, the padding")
        return found
