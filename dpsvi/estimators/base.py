"""What all estimators share: the engine's parameters, sizes, the fit loop, checkpoints.

A model's estimator adds its own parameters, makes the model and reads the parameters out again.
"""

from __future__ import annotations

import logging
import numbers
from functools import partial, wraps
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from dpsvi import engines
from dpsvi.base import Engine
from dpsvi.cluster.options import Cluster
from dpsvi.cluster.ranks.launcher import launched_rank
from dpsvi.cluster.ranks.world import agree, world
from dpsvi.errors import ModelFormatError, check_choice, check_flag, check_number, resolve_jobs
from dpsvi.files import io
from dpsvi.training import schedules
from dpsvi.training.checkpoint import Checkpoint, CheckpointFolder, read_newest, restore
from dpsvi.training.job import Job, Snapshot
from dpsvi.training.ledger import Passes

try:  # experimental in scikit-learn 1.9, absent before
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:
        """Stand-in for scikit-learn without callbacks."""

    def with_callbacks(method):
        """Return the method as it is: there is nothing to tear down."""
        return method


__all__ = ["SVIEstimator", "with_callbacks"]

log = logging.getLogger(__name__)

# With 2 threads from the first step on, held-out perplexity of mean-field LDA on nyt was 1.2 %
# above that of 1 thread (median of 5 seeds, 6 passes); with 0.5 here 0.7 %, with 0.3 none.
MOST_BLIND = 0.3

# A fit may be resumed with other values of these.
_FREE = {
    "n_jobs", "engine", "cluster", "local_steps", "max_iter", "verbose", "random_state",
    "checkpoint_dir", "checkpoint_seconds", "warm_start", "most_blind",
}  # fmt: skip


RUN_ATTRIBUTES = """\
    interrupted_ : int
        0, or the exit status (130 for Ctrl-C) of the signal that ended the fit early.
    exchanges_ : dict
        With ``engine="mpi"`` or ``"simulated"`` what was sent and waited for, and in how many
        exchanges which B and p were used (``local_steps``, ``threads``), answers were withheld
        (``withheld``) and `global_rate` was reduced (``reduced``, of ``global_steps``).  Else
        ``threads``: how many steps were made with so many of them at work.
    n_iter_, n_batch_iter_ : int
        Passes and steps done.
"""


