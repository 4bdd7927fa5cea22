"""Checkpoints: everything a fit needs to go on, whole or not at all, the newest three kept.

A checkpoint is a folder ``step-00001000`` with ``model.safetensors`` and ``model.json`` as
:mod:`dpsvi.files.io` writes them, under ``checkpoints/`` of the run folder; the file ``latest``
there names the newest and is written last.
"""

from __future__ import annotations

import logging
import os
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dpsvi.base import Shared
from dpsvi.errors import DivergedError, ModelFormatError, check_number
from dpsvi.files import io
from dpsvi.training.job import Snapshot
from dpsvi.training.ledger import Ledger
from dpsvi.training.state import State

log = logging.getLogger(__name__)

_KEPT = 3
_OF_STRATEGY = "strategy."  # before the names of its arrays


class Checkpoint(NamedTuple):
    """A checkpoint that was read."""

    path: Path
    arrays: dict[str, np.ndarray]
    meta: dict


class CheckpointFolder:
    """Writes checkpoints of one fit.

    Parameters
    ----------
    folder : path
        Run folder; checkpoints go below it.
    seconds : float
        Between two checkpoints.

    Raises
    ------
    OSError
        The folder cannot be written.
    """

    def __init__(self, folder, seconds: float):
        self.path = Path(folder) / "checkpoints"
        self.seconds = seconds
        self.describe: Callable[[], dict] = dict
        self.path.mkdir(parents=True, exist_ok=True)
        io.write_text(self.path / ".probe", "written before training to see whether it can be\n")
        (self.path / ".probe").unlink(missing_ok=True)  # another fit may probe the same folder
        self.spent = 0.0  # seconds, for writing
        self._last = time.monotonic()

    def begin(self, n_bytes: int, describe: Callable[[], dict]) -> None:
        """Prepare for the next passes of the fit.

        Parameters
        ----------
        n_bytes : int
            What a checkpoint holds.
        describe : callable -> dict
            What the caller wants to find again: JSON, under ``"fit"``.

        Raises
        ------
        OSError
            The disk has no room for two checkpoints.
        """
        self.describe = describe
        free = shutil.disk_usage(self.path).free
        if free < 2 * n_bytes:
            raise OSError(
                f"{self.path}: {free / 1e6:.3g} MB are free, two checkpoints need "
                f"{2 * n_bytes / 1e6:.3g} MB"
            )

    @property
    def due(self) -> bool:
        """Whether it is time for the next one."""
        return time.monotonic() - self._last >= self.seconds

    def __call__(self, snapshot: Snapshot) -> None:
        """Write a checkpoint.

        A failure is reported and training goes on: the last good checkpoint is still there.
        """
        started = time.monotonic()
        try:
            self.write(snapshot)
        except OSError as error:
            last = newest_name(self.path)
            log.error("no checkpoint at step %d: %s; the last good one is %s",
                      snapshot.state.step, error, last or "none")  # fmt: skip
        self._last = time.monotonic()
        self.spent += self._last - started

    def write(self, snapshot: Snapshot) -> Path:
        """Write ``step-N`` and then `latest`; drop all but the newest three.

        Raises
        ------
        DivergedError
            A parameter is NaN or infinite: no good checkpoint may make room for this one.
        """
        state, numbers, extra = snapshot.state, {}, {}
        strategy, content = snapshot.strategy_state or (None, {})
        for key, value in content.items():
            if isinstance(value, np.ndarray):
                extra[_OF_STRATEGY + key] = value
            else:
                numbers[key] = value
        if not np.isfinite(state.shared.rows.sum(dtype=np.float64)):
            raise DivergedError(f"{state.model.name}: NaN or infinite at step {state.step}")
        name = f"step-{state.step:08d}"
        temporary = self.path / f".{name}.{os.getpid()}"
        try:
            io.save_model(
                temporary,
                kind="checkpoint",
                arrays={
                    "rows": state.shared.rows, "totals": state.shared.totals,
                    "item_memory": state.shared.item_memory, "hyper": state.model.hyper,
                    "prior": state.model.prior, **_memories(state.shared), **extra,
                },
                meta={
                    "params": {}, "model": state.model.name, "scale": state.scale,
                    "step": state.step, "items": state.items,
                    "n_items": snapshot.passes.n_items, "batch_size": snapshot.passes.batch_size,
                    "passes": snapshot.passes.position(), "seconds": snapshot.seconds,
                    "fit": self.describe(),
                    "strategy": {"name": strategy, "numbers": numbers},
                },
            )  # fmt: skip
            aside = self.path / f".{name}.old"
            if (self.path / name).exists():  # the same step again: never be without it
                shutil.rmtree(aside, ignore_errors=True)  # of a process that was killed below
                os.replace(self.path / name, aside)
            os.replace(temporary, self.path / name)
            shutil.rmtree(aside, ignore_errors=True)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        io.write_text(self.path / "latest", name + "\n")
        others = [found for found in _by_age(self.path) if found.name != name]
        for old in others[: 1 - _KEPT]:
            shutil.rmtree(old, ignore_errors=True)
        return self.path / name


