"""What every environment has to pass, and one that a user writes in ten lines."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from numba.core.runtime import _nrt_python, rtsys

from dpsvi.kernels.jit import inline_kernel, kernel
from dpsvi.rl import environments
from dpsvi.rl.generator import below, seed

# --- an environment of one's own: walk from the middle of a corridor to its right end -------------


@inline_kernel
def reset(state, random):
    state[0] = 3 + below(random, 3)


@inline_kernel
def step(state, action, random):
    state[0] = max(0.0, state[0] + 2 * action - 1)
    return (1.0, True) if state[0] == 8 else (-0.01, False)


@inline_kernel
def observe(state, observation):
    for k in range(9):
        observation[k] = state[0] == k


def draw(state):
    return [("rect", state[0] / 9, 0.5, 1 / 9, 1 / 9, "#335577")]


CORRIDOR = SimpleNamespace(
    SHAPE=(9,), N_ACTIONS=2, N_STATE=1, LIMIT=100,
    reset=reset, step=step, observe=observe, draw=draw,
)  # fmt: skip

# -------------------------------------------------------------------------------------------------

ALL = [*environments.names(), "corridor"]


@pytest.fixture(params=ALL)
def game(request):
    return CORRIDOR if request.param == "corridor" else environments.get(request.param)


def stream(number):
    random = np.zeros(1, np.uint64)
    seed(random, number)
    return random


def episodes(game, number, moves):
    """States, observations, rewards and ends of random play, and the lengths of episodes."""
    random, actions = stream(number), stream(number + 1000)
    state = np.full(game.N_STATE, np.nan)
    observation = np.empty(int(np.prod(game.SHAPE)), np.float32)
    found, lengths, length = [], [], 0
    game.reset(state, random)
    for _ in range(moves):
        reward, ended = game.step(state, below(actions, game.N_ACTIONS), random)
        assert isinstance(reward, float) and isinstance(ended, bool)
        observation.fill(np.nan)
        game.observe(state, observation)
        found.append((state.copy(), observation.copy(), reward, ended))
        length += 1
        if ended or length == game.LIMIT:
            lengths.append(length)
            length = 0
            game.reset(state, random)
    return found, lengths


def test_the_names():
    assert environments.names() == [
        "acrobot", "asterix", "breakout", "cartpole", "freeway", "mountain_car", "seaquest",
        "space_invaders",
    ]  # fmt: skip
    with pytest.raises(ValueError, match="environment must be one of .*'cartpole'.*, got 'chess'"):
        environments.get("chess")


def test_constants(game):
    assert isinstance(game.SHAPE, tuple) and all(isinstance(n, int) and n > 0 for n in game.SHAPE)
    for number in (game.N_ACTIONS, game.N_STATE, game.LIMIT):
        assert isinstance(number, int) and number >= 0
    assert game.N_ACTIONS > 1 and game.N_STATE > 0


def test_random_episodes(game):
    """All that a move gives is finite, on a grid 0 or 1, and episodes end or are cut."""
    found, lengths = episodes(game, 1, 6000)
    states, observations, rewards, _ = map(np.array, zip(*found, strict=True))
    assert np.isfinite(observations).all() and np.isfinite(rewards).all()
    if len(game.SHAPE) == 3:
        assert np.isin(observations, (0, 1)).all()
        assert observations.any(axis=0).sum() > 20
    assert np.ptp(observations, axis=0).any()
    assert len(lengths) >= 2
    assert len(np.unique(states, axis=0)) > 5


def test_an_episode_begins_anew_each_time(game):
    """Whatever the state held before, all of it that counts is written."""
    observations = np.empty((2, int(np.prod(game.SHAPE))), np.float32)
    for number in range(20):
        randoms, states = [stream(number), stream(number)], np.empty((2, game.N_STATE))
        states[0], states[1] = np.nan, 3.0
        for state, random in zip(states, randoms, strict=True):
            game.reset(state, random)
        actions = stream(number + 1)
        for _ in range(200):
            for state, observation in zip(states, observations, strict=True):
                game.observe(state, observation)
            assert np.array_equal(*observations)
            action = below(actions, game.N_ACTIONS)
            moves = [game.step(s, action, r) for s, r in zip(states, randoms, strict=True)]
            assert moves[0] == moves[1] and randoms[0][0] == randoms[1][0]
            if moves[0][1]:
                break
    # No action ends an episode before it has begun.
    for number in range(20):
        for action in range(game.N_ACTIONS):
            game.reset(state, stream(number))
            assert not game.step(state, action, stream(0))[1]


def test_the_seed_makes_the_episode(game):
    (one, _), (two, _), (other, _) = (episodes(game, number, 300) for number in (5, 5, 6))

    def same(found):
        pairs = zip(one, found, strict=True)
        return all(np.array_equal(a[1], b[1]) and a[2:] == b[2:] for a, b in pairs)

    assert same(two) and not same(other)


def test_pictures_are_in_the_unit_square(game):
    found, _ = episodes(game, 2, 200)
    colour = re.compile("#[0-9a-f]{6}")
    pictures = [game.draw(state) for state, *_ in found]
    for picture in pictures:
        assert picture
        for kind, *numbers, last in picture:
            assert colour.fullmatch(last)
            assert len(numbers) == {"rect": 4, "line": 5, "circle": 3}[kind]
            x, y, *rest = numbers
            if kind == "rect":
                corners = [x, y, x + rest[0], y + rest[1]]
            elif kind == "line":
                corners = [x, y, *rest[:2]]
            else:
                corners = [x - rest[0], x + rest[0], y - rest[0], y + rest[0]]
            assert np.all((np.array(corners) >= 0) & (np.array(corners) <= 1 + 1e-9)), (kind, x, y)
            assert all(number > 0 for number in rest[2:])
    assert any(picture != pictures[0] for picture in pictures)


@kernel
def nothing(first, second):
    """A call from Python wraps each array, which counts as an allocation."""


def test_nothing_is_allocated(game):
    """A move makes no array: that would cost more than the move."""
    state, random = np.empty(game.N_STATE), stream(0)
    observation = np.empty(int(np.prod(game.SHAPE)), np.float32)

    before = []

    def allocations():
        """Since the last call of this."""
        before.append(rtsys.get_allocation_stats().mi_alloc)
        return before[-1] - before[-2]

    _nrt_python.memsys_enable_stats()
    try:
        before.append(rtsys.get_allocation_stats().mi_alloc)
        nothing(state, random)
        assert allocations() == 2
        game.reset(state, random)
        assert allocations() == 2
        for move in range(500):
            _, ended = game.step(state, move % game.N_ACTIONS, random)
            assert allocations() == 2
            if ended:
                game.reset(state, random)
                assert allocations() == 2
            game.observe(state, observation)
            assert allocations() == 2
    finally:
        _nrt_python.memsys_disable_stats()
