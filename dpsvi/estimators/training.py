"""From a state and items to a job of the engine; checkpoints, and how a fit goes on from one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import contextmanager
from functools import partial
from typing import Any, Self

import numpy as np

from dpsvi.cluster.ranks.world import agree, world
from dpsvi.errors import ContractError, ModelFormatError, check_number
from dpsvi.estimators.run_parameters import RunParameters
from dpsvi.files import io
from dpsvi.files.launcher import launched_rank
from dpsvi.training import absa
from dpsvi.training.checkpoint import (
    Checkpoint,
    CheckpointFolder,
    check_params,
    read_newest,
    restore,
)
from dpsvi.training.items import are_equal, count, digest_names, fingerprint
from dpsvi.training.job import Job, Snapshot
from dpsvi.training.ledger import Ledger
from dpsvi.training.signals import Deferred

# A fit may be resumed with other values of these.
_FREE = {
    "n_jobs", "engine", "cluster", "local_steps", "max_iter", "verbose", "random_state",
    "checkpoint_dir", "checkpoint_seconds", "warm_start", "most_blind",
}  # fmt: skip


class Training(RunParameters):
    """The part of an estimator that has passes made by the engine."""

    history_: list[dict[str, Any]]
    interrupted_: int
    exchanges_: dict[str, Any]
    n_iter_: int
    n_batch_iter_: int
    n_features_in_: int
    feature_names_in_: np.ndarray
    _data: dict[str, Any]  # what tells them from others, while a fit has checkpoints
    _checkpoint: Checkpoint | None = None  # where `resume` starts from
    _interrupted_by: KeyboardInterrupt | None = None  # while a fit that was interrupted ends

    def resume(self, X: Any, y: Any = None, **more: Any) -> Self:
        """Go on with a fit that was interrupted, from the newest checkpoint in `checkpoint_dir`.

        Parameters
        ----------
        X : as in `fit`
            The same data.
        y, **more : as in `fit`

        Returns
        -------
        self

        Raises
        ------
        ValueError
            `checkpoint_dir` is None.
        FileNotFoundError
            There is no checkpoint.
        ModelFormatError
            It is damaged, or of other data or parameters; `n_jobs`, `engine`, `cluster`,
            `local_steps` and `max_iter` may be others (but none ``"auto"`` where the other is not).

        Examples
        --------
        >>> import numpy as np
        >>> from dpsvi import DPSVIGaussianMixture
        >>> X = np.random.default_rng(0).normal(size=(200, 2)) + np.repeat([[0], [9]], 100, axis=0)
        >>> kept = dict(checkpoint_dir="run", checkpoint_seconds=0, random_state=0)
        >>> mixture = DPSVIGaussianMixture(2, max_iter=3, **kept).fit(X)
        >>> DPSVIGaussianMixture(2, max_iter=6, **kept).resume(X).history_[-1]["items"] // len(X)
        6
        """
        if self.checkpoint_dir is None:
            raise ValueError("resume needs the checkpoint_dir of the fit that goes on, got None")
        self._checkpoint = checkpoint = read_newest(self.checkpoint_dir)
        try:
            self._check_resumed(checkpoint)
            return self.fit(X, y, **more)
        finally:
            del self._checkpoint

    def _check_resumed(self, checkpoint) -> None:
        """Raise ModelFormatError if the checkpoint is of a fit with other parameters."""
        check_params(checkpoint, _comparable(self))

    def _note_data(self, items) -> None:
        """Take note of what data a fit with checkpoints is of, and refuse to go on with others."""
        if self.checkpoint_dir is None:
            return
        names = getattr(self, "vocabulary_", None)
        if names is None:
            names = getattr(self, "feature_names_in_", None)
        self._data = {
            **fingerprint(items), "names": digest_names(() if names is None else names),
            "labels": digest_names(*self._labels_in_data()),
        }  # fmt: skip
        if self._checkpoint is None:
            return
        path, then = self._checkpoint.path, self._checkpoint.meta["fit"].get("data")
        if then is None:  # of an older version
            return
        what = "the data are not those that the fit began with"
        if then["n_items"] != count(items):
            raise ModelFormatError(
                f"{path}: {what}: n_items was {then['n_items']}, in this fit it is {count(items)}"
            )
        if then["n_values"] != self._data["n_values"]:
            raise ModelFormatError(
                f"{path}: {what}: it was of {self._items} with {then['n_values']} values, in this "
                f"fit there are {self._data['n_values']}"
            )
        if not are_equal(self._data, then):
            raise ModelFormatError(
                f"{path}: {what}: as many {self._items}, but their numbers, their order or their "
                "weights differ"
            )
        for kind, said in (("names", "words or columns"), ("labels", "groups or classes")):
            before, now = then.get(kind), self._data[kind]
            if None not in (before, now) and before != now:
                raise ModelFormatError(f"{path}: {what}: {said} have other names")

    def _labels_in_data(self) -> Iterable[Iterable]:
        """Labels of groups and of classes, which items hold as numbers."""
        return ()

    def _generator(self) -> np.random.Generator:
        """One generator for the whole fit, from whatever scikit-learn accepts as a seed."""
        if self._checkpoint is not None:
            seed = self._checkpoint.meta["fit"]["seed"]
        else:
            seed = self._draw_seed()
        if self._engine().collective:
            seed = agree(seed)
        self._seed = int(seed)
        return np.random.default_rng(self._seed)

    def _agree(self, answer: bool) -> bool:
        """The answer of the first rank, on all ranks that are still together."""
        together = self._engine().collective and not world().left
        return bool(agree(answer)) if together else answer

    def _seed_of_passes(self, rng) -> int:
        return int(rng.integers(2**63))

    def _resumed_phase(self) -> dict | None:
        """The `phase` of the passes of which the checkpoint is that the fit goes on from."""
        return None if self._checkpoint is None else self._checkpoint.meta["fit"].get("phase")

    def _restore_checkpoint(self, state, n_items, n_passes, monitor) -> Snapshot:
        """Bring `state` and `monitor` to where the fit goes on from, once."""
        checkpoint, self._checkpoint = self._checkpoint, None
        monitor.restore(checkpoint.meta["fit"]["monitor"])
        # Unless the user gives a size, steps stay as large as they were.
        return restore(checkpoint, state, n_passes, self.batch_size, n_items)

    def _train(self, state, items, n_passes, rng, monitor, total=None, phase=None) -> bool:
        """Run `n_passes` over `items`; True when the fit is to end here.

        The items of a stream stand for `total`; only where it is None, in `fit`, checkpoints are
        written.  They hold `phase`, which says where in the fit these passes are, as JSON can hold
        it; None for the first ones.
        """
        n_items, stream = len(items.offsets) - 1, total is not None
        batch_size = self._resolve_batch_size(n_items, stream)
        seed = self._seed_of_passes(rng)
        if self._checkpoint is None:
            # Between fits the clock counts whole batches, since others may share them then.
            state.step = round(state.step * self._parts(n_items, batch_size, stream))
            passes = Ledger(n_items, batch_size, n_passes, seed, 1, state.step)
            start = Snapshot(state, passes, 0)
        else:
            start = self._restore_checkpoint(state, n_items, n_passes, monitor)
        parts = self._parts(n_items, start.passes.batch_size, stream)
        self.exchanges_ = {}
        if stream:
            schedule = self._stream_schedule(start.passes, state.items)
            schedule = self._forgetful(schedule, batch_size, state.model)
        else:
            schedule = self._schedule(start.passes)
        job = Job(
            state, items, start.passes, schedule, self._n_threads, self.local_steps, total,
            self._resolve_most_blind(state.model), parts, min(1.0, self.evaluate_every), monitor,
            seconds=start.seconds, cluster=self.cluster, strategy_state=start.strategy_state,
            report=self.exchanges_,
        )  # fmt: skip
        engine, before = self._engine(), state.step
        carry_out = self._carry_out(job) if not stream else engine.fit
        if not stream and self.checkpoint_dir is not None and _first_rank(engine):
            if monitor.checkpoints is None:
                monitor.checkpoints = CheckpointFolder(self.checkpoint_dir, self.checkpoint_seconds)
            shared = state.shared
            n_bytes = shared.rows.nbytes
            if not engine.options:  # else what is remembered of items is with their workers
                n_bytes += shared.item_memory.nbytes + shared.value_memory.nbytes
            monitor.checkpoints.begin(n_bytes, partial(self._describe_fit, monitor, phase))
            job = job._replace(checkpoint=monitor.checkpoints)
        try:
            if self.verbose and _first_rank(engine):
                epoch = monitor.before[1]
                first = epoch + start.passes.n_done / max(1, start.passes.steps_a_pass)
                whole = n_passes if stream else monitor.whole  # as `partial_fit` has it
                with monitor.progress.phase(
                    state, n_items, first, epoch + n_passes, whole, monitor.before[0]
                ) as begin:
                    ended = carry_out(job._replace(on_start=begin))
            else:
                ended = carry_out(job)
            if not ended and state.step == before and start.passes.n_left:
                raise ContractError(
                    f"engine {self.engine!r} made none of {start.passes.n_left} steps"
                )
        except KeyboardInterrupt as interrupt:
            self._interrupt(interrupt, state)
            return True
        finally:
            state.step = round(state.step / parts)
        monitor.start_phase()
        return ended or monitor.stopped

    def _carry_out(self, job: Job) -> Callable[[Job], bool]:
        """How a job of `fit` is carried out: by the engine, with batches that grow if wanted."""
        fit, most = self._engine().fit, self.max_batch_size
        if most is None:
            return fit
        if job.state.sums_memory:
            raise ValueError(
                "max_batch_size must be None for passes that replace the statistics of "
                f"{self._items}: no rate falls there, got {most!r}"
            )
        check_number("max_batch_size", most, low=job.passes.batch_size, integer=True)
        return partial(absa.fit, fit, most=most)

    def _describe_fit(self, monitor, phase) -> dict:
        """What a checkpoint holds besides parameters and clocks."""
        return {
            "seed": self._seed, "params": _comparable(self), "monitor": monitor.memory(),
            "phase": phase, "data": self._data,
        }  # fmt: skip

    @contextmanager
    def _signals_for_engines(self):
        """Leave signals to the engine, which lets all ranks know, also between two of its calls.

        What is still there in the end is handled then.
        """
        if not self._engine().collective:
            yield
            return
        with Deferred() as signals:
            yield
            try:
                signals.deliver()
            except KeyboardInterrupt as interrupt:
                self._interrupt(interrupt, self._state)

    def _interrupt(self, interrupt, state) -> None:
        """End the fit in good order: parameters are valid after any whole step, and are kept.

        What interrupted it is raised again at the very end, by
        :func:`dpsvi.estimators.fitting.fit_method`.
        """
        self.interrupted_ = getattr(interrupt, "code", 130)
        self._interrupted_by = interrupt
        interrupt.add_note(f"interrupted after {state.step} steps; the model so far is kept")


def _first_rank(engine) -> bool:
    """Whether this process writes and shows what concerns all of a launch."""
    return world().rank == 0 if engine.collective else launched_rank() == 0


def _comparable(estimator) -> dict:
    """Parameters that must be the same when a fit is resumed."""
    return {k: v for k, v in io.plain_params(estimator).items() if k not in _FREE}
