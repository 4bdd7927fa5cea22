"""An actor-critic as the engines know it: a model of the gradient learner, and items.

The parameters are the network's, one vector cut into rows; an item is one local step, and every
worker plays games of its own.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpsvi.base import Items, Model
from dpsvi.kernels.jit import as_items
from dpsvi.rl import objectives, play, waiting
from dpsvi.rl.environments import is_compiled, name_of
from dpsvi.rl.network import Network
from dpsvi.rl.optimizers import KEPT, NAMES
from dpsvi.rl.templates import of

_COLUMNS = 64  # of the matrix of parameters


class Settings(NamedTuple):
    """What a local step is told; see :class:`dpsvi.rl.ActorCritic`."""

    gamma: float
    trace: float
    entropy: float
    value: float
    clip: float
    optimizer: str
    first: float
    second: float
    epsilon: float
    n_games: int
    n_moves: int
    sticky: float
    queue: int
    objective: str


def hyper(environment, network: Network, settings: Settings, seed: int) -> np.ndarray:
    """The numbers that the compiled functions of :mod:`dpsvi.rl.play` take."""
    told = settings._replace(
        optimizer=NAMES.index(settings.optimizer),
        objective=objectives.NAMES.index(settings.objective),
    )
    more = (environment.LIMIT, seed, environment.N_STATE, network.n_parameters)
    return np.concatenate([np.array([*told, *more], np.float64), network.numbers()])


def model(environment, network: Network, settings: Settings, seed: int) -> Model:
    """The model of an actor-critic that plays `environment`."""
    # A matrix of one row would be read from its sums, see `State.settle`.
    n_rows = max(2, math.ceil(network.n_parameters / _COLUMNS))
    n_games, n_moves = settings.n_games, settings.n_moves
    n_scratch = play.scratch(network, n_games, n_moves)
    n_waiting = settings.queue * waiting.numbers(network.n_inputs, n_games, n_moves)
    return Model(
        name=f"actor-critic on {name_of(environment)}",
        shape=(n_rows, _COLUMNS), prior=np.zeros(1, np.float32),
        hyper=hyper(environment, network, settings, seed),
        local=of(play.rollout, environment), scratch=lambda longest: n_scratch,
        learner="gradient", compiled=is_compiled(environment),
        thread_memory=play.GAMES + n_games * (play.OF_GAME + environment.N_STATE) + n_waiting,
        optimizer=KEPT[settings.optimizer],
    )  # fmt: skip


def to_rows(theta: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """The matrix of a network's parameters."""
    rows = np.zeros(shape, np.float32)
    rows.reshape(-1)[: len(theta)] = theta
    return rows


def to_theta(rows: np.ndarray, network: Network) -> np.ndarray:
    """The parameters of a network in their matrix, as one vector: a copy."""
    return rows.reshape(-1)[: network.n_parameters].astype(np.float32)


def steps(n: int) -> Items:
    """Items for n local steps: each is a number, no more."""
    return as_items(np.zeros(n + 1), [], [], np.float32)
