"""Games that are played in the interpreter: those of gymnasium and of Atari.

The state of a game is its number, which nobody else can look into: it can neither be drawn nor kept
in a checkpoint.  Each episode has a seed of its own, from the stream.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import numpy as np

from dpsvi.rl.generator import below

_SEEDS = 1 << 31


class Game(Protocol):
    """One game.  Observations are float32 arrays of all their numbers."""

    def reset(self, seed: int) -> np.ndarray:
        """Begin an episode: the observation."""

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool]:
        """Make a move: the observation, the reward, whether the episode ends, whether it is cut."""

    def close(self) -> None:
        """Give back what it holds."""


class Interpreted:
    """What is known of such games before they are played: the constants of the contract.

    A kind of games derives from it, and sets ``__name__``, `SHAPE` and `N_ACTIONS`.
    """

    SHAPE: tuple[int, ...]
    N_ACTIONS: int
    N_STATE = 1
    LIMIT = 0  # they cut themselves

    def start(self, learns: bool) -> Game:
        """A new game; `learns`: to learn from it, not to see how good a policy is."""
        raise NotImplementedError

    @contextmanager
    def opened(self, learns: bool) -> Iterator[Games]:
        """Games, until the end of a ``with``."""
        games = Games(self, learns)
        try:
            yield games
        finally:
            games.close()


class Games:
    """Games of one kind, as the contract has them.

    A game begins in a state of 0, which then holds its number.
    """

    def __init__(self, kind: Interpreted, learns: bool):
        self.__name__, self.SHAPE, self.N_ACTIONS = kind.__name__, kind.SHAPE, kind.N_ACTIONS
        self.N_STATE, self.LIMIT = kind.N_STATE, kind.LIMIT
        self._kind, self._learns, self._numbers = kind, learns, itertools.count(1)
        self._games: dict[float, Game] = {}
        self._seen: dict[float, np.ndarray] = {}  # what each has shown last
        self._cut: dict[float, bool] = {}

    def reset(self, state, random) -> None:
        """Begin an episode."""
        if state[0] == 0:
            state[0] = next(self._numbers)
            self._games[state[0]] = self._kind.start(self._learns)
        self._seen[state[0]] = self._games[state[0]].reset(below(random, _SEEDS))

    def step(self, state, action, random) -> tuple[float, bool]:
        """Make a move; the chance in it is the game's own."""
        number = state[0]
        self._seen[number], reward, ended, self._cut[number] = self._games[number].step(action)
        return reward, ended

    def observe(self, state, observation) -> None:
        """What the last move has shown."""
        observation[:] = self._seen[state[0]]

    def cuts(self, state) -> bool:
        """Whether the last move was the last one of an episode that would have gone on."""
        return self._cut[state[0]]

    def close(self) -> None:
        """Close all games."""
        for game in self._games.values():
            game.close()
