"""Classic control against gymnasium: single moves from random states."""

import gymnasium
import numpy as np
import pytest

from dpsvi.rl import environments
from experiments.environments import control
from experiments.environments.control import PEERS

MOVES = 20_000
RANDOM = np.zeros(1, np.uint64)


@pytest.fixture(params=PEERS)
def name(request):
    return request.param


def test_a_move_is_the_peers(name):
    found = control.compare(name, MOVES)
    assert found["episodes"] >= 10
    assert 100 < found["ends"] < MOVES - 100


def test_whole_episodes_are_the_peers(name, rng):
    game, peer = environments.get(name), gymnasium.make(PEERS[name]).unwrapped
    state = np.empty(game.N_STATE)
    for _ in range(5):
        peer.reset(seed=int(rng.integers(1000)))
        state[:] = peer.state
        for _ in range(100):
            action = int(rng.integers(game.N_ACTIONS))
            _, ended = game.step(state, action, RANDOM)
            terminated = peer.step(action)[2]
            assert ended == terminated
            assert np.allclose(state, peer.state, rtol=0, atol=1e-6)
            if ended:
                break


def test_starts_and_limits_are_the_peers(name):
    game, peer = environments.get(name), gymnasium.make(PEERS[name])
    assert peer.spec.max_episode_steps == game.LIMIT
    assert peer.action_space.n == game.N_ACTIONS
    assert peer.observation_space.shape == game.SHAPE
    ours, theirs = np.empty((2, 2000, game.N_STATE))
    random = np.zeros(1, np.uint64)
    for k in range(2000):
        game.reset(ours[k], random)
        peer.reset(seed=k)
        theirs[k] = peer.unwrapped.state
    width = np.ptp(theirs, axis=0)
    for edge in (np.min, np.max, np.mean):
        assert np.all(np.abs(edge(ours, axis=0) - edge(theirs, axis=0)) <= 0.05 * width + 1e-12)
