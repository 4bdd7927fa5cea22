"""Classic control against gymnasium: single moves from random states."""

import gymnasium
import numpy as np
import pytest

from dpsvi.rl import environments

MOVES = 20_000
PEERS = {"acrobot": "Acrobot-v1", "cartpole": "CartPole-v1", "mountain_car": "MountainCar-v0"}
# Beyond what games reach, so that ends, walls and speed limits are among the moves.
LOW_AND_HIGH = {
    "acrobot": np.array([np.pi, np.pi, 4 * np.pi, 9 * np.pi]) * [[-1], [1]],
    "cartpole": np.array([2.5, 3.0, 0.25, 3.0]) * [[-1], [1]],
    "mountain_car": np.array([[-1.2, -0.07], [0.6, 0.07]]),
}
RANDOM = np.zeros(1, np.uint64)


@pytest.fixture(params=PEERS)
def name(request):
    return request.param


def test_a_move_is_the_peers(name, rng):
    game, peer = environments.get(name), gymnasium.make(PEERS[name]).unwrapped
    peer.reset()
    state, observation = np.empty(game.N_STATE), np.empty(game.SHAPE, np.float32)
    ours, theirs, ends = [], [], 0
    actions = rng.integers(game.N_ACTIONS, size=MOVES).tolist()
    starts = rng.uniform(*LOW_AND_HIGH[name], (MOVES, game.N_STATE))
    for start, action in zip(starts, actions, strict=True):
        state[:] = start
        peer.state, peer.steps_beyond_terminated = start.copy(), None
        reward, ended = game.step(state, action, RANDOM)
        expected, expected_reward, terminated, _, _ = peer.step(action)
        assert (reward, ended) == (expected_reward, terminated)
        game.observe(state, observation)
        ours.append([*state, *observation])
        theirs.append([*peer.state, *expected])
        ends += ended
    difference = np.abs(np.array(ours) - np.array(theirs))
    assert difference[:, : game.N_STATE].max() < 1e-6
    assert difference[:, game.N_STATE :].max() < 4e-6  # float32: speeds up to 28
    assert 100 < ends < MOVES - 100


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
