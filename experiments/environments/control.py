"""Classic control of ours and of gymnasium, move by move, each from the same state.

Half of the moves are those of random play from the peer's own starts, the other half begin at
random states in a box that is wider than what games reach, so that ends, walls and speed limits are
among them.
"""

from __future__ import annotations

import numpy as np

from dpsvi.rl import environments

PEERS = {"acrobot": "Acrobot-v1", "cartpole": "CartPole-v1", "mountain_car": "MountainCar-v0"}
LOW_AND_HIGH = {
    "acrobot": np.array([np.pi, np.pi, 4 * np.pi, 9 * np.pi]) * [[-1], [1]],
    "cartpole": np.array([2.5, 3.0, 0.25, 3.0]) * [[-1], [1]],
    "mountain_car": np.array([[-1.2, -0.07], [0.6, 0.07]]),
}
APART = 1e-6  # most of a number of a state
APART_SEEN = 4e-6  # of an observation, which is float32: speeds up to 28


def compare(name: str, moves: int, number: int = 0) -> dict:
    """Make so many moves of both.

    Returns
    -------
    dict
        ``moves``, ``episodes`` of random play, ``ends`` among all moves, and ``apart`` and
        ``apart_seen``, the largest differences of states and of observations.

    Raises
    ------
    AssertionError
        Rewards or ends differ, or a state by more than `APART`, an observation by more than
        `APART_SEEN`.
    """
    import gymnasium

    game, peer = environments.get(name), gymnasium.make(PEERS[name]).unwrapped
    rng, random = np.random.default_rng(number), np.zeros(1, np.uint64)
    state, observation = np.empty(game.N_STATE), np.empty(game.SHAPE, np.float32)
    limit = gymnasium.spec(PEERS[name]).max_episode_steps
    found = {"moves": moves, "episodes": 0, "ends": 0, "apart": 0.0, "apart_seen": 0.0}
    peer.reset(seed=number)
    going, length = np.array(peer.state, float), 0  # the episode
    actions = rng.integers(game.N_ACTIONS, size=moves).tolist()
    for move, action in enumerate(actions):
        plays = move % 2 == 0
        start = going if plays else rng.uniform(*LOW_AND_HIGH[name])
        state[:] = start
        peer.state, peer.steps_beyond_terminated = start.copy(), None
        reward, ended = game.step(state, action, random)
        seen, expected, terminated, _, _ = peer.step(action)
        game.observe(state, observation)
        where = f"{name}, seed {number}, move {move}, from {start.tolist()}"
        assert (reward, ended) == (expected, terminated), (
            f"{where}: {(reward, ended)}, gymnasium {(expected, terminated)}"
        )
        apart = np.abs(state - peer.state).max()
        apart_seen = np.abs(observation - seen).max()
        assert apart < APART and apart_seen < APART_SEEN, f"{where}: {state}, {peer.state}"
        found["apart"] = max(found["apart"], float(apart))
        found["apart_seen"] = max(found["apart_seen"], float(apart_seen))
        found["ends"] += bool(ended)
        if plays:
            going, length = np.array(peer.state, float), length + 1
            if ended or length == limit:
                peer.reset()
                going, length = np.array(peer.state, float), 0
                found["episodes"] += 1
    return found