def _memories(shared: Shared) -> dict[str, np.ndarray]:
    """What is kept of values, by threads and by optimisers, where anything is."""
    found = {
        "value_memory": shared.value_memory, "thread_memory": shared.thread_memory,
        "optimizer": shared.optimizer,
    }  # fmt: skip
    return {name: array for name, array in found.items() if array.size}


def newest_name(path: Path) -> str | None:
    """Name of the newest checkpoint under `path`, or None."""
    found = [one.name for one in _by_age(path)]
    with suppress(FileNotFoundError, UnicodeDecodeError):  # then the newest folder counts
        name = (path / "latest").read_text(encoding="utf-8").strip()
        if name in found:
            return name
    return found[-1] if found else None


def _by_age(path: Path) -> list[Path]:
    """Checkpoints under `path`, the newest last; an earlier fit may have come to a later step."""
    found = []
    for one in path.glob("step-*"):
        with suppress(FileNotFoundError):  # another fit may take it away meanwhile
            found.append((one.stat().st_mtime_ns, one.name))
    return [path / name for _, name in sorted(found)]


def read_newest(folder) -> Checkpoint:
    """The newest checkpoint of a run folder.

    Raises
    ------
    FileNotFoundError
        There is none.
    ModelFormatError
        It is damaged or was written by a newer version; older ones are named.
    """
    path = Path(folder) / "checkpoints"
    name = newest_name(path)
    if name is None:
        raise FileNotFoundError(f"{path}: holds no checkpoint")
    try:
        arrays, meta = io.load_model(path / name, kind="checkpoint")
    except (ModelFormatError, FileNotFoundError) as error:
        older = [one.name for one in _by_age(path) if one.name != name]
        further = f"; without the folder {path / name} a resume goes on from {older[-1]}"
        raise ModelFormatError(f"{error}{further if older else ''}") from error
    return Checkpoint(path / name, arrays, meta)


def check_params(checkpoint: Checkpoint, now: dict) -> None:
    """Raise ModelFormatError where a parameter was another one than `now` when the fit began."""
    then = checkpoint.meta["fit"]["params"]
    for name in sorted(now):
        if then.get(name) != now[name]:
            raise ModelFormatError(
                f"{checkpoint.path}: {name} was {then.get(name)!r}, now {now[name]!r}"
            )


def restore(
    checkpoint: Checkpoint, state: State, n_passes: int, batch_size: int | None, n_items: int
):  # fmt: skip
    """Bring `state` to where the checkpoint was taken; returns its :class:`Snapshot`.

    A `batch_size` of None is any: steps are as large as they were.

    Raises
    ------
    ModelFormatError
        The checkpoint is of another model or of other data.
    """
    arrays, meta = checkpoint.arrays, checkpoint.meta
    model, shared = state.model, state.shared
    with io.reading(checkpoint.path):
        if meta["model"] != model.name:
            raise ModelFormatError(
                f"{checkpoint.path}: is of a {meta['model']!r} model, not {model.name!r}"
            )
        for name, mine in (("n_items", n_items), ("batch_size", batch_size)):
            if mine is not None and meta[name] != mine:
                raise ModelFormatError(
                    f"{checkpoint.path}: {name} was {meta[name]}, in this fit it is {mine}"
                )
        check_number("batch_size", meta["batch_size"], low=1, integer=True)
        for name, mine in (
            ("rows", shared.rows), ("hyper", model.hyper), ("prior", model.prior),
        ):  # fmt: skip
            if arrays[name].shape != mine.shape:
                raise ModelFormatError(
                    f"{checkpoint.path}: {name} has shape {arrays[name].shape}, this fit "
                    f"{mine.shape}"
                )
            mine[...] = arrays[name]
        if arrays["item_memory"].shape == shared.item_memory.shape:
            shared.item_memory[:] = arrays["item_memory"]
        # Else one of the two engines keeps nothing of items: they begin as on a first visit.
        for name, mine in _memories(shared).items():  # all 0 in a checkpoint of a cluster
            if name in arrays and arrays[name].shape == mine.shape:
                mine[...] = arrays[name]
        totals = arrays["totals"]
        shared.totals[:] = 0
        if totals.shape == shared.totals.shape:
            shared.totals[:] = totals
        else:  # another number of threads
            shared.totals[0] = totals.sum(axis=0)
        state.scale, state.step, state.items = meta["scale"], meta["step"], meta["items"]
        position = meta["passes"]
        begun = [epoch + (first > 0) for epoch, first in position["next"]]
        if max(begun) > n_passes:
            raise ModelFormatError(
                f"{checkpoint.path}: pass {max(begun)} had begun, max_iter is {n_passes} now"
            )
        passes = Ledger.resume(n_items, meta["batch_size"], n_passes, position)
        # Older checkpoints know of no strategy.
        strategy = meta.get("strategy", {"name": None, "numbers": {}})
        content = dict(strategy["numbers"])
        for name, array in arrays.items():
            if name.startswith(_OF_STRATEGY):
                content[name.removeprefix(_OF_STRATEGY)] = array
        return Snapshot(
            state, passes, meta["seconds"], strategy["name"] and (strategy["name"], content)
        )