class SVIEstimator(CallbackSupportMixin, BaseEstimator):
    """Base of the estimators.  Subclasses store their parameters and call :meth:`_train`.

    A subclass defines ``_held_out_score(state, held_out) -> dict`` with a ``"score"`` (higher is
    better) among its entries, and ``_attributes(state) -> dict``, the fitted attributes a callback
    needs in order to use the estimator as if the fit had ended there.  For files, which are named
    by `_kind`, it defines ``_content() -> (arrays, dict)``, what :meth:`save` is to keep besides
    clocks and names, and ``_restore(arrays, meta)``, which takes it over.  What several estimators
    say of their parameters and attributes is written once, in `_texts` of their base: a line
    ``{name}`` of a class docstring becomes the text of this name.

    Parameters that say what the fitted arrays mean are named in `_fixed`, or in `_settings` if a
    fit that goes on may change them.  A fit notes them in `_started`, as JSON gives them back, and
    whatever uses the fitted model takes them from there: those of the estimator may be other ones
    by then.
    """

    _kind: str
    _items: str  # what the data are made of, from `engine_parameters`
    _texts: ClassVar[dict[str, str]] = {}
    _fixed: ClassVar[tuple[str, ...]] = ()
    _settings: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        for base in cls.__mro__:
            for name, text in vars(base).get("_texts", {}).items():
                cls.__doc__ = cls.__doc__.replace(f"    {{{name}}}", text)

    def _check_engine_params(self) -> None:
        check_choice("engine", self.engine, engines.names())
        self._n_threads = resolve_jobs(self.n_jobs)
        engine = self._engine()
        if engine.one_thread and self._n_threads != 1:
            raise ValueError(
                f"engine={self.engine!r} runs one thread, got n_jobs={self.n_jobs!r}"
            )
        if self.batch_size is not None:
            check_number("batch_size", self.batch_size, low=1, integer=True)
        check_number("max_iter", self.max_iter, low=0, integer=True)
        if self.local_steps is not None:
            check_number("local_steps", self.local_steps, low=1, integer=True)
        if isinstance(self.most_blind, str):
            check_choice("most_blind", self.most_blind, ["auto"])
        elif self.most_blind is not None:
            check_number("most_blind", self.most_blind, low=0, open_low=True)
        if self.total_samples is not None:
            check_number("total_samples", self.total_samples, low=0, open_low=True)
        if not isinstance(self.cluster, Cluster | None):
            raise TypeError(f"cluster must be a dpsvi.Cluster or None, got {self.cluster!r}")
        if engine.options and any(
            getattr(self, name, False) for name in ("keep_responsibilities", "warm_documents")
        ):
            raise ValueError(
                f"engine={self.engine!r} cannot remember local parameters between visits "
                "(keep_responsibilities, warm_documents): a document may be elsewhere next time"
            )
        check_number("checkpoint_seconds", self.checkpoint_seconds, low=0)
        check_number("tol", self.tol, low=0)
        check_number("evaluate_every", self.evaluate_every, low=0, open_low=True)
        if self.evaluate_every > 1 and self.evaluate_every != round(self.evaluate_every):
            raise ValueError(
                f"evaluate_every must be a whole number above 1, got {self.evaluate_every!r}"
            )
        check_number("n_iter_no_change", self.n_iter_no_change, low=1, integer=True)
        check_flag("early_stopping", self.early_stopping)
        check_flag("warm_start", self.warm_start)
        # Not any iterable: what can be gone through once would be spent here.
        if not isinstance(self.callbacks, list | tuple | None):
            raise TypeError(f"callbacks must be a list or tuple or None, got {self.callbacks!r}")
        for callback in self.callbacks or ():
            if not callable(callback):
                raise TypeError(f"callbacks must be callables, got {callback!r}")
        self._schedule()

    def _engine(self) -> Engine:
        return engines.get(self.engine)

    def _note_fixed(self, going_on: bool) -> None:
        """Fill `_started`; raises ValueError if a fit that goes on would change what is fixed."""
        params = io.plain_params(self)
        now = {name: params[name] for name in (*self._fixed, *self._settings)}
        for name in self._fixed if going_on else ():
            if now[name] != self._started[name]:
                raise ValueError(
                    f"{name} was {self._started[name]!r} when the fit started, got {now[name]!r}"
                )
        self._started = now

    def _params_to_save(self) -> dict:
        """Parameters with which `load` makes an estimator for the fitted model.

        Raises
        ------
        ValueError, TypeError
            They have been changed since the fit to some that `load` would refuse.
        """
        params = io.plain_params(self) | self._started
        type(self)(**params).check_params()
        return params

    def _resolve_batch_size(self, n_items, stream=False) -> int:
        """Items of a step of a fit to `n_items`, or of a pass over the next ones of a stream."""
        return self.batch_size

    def _count_seen(self, n_items: int, first: bool) -> float:
        """N of a `partial_fit` of so many items: as given, or all seen, those of a fit once."""
        self._n_seen = n_items + (0 if first else self._n_seen)
        return self._n_seen if self.total_samples is None else self.total_samples

    def _schedule(self, passes=None, stream=False):
        """Step sizes as asked for; what they may depend on is None when they are only checked."""
        if self.learning_rate is None:
            rate = self._scaled_rate(1.0)
            return schedules.robbins_monro(self.learning_offset, self.learning_decay, rate)
        check_number("learning_rate", self.learning_rate, low=0, high=1, open_low=True)
        rate = self._scaled_rate(self.learning_rate)
        if rate > 1:
            raise ValueError(
                f"learning_rate={self.learning_rate!r} becomes {rate:.3g} by lr_rule="
                f"{self.lr_rule!r} for the mean of {self.cluster.master_batch} updates: it must "
                f"be <= {self.learning_rate / rate:.3g}"
            )
        return schedules.constant(rate)

    def _resolve_most_blind(self) -> float | None:
        if self.most_blind == "auto":
            return MOST_BLIND if self.learning_rate is None else None
        return self.most_blind

    def _scaled_rate(self, rate: float) -> float:
        """`rate`, carried over to M updates, p threads and B local steps by rule (13).

        One process pushes nothing to anybody: wherever its threads meet, its B is 1 if none is
        given.
        """
        here = Cluster()
        if self._engine().options:
            here = self.cluster or here
            if self.lr_rule == "per_T" and self.local_steps is None:
                raise ValueError(
                    f"lr_rule='per_T' divides the rate by sqrt(M p B): engine={self.engine!r} "
                    "needs local_steps, an integer >= 1, for it, got None"
                )
        return schedules.scaled_rate(
            rate, master_batch=here.master_batch, n_jobs=self._n_threads,
            local_steps=self.local_steps or 1, global_rate=here.global_rate, rule=self.lr_rule,
        )  # fmt: skip

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

    def _sampler(self) -> np.random.Generator:
        """One for draws from a fitted model: every process that asks has its own."""
        return np.random.default_rng(self._draw_seed())

    def _draw_seed(self) -> int:
        return check_random_state(self.random_state).randint(np.iinfo(np.int32).max)

    def _agree(self, answer: bool) -> bool:
        """The answer of the first rank, on all ranks that are still together."""
        together = self._engine().collective and not world().left
        return bool(agree(answer)) if together else answer

    def _hold_out(self, n_items: int, rng):
        """Item numbers for training and for validation."""
        size = self.validation_size
        if size is None:
            if self.early_stopping:
                raise ValueError("early_stopping=True needs validation_size, got None")
            return np.arange(n_items), np.arange(0)
        if isinstance(size, numbers.Real) and not isinstance(size, numbers.Integral):
            if not 0 < size < 1:
                raise ValueError(f"validation_size must be > 0 and < 1.0, or a count, got {size!r}")
            size = max(1, int(size * n_items))
        if n_items < 2:
            raise ValueError(f"validation_size={size!r} needs at least 2 items, got {n_items}")
        check_number("validation_size", size, low=1, high=n_items - 1, integer=True)
        order = rng.permutation(n_items)
        return np.sort(order[size:]), np.sort(order[:size])

    def save(self, path) -> None:
        """Write ``model.safetensors`` and ``model.json`` into the folder `path`.

        Parameters
        ----------
        path : str or path
            A folder; it is made if need be, and a model in it replaced.

        Raises
        ------
        NotFittedError
        ValueError, TypeError
            Parameters were set since the fit that :meth:`load` would refuse.
        OSError
            It cannot be written; a model that was there is kept.
        """
        check_is_fitted(self, "_state")
        arrays, more = self._content()
        io.save_model(
            path,
            kind=self._kind,
            arrays=arrays,
            meta={
                "params": self._params_to_save(), "step": self._state.step,
                "n_seen": self._n_seen, "n_iter": self.n_iter_,
                "feature_names": list(getattr(self, "feature_names_in_", ())), **more,
            },
        )  # fmt: skip

    @classmethod
    def load(cls, path):
        """Read what :meth:`save` wrote; `partial_fit` and `warm_start` go on from it.

        Parameters
        ----------
        path : str or path

        Returns
        -------
        A fitted estimator of this class.

        Raises
        ------
        FileNotFoundError
            The folder holds no model.
        ModelFormatError
            It is damaged, of another kind, or written by a newer version.
        """
        arrays, meta = io.load_model(path, kind=cls._kind)
        with io.reading(path):
            self = cls(**meta["params"])
            self.check_params()
            self._note_fixed(going_on=False)
            meta.setdefault("n_seen", meta.get("docs"))  # of files that only counted visits
            io.check_counts(meta, "step", "n_seen", "n_iter")
            self._n_seen = meta["n_seen"]
            if meta["feature_names"]:
                self.feature_names_in_ = np.array(meta["feature_names"], dtype=object)
            self._restore(arrays, meta)
            self.n_iter_, self.n_batch_iter_ = meta["n_iter"], meta["step"]
        self.history_, self.interrupted_, self.exchanges_ = [], 0, {}
        return self

    _checkpoint: Checkpoint | None = None  # where `resume` starts from

    def resume(self, X, y=None, **more):
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
            `local_steps` and `max_iter` may be others.
        """
        if self.checkpoint_dir is None:
            raise ValueError("resume needs the checkpoint_dir of the fit that goes on, got None")
        self._checkpoint = checkpoint = read_newest(self.checkpoint_dir)
        try:
            then, now = checkpoint.meta["fit"]["params"], _comparable(self)
            for name in sorted(now):
                if then.get(name) != now[name]:
                    raise ModelFormatError(
                        f"{checkpoint.path}: {name} was {then.get(name)!r}, now {now[name]!r}"
                    )
            return self.fit(X, y, **more)
        finally:
            del self._checkpoint

    def _train(self, state, items, n_passes, rng, monitor, total=None, checkpoints=False) -> bool:
        """Run `n_passes` over `items`; True when the fit is to end here.

        The items of a stream stand for `total`.  With `checkpoints`, they are written where the
        user wants some: in `fit`.
        """
        n_items, stream = len(items.offsets) - 1, total is not None
        batch_size = self._resolve_batch_size(n_items, stream)
        seed = int(rng.integers(2**63))
        start = Snapshot(state, Passes(n_items, batch_size, n_passes, seed, 1, state.step), 0)
        if self._checkpoint is not None:
            start = restore(self._checkpoint, state, n_passes, batch_size, n_items)
            monitor.restore(self._checkpoint.meta["fit"]["monitor"])
        self.exchanges_ = {}
        job = Job(
            state, items, start.passes, self._schedule(start.passes, stream), self._n_threads,
            self.local_steps, total, self._resolve_most_blind(),
            min(1.0, self.evaluate_every), monitor, seconds=start.seconds, cluster=self.cluster,
            strategy_state=start.strategy_state, report=self.exchanges_,
        )  # fmt: skip
        engine = self._engine()
        first_rank = world().rank == 0 if engine.collective else launched_rank() == 0
        if checkpoints and self.checkpoint_dir is not None and first_rank:
            shared = state.shared
            n_bytes = shared.rows.nbytes + shared.item_memory.nbytes
            folder = CheckpointFolder(
                self.checkpoint_dir, self.checkpoint_seconds, n_bytes,
                partial(self._describe_fit, monitor),
            )  # fmt: skip
            job = job._replace(checkpoint=folder)
        try:
            if self.verbose and first_rank:
                epoch = monitor.before[1]
                first = epoch + start.passes.n_done / max(1, start.passes.steps_a_pass)
                whole = n_passes if total is not None else self.max_iter  # as `partial_fit` has it
                with monitor.progress.phase(state, n_items, first, epoch + n_passes, whole) as show:
                    ended = engine.fit(job._replace(on_task=show))
            else:
                ended = engine.fit(job)
        except KeyboardInterrupt as interrupt:
            self._interrupt(interrupt, state)
            return True
        monitor.start_phase()
        return ended or monitor.stopped

    def _describe_fit(self, monitor) -> dict:
        """What a checkpoint holds besides parameters and clocks."""
        return {"seed": self._seed, "params": _comparable(self), "monitor": monitor.memory()}

    _interrupted_by: KeyboardInterrupt | None = None  # while a fit that was interrupted ends

    def _interrupt(self, interrupt, state) -> None:
        """End the fit in good order: parameters are valid after any whole step, and are kept.

        What interrupted it is raised again at the very end, by :func:`unchanged_on_error`.
        """
        self.interrupted_ = getattr(interrupt, "code", 130)
        self._interrupted_by = interrupt
        interrupt.add_note(f"interrupted after {state.step} steps; the model so far is kept")


def _comparable(estimator) -> dict:
    """Parameters that must be the same when a fit is resumed."""
    return {k: v for k, v in io.plain_params(estimator).items() if k not in _FREE}


def unchanged_on_error(method):
    """Leave the estimator as it was when `method`, a fit, refuses its input or fails.

    One that was interrupted while it trained has kept its model: then the interrupt is raised.
    """

    @wraps(method)
    def guarded(estimator, *args, **kwargs):
        before = dict(estimator.__dict__)
        try:
            fitted = method(estimator, *args, **kwargs)
        except BaseException:
            estimator.__dict__.clear()
            estimator.__dict__.update(before)
            raise
        interrupt = vars(estimator).pop("_interrupted_by", None)
        if interrupt is not None:
            raise interrupt
        return fitted

    return guarded
