"""How a fit runs: checks of the parameters that say so, and what follows from them.

The parameters are listed and described in :mod:`dpsvi.estimators.engine_parameters`.
"""

from __future__ import annotations

import numbers

import numpy as np

from dpsvi import engines, learners
from dpsvi.base import Engine, Model
from dpsvi.cluster.options import Cluster
from dpsvi.cluster.ranks.prepare import check_counts_once, check_remembers
from dpsvi.errors import (
    as_random_state,
    check_callbacks,
    check_choice,
    check_flag,
    check_number,
    resolve_jobs,
)
from dpsvi.training import schedules

# Threads that do not see each other's first steps, whose rates are near 1, cost mean-field LDA some
# held-out perplexity; this share of what the parameters remember is small enough to cost none.
MOST_BLIND = 0.3

# A batch that is left to a fit.  Small data end higher in many small steps than in one or a few
# that are larger (`python -m experiments.small_data`).
MOST, FEWEST = 256, 16  # items
STEPS = 20  # of a pass, at least, as long as there are items for them


class RunParameters:
    """The part of an estimator that reads the parameters of `engine_parameters`."""

    _n_threads: int  # p, known once the parameters have been checked

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
        if self.max_batch_size is not None:
            self._check_growth(engine)
        if isinstance(self.max_iter, str):
            self._check_auto()
        else:
            check_number("max_iter", self.max_iter, low=0, integer=True)
        if self.local_steps is not None:
            check_number("local_steps", self.local_steps, low=1, integer=True)
        if isinstance(self.most_blind, str):
            check_choice("most_blind", self.most_blind, ["auto"])
        elif self.most_blind is not None:
            check_number("most_blind", self.most_blind, low=0, open_low=True)
        if self.total_samples is not None:
            check_number("total_samples", self.total_samples, low=0, open_low=True)
        if self.forgetting is not None:
            check_number("forgetting", self.forgetting, low=0, open_low=True)
            if self.learning_rate is not None:
                raise ValueError(
                    f"forgetting={self.forgetting!r} is for step sizes that fall: a constant "
                    f"learning_rate, got {self.learning_rate!r}, forgets already"
                )
        if not isinstance(self.cluster, Cluster | None):
            raise TypeError(f"cluster must be a dpsvi.Cluster or None, got {self.cluster!r}")
        if self.cluster is not None and engine.options is None:
            raise ValueError(f"cluster needs an engine with workers, got engine={self.engine!r}")
        if self.checkpoint_dir == "":
            raise ValueError("checkpoint_dir must be a folder or None, got ''")
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
        check_callbacks(self.callbacks)
        self._schedule()

    def _check_auto(self) -> None:
        if self.max_iter != "auto":
            raise ValueError(f"max_iter must be an integer >= 0 or 'auto', got {self.max_iter!r}")
        if self.early_stopping:
            raise ValueError(
                "max_iter='auto' ends by itself, with steps that early_stopping=True would cut off:"
                " it needs a number of passes"
            )
        if self.max_batch_size is not None:
            raise ValueError(
                "max_iter='auto' makes a fit of parts, and batches grow over a whole fit: "
                f"max_batch_size must be None, got {self.max_batch_size!r}"
            )

    def _check_growth(self, engine: Engine) -> None:
        least = 1 if self.batch_size is None else self.batch_size
        check_number("max_batch_size", self.max_batch_size, low=least, integer=True)
        if engine.collective:
            raise ValueError(
                f"max_batch_size must be None for engine={self.engine!r}: its ranks have one "
                f"batch_size, got {self.max_batch_size!r}"
            )
        if self.checkpoint_dir is not None:
            raise ValueError(
                "max_batch_size must be None where there is a checkpoint_dir: a checkpoint is of "
                f"batches of one size, got {self.max_batch_size!r}"
            )

    def _masterless(self) -> bool:
        """Whether there are nodes without a master: they are told and remember nothing."""
        options = self._engine().options
        cluster = options and (self.cluster or options())
        return bool(cluster) and cluster.make_strategy().topology == "peers"

    def _check_counts_once(self, what: str) -> None:
        """Check that workers, if there are any, can fit `what` by changes of what they remember."""
        options = self._engine().options
        if options:
            check_counts_once(self.cluster or options(), what)
            check_remembers(self.cluster or options())

    def _engine(self) -> Engine:
        return engines.get(self.engine)

    def _resolve_batch_size(self, n_items, stream=False) -> int:
        """Items of a step of a fit to `n_items`, or of a pass over the next ones of a stream.

        A stream is cut evenly: a short step at the end would count for more than its items.
        """
        if not stream:
            return self._whole_batch(n_items)
        return -(-n_items // -(-n_items // self._whole_batch(self._n_seen)))

    def _whole_batch(self, n_items) -> int:
        """Items of a batch where there are `n_items`."""
        if self.batch_size is not None:
            return self.batch_size
        return int(np.clip(n_items // STEPS, FEWEST, MOST))

    def _parts(self, n_items, batch_size, stream=False) -> float:
        """Steps of so many items that a batch of one process would be; workers may share it."""
        return 1.0

    def _schedule(self, passes=None):
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

    def _stream_schedule(self, passes, before: int):
        """Step sizes over the next items of a stream, after `before` visits of items."""
        schedule = self._schedule()
        if self.learning_rate is not None:
            return schedule
        whole = self._whole_batch(self._n_seen)
        return schedules.of_stream(schedule, whole, before, passes.batch_size, passes.clock)

    def _forgetful(self, schedule, batch_size: int, model: Model):
        """`schedule`, of steps over so many items of a stream, but with `forgetting`."""
        if self.forgetting is None:
            return schedule
        if learners.get(model.learner).COUNTS_ONCE:
            raise ValueError(
                f"forgetting={self.forgetting!r} needs steps that decay what was learned: "
                f"learner {model.learner!r} has none"
            )
        return schedules.at_least(schedule, batch_size / self.forgetting)

    def _resolve_most_blind(self, model: Model) -> float | None:
        if learners.get(model.learner).COUNTS_ONCE:
            return None  # rates are of no effect
        if self.most_blind == "auto":
            return MOST_BLIND if self.learning_rate is None else None
        return self.most_blind

    def _scaled_rate(self, rate: float) -> float:
        """`rate`, carried over to M updates, p threads and B local steps by rule (13).

        One process pushes nothing to anybody: wherever its threads meet, its B is 1 if none is
        given.
        """
        master_batch, global_rate = 1, 1.0
        if self._engine().options:
            here = self.cluster or Cluster()
            master_batch, global_rate = here.master_batch, here.global_rate
            if self.lr_rule == "per_T" and self.local_steps is None:
                raise ValueError(
                    f"lr_rule='per_T' divides the rate by sqrt(M p B): engine={self.engine!r} "
                    "needs local_steps, an integer >= 1, for it, got None"
                )
        return schedules.scaled_rate(
            rate, master_batch=master_batch, n_jobs=self._n_threads,
            local_steps=self.local_steps or 1, global_rate=global_rate, rule=self.lr_rule,
        )  # fmt: skip

    def _resolve_validation_size(self, n_items: int) -> int:
        """How many of `n_items` are held out; 0 if none are asked for."""
        size = self.validation_size
        if size is None:
            if self.early_stopping:
                raise ValueError("early_stopping=True needs validation_size, got None")
            return 0
        if isinstance(size, numbers.Real) and not isinstance(size, numbers.Integral):
            if not 0 < size < 1:
                raise ValueError(f"validation_size must be > 0 and < 1.0, or a count, got {size!r}")
            size = max(1, int(size * n_items))
        if n_items < 2:
            raise ValueError(
                f"validation_size={size!r} needs at least 2 {self._items}, got {n_items}"
            )
        if isinstance(size, numbers.Integral) and size >= n_items:
            raise ValueError(
                f"validation_size must be less than {n_items}, the number of {self._items}, "
                f"got {size}"
            )
        check_number("validation_size", size, low=1, integer=True)
        return size

    def _draw_seed(self, random_state=None) -> int:
        chosen = self.random_state if random_state is None else random_state
        return as_random_state(chosen).randint(np.iinfo(np.int32).max)

    def _sampler(self, random_state=None) -> np.random.Generator:
        """One for draws from a fitted model: every process that asks has its own."""
        return np.random.default_rng(self._draw_seed(random_state))
