"""Whether an environment keeps to its contract, tried before anything is learned."""

from __future__ import annotations

import math

import numpy as np
from numba.core.errors import NumbaError

from dpsvi.kernels.jit import inline_kernel
from dpsvi.rl import generator
from dpsvi.rl.environments import name_of
from dpsvi.rl.episodes import ENDLESS, LIMITED_BY
from dpsvi.rl.templates import as_fast, cuts, observe, reset, step

_MOVES, _GUARD = 2_000, 1024
_GOOD, _STATE, _OBSERVATION, _REWARD, _NO_END = range(5)


@inline_kernel
def unwrite(array):
    """Fill it with NaN."""
    for k in range(array.shape[0]):
        array[k] = np.nan


@inline_kernel
def unfinite(array):
    """Place of the first number that is NaN or infinite; -1 if there is none."""
    for k in range(array.shape[0]):
        if not np.isfinite(array[k]):
            return k
    return -1


def trial(random, state, observation, n_actions, limit, n_moves, most):
    """Template: make random moves; returns what is wrong first, and the reward if it is that."""
    age = 0
    reset(state, random)
    for move in range(most):
        unwrite(observation)
        observe(state, observation)
        place = unfinite(observation)
        if place >= 0:
            return _OBSERVATION, float(place)
        place = unfinite(state)
        if place >= 0:
            return _STATE, float(place)
        reward, ended = step(state, generator.below(random, n_actions), random)
        age += 1
        if not np.isfinite(reward):
            return _REWARD, reward
        if ended or age == limit or cuts(state):
            if move >= n_moves:
                return _GOOD, 0.0
            age = 0
            reset(state, random)
    return (_NO_END if age == most else _GOOD), 0.0


def check_constants(environment) -> None:
    """Raise ValueError or TypeError where an environment lacks what it must have."""
    if hasattr(environment, "opened"):
        return  # its constants are made by dpsvi
    name = name_of(environment)
    for constant in ("SHAPE", "N_ACTIONS", "N_STATE", "LIMIT", "reset", "step", "observe"):
        if not hasattr(environment, constant):
            hint = ": give the name of one of gymnasium's, as in 'gymnasium:CartPole-v1'"
            raise TypeError(
                f"environment {name} has no {constant}{hint * hasattr(environment, 'action_space')}"
            )
    shape = environment.SHAPE
    if not isinstance(shape, tuple) or not shape or not all(_whole(n, 1) for n in shape):
        raise ValueError(f"SHAPE of environment {name} must be a tuple of int >= 1, got {shape!r}")
    for constant, least in (("N_ACTIONS", 1), ("N_STATE", 1), ("LIMIT", 0)):
        value = getattr(environment, constant)
        if not _whole(value, least):
            raise ValueError(
                f"{constant} of environment {name} must be an int >= {least}, got {value!r}"
            )
    for function in ("reset", "step", "observe"):
        if not hasattr(getattr(environment, function), "py_func"):
            raise TypeError(
                f"{function} of environment {name} is not compiled: decorate it with numba.njit"
            )


def check_environment(environment) -> None:
    """Raise ValueError or TypeError where an environment does not play as it must.

    Parameters
    ----------
    environment : module or object
        As :mod:`dpsvi.rl.environments` describes it, opened.
    """
    name, shape = name_of(environment), environment.SHAPE
    random = np.zeros(1, np.uint64)
    generator.seed(random, 0)
    # What is behind them is not theirs.
    state = np.full(environment.N_STATE + _GUARD, np.nan)
    observation = np.full(math.prod(shape) + _GUARD, np.nan, np.float32)
    state[: environment.N_STATE] = 0
    most = _MOVES if environment.LIMIT else ENDLESS
    try:
        wrong, value = as_fast(trial, environment)(
            random, state[: environment.N_STATE], observation[:-_GUARD], environment.N_ACTIONS,
            environment.LIMIT, _MOVES, most,
        )  # fmt: skip
    except NumbaError as error:
        raise TypeError(
            f"environment {name} does not compile as reset(state, random), step(state, action, "
            f"random), which returns (reward, ended), and observe(state, observation): {error}"
        ) from error
    for what, array in (("N_STATE", state), ("SHAPE", observation)):
        if not np.isnan(array[-_GUARD:]).all():
            raise ValueError(f"environment {name} writes more numbers than {what} says")
    if wrong == _OBSERVATION:
        raise ValueError(
            f"observe of environment {name} leaves number {value:.0f} of SHAPE {shape} unwritten, "
            "or it is NaN or infinite"
        )
    if wrong == _STATE:
        raise ValueError(f"number {value:.0f} of the state of environment {name} is not finite")
    if wrong == _REWARD:
        raise ValueError(f"step of environment {name} gave the reward {value}")
    if wrong == _NO_END and not environment.LIMIT:
        raise ValueError(
            f"environment {name} did not end in {most:,} random moves: {LIMITED_BY} must say "
            "when an episode is cut"
        )


def _whole(value, least) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= least
