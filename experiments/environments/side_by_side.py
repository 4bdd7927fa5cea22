"""MinAtar games of ours and of ``minatar``, move by move, given the same random numbers.

The reference draws from a stream of :mod:`dpsvi.rl.generator` of its own, by an object that
stands for its numpy generator; both streams begin with the same seed, and after every move they
must be at the same place: what ours draws and in which order is compared, too.

Random actions end most games soon.  So some actions are those of a player that looks ahead: it
copies the state of our game and tries each action with random ones after it.
"""

from __future__ import annotations

from functools import cache

import numba
import numpy as np

from dpsvi.kernels.jit import FLAGS
from dpsvi.rl import environments
from dpsvi.rl.generator import below, seed, uniform

GAMES = ("asterix", "breakout", "freeway", "seaquest", "space_invaders")
MOVES = 20_000  # of each comparison in the tests
STICKY = (0.0, 0.1)


def stream(number: int):
    """A stream of random numbers that begins with a seed."""
    random = np.zeros(1, np.uint64)
    seed(random, number)
    return random


class Draws:
    """What minatar's games call of ``numpy.random.RandomState``, on a stream of ours."""

    def __init__(self, random):
        self._random = random

    def rand(self, size=None):
        """One uniform number, or an array of them."""
        if size is None:
            return uniform(self._random)
        return np.array([uniform(self._random) for _ in range(size)])

    def randint(self, low, high=None, size=None):
        """One integer, or an array of them, from `low` to ``high - 1``; from 0 without `high`."""
        low, high = (0, low) if high is None else (low, high)
        if size is None:
            return low + below(self._random, high - low)
        return np.array([low + below(self._random, high - low) for _ in range(size)])


class Ours:
    """A game of ours, one move at a time, with sticky actions as minatar has them."""

    def __init__(self, name, random, sticky):
        self.game = environments.get(name)
        self.state = np.full(self.game.N_STATE, np.nan)
        self.observation = np.empty(int(np.prod(self.game.SHAPE)), np.float32)
        self._random, self._sticky, self._last = random, sticky, 0
        self.game.reset(self.state, random)

    def act(self, action):
        """Reward and whether the episode is over."""
        if uniform(self._random) < self._sticky:
            action = self._last
        self._last = action
        return self.game.step(self.state, action, self._random)

    def observe(self):
        """The observation, as an array of bool."""
        self.observation.fill(np.nan)
        self.game.observe(self.state, self.observation)
        return self.observation.reshape(self.game.SHAPE)


@cache
def looking_ahead(name, tries=3, moves=15):
    """Compile a player of a game: of all actions, the best over `tries` runs of some moves.

    These go on with random actions, each held for a few moves.
    """
    game = environments.get(name)
    step, n_actions, n_state = game.step, game.N_ACTIONS, game.N_STATE

    @numba.njit(**{**FLAGS, "cache": False})
    def choose(state, random):
        copy = np.empty(n_state)
        best, best_value = 0, -1e9
        for action in range(n_actions):
            value = 0.01 * uniform(random)
            for _ in range(tries):
                copy[:] = state
                held, ended = action, False
                for _ in range(moves):
                    if not ended:
                        reward, ended = step(copy, held, random)
                        value += reward
                        held = below(random, n_actions) if below(random, 4) == 0 else held
                value -= 2.0 * ended
            if value > best_value:
                best, best_value = action, value
        return best

    return choose


def compare(name: str, moves: int, sticky: float, number: int = 0) -> dict:
    """Play a game of ours and minatar's for some moves.

    Returns
    -------
    dict
        ``moves``, ``episodes``, ``rewards`` (their sum), ``longest`` (moves of an episode),
        ``levels``, the highest level of difficulty.

    Raises
    ------
    AssertionError
        Observation, reward, end or the place in the stream differ.
    """
    from minatar.environment import Environment

    drawn, players = stream(number), stream(number + 1)
    ours = Ours(name, stream(number), sticky)
    theirs = Environment(name, sticky_action_prob=sticky)
    theirs.random = theirs.env.random = Draws(drawn)
    theirs.reset()
    actions = theirs.minimal_action_set()
    assert len(actions) == ours.game.N_ACTIONS
    choose = looking_ahead(name)
    found = {"moves": moves, "episodes": 0, "rewards": 0.0, "longest": 0, "levels": 0}
    length, careful = 0, True
    for move in range(moves):
        action = choose(ours.state, players) if careful else below(players, len(actions))
        reward, ended = ours.act(action)
        expected = theirs.act(actions[action])
        where = f"{name}, sticky actions {sticky}, seed {number}, move {move}"
        assert (reward, ended) == expected, f"{where}: {(reward, ended)}, minatar {expected}"
        assert np.array_equal(ours.observe(), theirs.state()), f"{where}: observations differ"
        assert ours._random[0] == drawn[0], f"{where}: random numbers differ"
        length += 1
        found["rewards"] += reward
        found["longest"] = max(found["longest"], length)
        found["levels"] = max(found["levels"], theirs.env.difficulty_ramp() or 0)
        if ended or length == ours.game.LIMIT:
            ours.game.reset(ours.state, ours._random)
            theirs.reset()
            found["episodes"] += 1
            length, careful = 0, uniform(players) < 0.8
    return found
