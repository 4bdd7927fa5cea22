"""How an actor-critic is trained: a job for an engine, checkpoints, evaluations."""

from __future__ import annotations

import logging
import math
from functools import partial
from typing import Any

import numpy as np

from dpsvi import engines
from dpsvi.cluster.ranks.world import agree
from dpsvi.errors import ModelFormatError, as_random_state, check_number, resolve_jobs
from dpsvi.files import io
from dpsvi.files.launcher import launched_rank
from dpsvi.rl import play, problem
from dpsvi.rl.algorithms import ALGORITHMS
from dpsvi.rl.check import check_environment
from dpsvi.rl.environments import is_compiled, name_of, opened
from dpsvi.rl.episodes import play_episodes
from dpsvi.rl.network import Network
from dpsvi.rl.parameters import Parameters
from dpsvi.training.checkpoint import CheckpointFolder, restore
from dpsvi.training.job import Job, Snapshot
from dpsvi.training.ledger import Ledger
from dpsvi.training.state import State

log = logging.getLogger(__name__)

_FREE = {"engine", "n_jobs", "local_steps", "verbose", "random_state", "checkpoint_seconds"}


class Training(Parameters):
    """The part of :class:`dpsvi.rl.ActorCritic` that carries out a fit."""

    parameters_: np.ndarray
    history_: list[dict[str, Any]]
    exchanges_: dict[str, Any]
    n_moves_: int
    _network_of_fit: Network

    def _fit(self, n_moves, checkpoint):
        self._check()
        check_number("n_moves", n_moves, low=1, integer=True)
        before = dict(vars(self))
        try:
            with opened(self._environment(), learns=True) as environment:
                check_environment(environment)
                return self._train(environment, n_moves, checkpoint)
        except Exception:  # whoever interrupts a fit keeps what it has learned
            vars(self).clear()
            vars(self).update(before)
            raise

    def _train(self, environment, n_moves, checkpoint):
        engine, algorithm = engines.get(self.engine), ALGORITHMS[self.algorithm]
        network, settings = self._network(), self._settings()
        if not is_compiled(environment):
            play.compile_parts(np.dtype(np.float32))
        moves = settings.n_games * settings.n_moves  # of an update
        n_updates = math.ceil(n_moves / moves)
        if checkpoint is None:
            seed = as_random_state(self.random_state).randint(np.iinfo(np.int32).max)
            seed = agree(seed) if engine.collective else int(seed)
        else:
            seed = checkpoint.meta["fit"]["seed"]
        model = problem.model(environment, network, settings, seed)
        theta = network.start(np.random.default_rng(seed))
        n_threads = resolve_jobs(self.n_jobs)
        state = State.resume(model, problem.to_rows(theta, model.shape), n_threads)
        start = Snapshot(state, Ledger(n_updates, 1, 1, seed), 0.0)
        history: list[dict] = []
        if checkpoint is not None:
            then = checkpoint.meta["fit"].get("n_moves", n_moves)  # older ones do not say
            if then != n_moves:
                raise ModelFormatError(
                    f"{checkpoint.path}: is of a fit of {then} moves, not of {n_moves}"
                )
            hyper = model.hyper.copy()
            start = restore(checkpoint, state, 1, 1, n_updates)
            if (model.hyper != hyper).any():
                raise ModelFormatError(
                    f"{checkpoint.path}: the environment has changed since it was written, or how "
                    "many games a worker plays"
                )
            history = list(checkpoint.meta["fit"]["history"])
            if not is_compiled(environment):
                state.shared.thread_memory[...] = 0  # games of before: new ones begin
        folder, first = None, launched_rank() == 0
        if self.checkpoint_dir is not None and first:
            folder = CheckpointFolder(self.checkpoint_dir, self.checkpoint_seconds)
            folder.begin(
                state.shared.rows.nbytes,
                lambda: {
                    "seed": seed, "params": self._comparable(), "n_moves": n_moves,
                    "history": history,
                },
            )
        report: dict = {}
        rates = partial(self._rates, n_updates, self._of_a_replica())
        job = Job(
            state, problem.steps(n_updates), start.passes, rates, n_threads,
            self.local_steps or algorithm.local_steps,
            observe_every=1 / self.n_evaluations,
            observer=partial(self._look, history, report, moves, model.hyper, seed),
            checkpoint=folder, seconds=start.seconds, cluster=self._cluster(),
            strategy_state=start.strategy_state, report=report,
        )  # fmt: skip
        try:
            engine.fit(job)
        except KeyboardInterrupt:
            self._take(state, history, report, moves)
            raise
        self._take(state, history, report, moves)
        return self

    def _take(self, state, history, report, moves) -> None:
        """Set what is fitted."""
        self._network_of_fit = network = self._network()
        self.parameters_ = problem.to_theta(state.natural(), network)
        self.history_, self.exchanges_ = history, report
        self.n_moves_ = state.step * moves

    def _rates(self, n_updates, factor, t) -> np.ndarray:
        t = np.asarray(t, np.float64)
        left = 1 - t / n_updates if self.anneal else np.ones_like(t)
        return factor * self.learning_rate * np.maximum(left, 1e-3)

    def _look(self, history, report, moves, hyper, seed, event) -> bool:
        """Evaluate the parameters as they are; whether the fit has reached its end."""
        self._take(event.state, history, report, moves)  # callbacks may save or play
        returns, _ = play_episodes(
            self._environment(), self.parameters_, hyper, self.n_episodes, True, seed + 1
        )
        entry = {
            "moves": event.step * moves, "updates": event.step, "seconds": event.seconds,
            "rate": event.rate, "score": float(returns.mean()),
        }  # fmt: skip
        history.append(entry)
        if self.verbose:
            log.info(
                "%s moves, %.1f s: mean return %.4g", f"{entry['moves']:,}", entry["seconds"],
                entry["score"],
            )  # fmt: skip
        ended = [bool(callback(entry, self)) for callback in self.callbacks or ()]
        return any(ended) or (self.target is not None and entry["score"] >= self.target)

    def _comparable(self) -> dict:
        """Parameters that must be the same when a fit is resumed, as JSON holds them."""
        params = {**self.get_params(deep=False), "environment": name_of(self._environment())}
        params = io.plain_params(type(self)(**params))
        return {k: v for k, v in params.items() if k not in _FREE}
