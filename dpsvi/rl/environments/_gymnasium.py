"""Environments of gymnasium, by the name ``"gymnasium:CartPole-v1"``; they are not compiled.

What follows the first colon is what ``gymnasium.make`` takes: an id, or ``module:id``, which
imports the module that registers it.  Actions must be discrete; observations that are no arrays
are flattened as ``gymnasium.spaces.flatten`` does it, a choice of n to n numbers.  Where a wrapper
or the environment itself cuts an episode (``truncated``), it is cut here.

The state of a game is the number of its environment, which nobody else can look into: it can
neither be drawn nor kept in a checkpoint.  Each episode has a seed of its own, from the stream.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import numpy as np

from dpsvi.rl.generator import below

_SEEDS = 1 << 31


class Gymnasium:
    """What is known of an environment before it is played: the constants of the contract.

    Parameters
    ----------
    name : str
        What ``gymnasium.make`` takes.

    Raises
    ------
    ImportError
        gymnasium is not installed.
    ValueError
        There is no such environment, or its actions or observations are none that can be learned.
    """

    N_STATE = 1
    LIMIT = 0  # its wrappers cut

    def __init__(self, name: str):
        self._name = name
        self.__name__ = f"gymnasium:{name}"
        environment = self.make()
        actions, seen = environment.action_space, environment.observation_space
        environment.close()
        if type(actions).__name__ != "Discrete":
            raise ValueError(
                f"the action_space of environment {self.__name__} must be Discrete, got {actions}"
            )
        self.SHAPE, self.N_ACTIONS = tuple(seen.shape), int(actions.n)
        self._first_action = int(actions.start)

    def make(self):
        """A new environment of gymnasium, whose observations are arrays."""
        try:
            import gymnasium
        except ImportError as error:
            raise ImportError(
                f"environment {self.__name__} needs gymnasium: pip install 'dpsvi[gymnasium]'"
            ) from error
        try:
            environment = gymnasium.make(self._name)
        except (gymnasium.error.Error, ImportError) as error:
            raise ValueError(f"environment {self.__name__} cannot be made: {error}") from error
        seen = environment.observation_space
        if isinstance(seen, gymnasium.spaces.Box) and seen.shape:
            return environment
        if not seen.is_np_flattenable:
            raise ValueError(
                f"the observation_space of environment {self.__name__} must be of a fixed size, "
                f"got {seen}"
            )
        return gymnasium.wrappers.FlattenObservation(environment)

    @contextmanager
    def opened(self) -> Iterator[Games]:
        """Games, until the end of a ``with``."""
        games = Games(self)
        try:
            yield games
        finally:
            games.close()

    def as_array(self, seen) -> np.ndarray:
        """An observation as a float32 array of all its numbers.

        Raises
        ------
        ValueError
            It has another shape than the environment says.
        """
        found = np.asarray(seen, np.float32)
        if found.shape != self.SHAPE:
            raise ValueError(
                f"environment {self.__name__} gave an observation of shape {found.shape}, its "
                f"observation_space says {self.SHAPE}"
            )
        return found.ravel()

    def move(self, environment, action: int) -> tuple[np.ndarray, float, bool, bool]:
        """Make a move: the observation, the reward, whether the episode ends, whether it is cut."""
        seen, reward, ended, cut, _ = environment.step(self._first_action + action)
        return self.as_array(seen), float(reward), bool(ended), bool(cut)


class _Game:
    """An environment of gymnasium, what it has shown last, and whether its episode is cut."""

    def __init__(self, environment):
        self.environment, self.seen, self.cut = environment, None, False


class Games:
    """Games of one environment, as the contract has them, played in the interpreter.

    A game begins in a state of 0, which then holds its number.
    """

    def __init__(self, kind: Gymnasium):
        self.__name__, self.SHAPE, self.N_ACTIONS = kind.__name__, kind.SHAPE, kind.N_ACTIONS
        self.N_STATE, self.LIMIT = kind.N_STATE, kind.LIMIT
        self._kind, self._games, self._numbers = kind, {}, itertools.count(1)

    def reset(self, state, random) -> None:
        """Begin an episode."""
        if state[0] == 0:
            state[0] = next(self._numbers)
            self._games[state[0]] = _Game(self._kind.make())
        game = self._games[state[0]]
        seen, _ = game.environment.reset(seed=below(random, _SEEDS))
        game.seen = self._kind.as_array(seen)

    def step(self, state, action, random) -> tuple[float, bool]:
        """Make a move; the chance in it is the environment's own."""
        game = self._games[state[0]]
        game.seen, reward, ended, game.cut = self._kind.move(game.environment, action)
        return reward, ended

    def observe(self, state, observation) -> None:
        """What the last move has shown."""
        observation[:] = self._games[state[0]].seen

    def cuts(self, state) -> bool:
        """Whether the last move was the last one of an episode that would have gone on."""
        return self._games[state[0]].cut

    def close(self) -> None:
        """Close all environments."""
        for game in self._games.values():
            game.environment.close()


@cache
def known(name: str) -> Gymnasium:
    """The environment that ``gymnasium.make`` makes of `name`; it is asked once."""
    return Gymnasium(name)
