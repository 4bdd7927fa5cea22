"""The parameters of an actor-critic: checks, and what follows from them."""

from __future__ import annotations

import math
from dataclasses import replace
from types import MappingProxyType

from dpsvi import engines
from dpsvi.cluster.options import Cluster
from dpsvi.errors import check_callbacks, check_choice, check_flag, check_number, resolve_jobs
from dpsvi.files.launcher import launched_size
from dpsvi.rl import environments, objectives, problem
from dpsvi.rl.algorithms import ALGORITHMS
from dpsvi.rl.check import check_constants
from dpsvi.rl.network import Network, as_convolutions
from dpsvi.rl.optimizers import LINEAR, NAMES

_HIDDEN = (64, 64)  # units, where the environment names none

# Decay of the optimiser's first and second moment, and its epsilon, as is usual for A2C.
_MOMENTS = MappingProxyType({
    "sgd": (0.0, 0.0, 1e-8), "sgd_momentum": (0.9, 0.0, 1e-8),
    "rmsprop": (0.0, 0.99, 1e-5), "adam": (0.9, 0.999, 1e-5),
})  # fmt: skip


class Parameters:
    """The part of :class:`dpsvi.rl.ActorCritic` that reads its parameters."""

    def _environment(self):
        if isinstance(self.environment, str):
            return environments.get(self.environment)
        return self.environment

    def _network(self) -> Network:
        found = self._environment()
        hidden, convolution = self.hidden, self.convolution
        if hidden is None:
            hidden = getattr(found, "HIDDEN", _HIDDEN)
        if convolution is None:
            convolution = getattr(found, "CONVOLUTION", ())
        convolutions = as_convolutions(convolution)
        return Network(tuple(found.SHAPE), tuple(hidden), found.N_ACTIONS, convolutions)

    def _settings(self) -> problem.Settings:
        algorithm = ALGORITHMS[self.algorithm]
        return problem.Settings(
            self.gamma, self.trace, self.entropy, self.value, self.clip, self.optimizer,
            *_MOMENTS[self.optimizer], self.n_games or algorithm.games(self._n_workers()),
            self.n_moves, self.sticky, algorithm.queue, self.objective,
        )  # fmt: skip

    def _cluster(self) -> Cluster | None:
        """Options of the engine, if it has some: those given, with the algorithm's strategy."""
        engine, given = engines.get(self.engine), self.cluster
        if engine.options is None or (given is not None and given.strategy != Cluster.strategy):
            return given
        own = ALGORITHMS[self.algorithm].cluster(self._n_workers())
        return engine.options(**own) if given is None else replace(given, **own)

    def _n_workers(self) -> int:
        """Workers beside a master, 1 in one process."""
        if not engines.get(self.engine).collective:
            return getattr(self.cluster, "n_workers", 1)
        return max(1, launched_size() - 1 + getattr(self.cluster, "master_works", False))

    def _of_a_replica(self) -> float:
        """What the schedule's rate is multiplied by where workers have parameters of their own.

        Strategies make steps of n times the rate of n replicas, whose mean moves by 1/n of each
        step.  That is right for gradients; a step of Adam or RMSProp is as long as its rate,
        whatever the gradient, and with the root of n all sizes learn
        (`experiments.hsa2c replicas`; see Malladi et al. 2022, arXiv:2205.10287).
        """
        cluster = self._cluster()
        if cluster is None or self.optimizer in LINEAR:
            return 1.0
        strategy, n = cluster.make_strategy(), self._n_workers()
        if strategy.topology == "peers" and engines.get(self.engine).collective:
            n = launched_size()
        return 1 / math.sqrt(strategy.averaged(n))

    def _check(self) -> None:
        """Raise ValueError or TypeError where a parameter is out of its range."""
        check_choice("algorithm", self.algorithm, sorted(ALGORITHMS))
        check_choice("engine", self.engine, engines.names())
        check_choice("optimizer", self.optimizer, NAMES)
        check_choice("objective", self.objective, objectives.NAMES)
        check_number("learning_rate", self.learning_rate, low=0, high=1, open_low=True)
        for name in ("gamma", "trace"):
            check_number(name, getattr(self, name), low=0, high=1)
        for name in ("entropy", "value", "clip", "checkpoint_seconds"):
            check_number(name, getattr(self, name), low=0)
        check_number("sticky", self.sticky, low=0, high=0.99)
        check_flag("anneal", self.anneal)
        for name in ("n_games", "local_steps"):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name), low=1, integer=True)
        for name in ("n_moves", "n_episodes", "n_evaluations"):
            check_number(name, getattr(self, name), low=1, integer=True)
        if self.target is not None:
            check_number("target", self.target)
        if not isinstance(self.cluster, Cluster | None):
            raise TypeError(f"cluster must be a dpsvi.Cluster or None, got {self.cluster!r}")
        check_callbacks(self.callbacks)
        check_constants(self._environment())
        if not isinstance(self.hidden, tuple | list | None):
            raise TypeError(f"hidden must be a tuple of int or None, got {self.hidden!r}")
        self._network().check()
        engine, algorithm = engines.get(self.engine), ALGORITHMS[self.algorithm]
        n_threads = resolve_jobs(self.n_jobs)
        if n_threads > 1 and (engine.one_thread or algorithm.one_thread):
            which = f"engine={self.engine!r}" if engine.one_thread else self.algorithm
            raise ValueError(f"{which} runs one thread a worker, got n_jobs={self.n_jobs!r}")
        if engine.options is None and (self.cluster is not None or algorithm.needs_workers):
            what = "cluster" if self.cluster is not None else f"algorithm={self.algorithm!r}"
            raise ValueError(f"{what} needs an engine with workers, got {self.engine!r}")
        if engine.options is not None and algorithm.cluster is None:
            raise ValueError(f"algorithm={self.algorithm!r} runs in one process, not over workers")
