"""Games of Atari: what is seen of a screen, lives, rewards, and a short fit."""

import sys

import numpy as np
import pytest

from dpsvi.rl import ActorCritic, environments
from dpsvi.rl.environments._atari import MOST_IDLE, SIDE, STACK, see

SMALL = dict(
    hidden=(16,), convolution=((4, 8, 4), (8, 4, 2)), n_games=2, n_moves=5, n_evaluations=1,
    n_episodes=1, random_state=3,
)  # fmt: skip


def shares(n):
    """Share of each of n cells in each of SIDE areas, (SIDE, n)."""
    edges = np.arange(SIDE + 1) * n / SIDE
    low, high = np.arange(n), np.arange(n) + 1
    overlap = np.minimum(high, edges[1:, None]) - np.maximum(low, edges[:-1, None])
    return np.maximum(overlap, 0) * SIDE / n


@pytest.mark.parametrize("height, width", [(210, 160), (84, 84), (168, 252), (250, 160)])
def test_a_picture_is_the_mean_over_areas_of_the_brighter_frame(height, width, rng):
    seen, line = np.zeros((SIDE, SIDE, STACK), np.float32), np.zeros(width, np.float32)
    wanted = []
    for _ in range(STACK + 2):
        frame = rng.integers(0, 256, (2, height, width)).astype(np.uint8)
        see(frame, line, seen)
        picture = shares(height) @ frame.max(axis=0) @ shares(width).T / 255
        wanted.append(picture - picture.mean())
    np.testing.assert_allclose(seen, np.stack(wanted[-STACK:], axis=-1), atol=1e-5)


def start(name, learns):
    pytest.importorskip("ale_py")
    return environments.get(f"atari:{name}").start(learns)


def played(game, moves, seed=0):
    """Rewards, and whether each move ended an episode; ends are followed by `reset`."""
    rng = np.random.default_rng(seed)
    game.reset(seed)
    rewards, ends = [], []
    for _ in range(moves):
        seen, reward, ended, cut = game.step(int(rng.integers(len(game._actions))))
        assert seen.shape == (SIDE * SIDE * STACK,) and -1 < seen.min() <= seen.max() < 1
        np.testing.assert_allclose(seen.reshape(-1, STACK).mean(axis=0), 0, atol=1e-4)
        assert not cut
        rewards.append(reward)
        ends.append(ended)
        if ended:
            game.reset(seed)
    return np.array(rewards), np.array(ends)


def test_a_lost_life_ends_an_episode_of_one_who_learns():
    rewards, ends = played(start("space_invaders", True), 600)
    assert set(rewards) == {0.0, 1.0}
    whole, scored_ends = played(start("space_invaders", False), 600)
    assert whole.max() > 1 and (whole > 0).any()
    first = np.flatnonzero(scored_ends)[0]
    np.testing.assert_array_equal(rewards[: first + 1], np.sign(whole[: first + 1]))
    assert ends[: first + 1].sum() == 3, "the game goes on with the two lives that are left"
    assert ends[first]


def test_the_seed_says_how_long_nothing_is_done():
    game = start("pong", False)
    for seed in (0, 12, MOST_IDLE, MOST_IDLE + 13):
        game.reset(seed)
        assert game._ale.getEpisodeFrameNumber() == seed % (MOST_IDLE + 1)


def test_pong_is_fitted_saved_and_played(tmp_path):
    pytest.importorskip("ale_py")
    agent = ActorCritic("atari:pong", **SMALL).fit(300)
    assert agent._network().shape == (84, 84, 4) and agent._network().n_actions == 6
    first = agent._network().start(np.random.default_rng(0))
    assert np.isfinite(agent.parameters_).all() and agent.parameters_.shape == first.shape
    again = ActorCritic("atari:pong", **SMALL).fit(300)
    np.testing.assert_array_equal(again.parameters_, agent.parameters_)
    agent.save(tmp_path)
    loaded = ActorCritic.load(tmp_path)
    assert loaded.convolution == SMALL["convolution"]
    score = loaded.evaluate(1)
    assert -21 <= score[0] <= 21 and score == agent.evaluate(1)
    with pytest.raises(ValueError, match="states can be seen, got 'atari:pong'"):
        agent.watch()


def test_the_network_is_the_papers_unless_one_is_given():
    pytest.importorskip("ale_py")
    assert ActorCritic("atari:pong")._network().n_parameters == 677_943
    other = ActorCritic("atari:pong", hidden=(8,), convolution=())._network()
    assert other.hidden == (8,) and other.convolutions == ()


def test_a_game_that_there_is_not_is_refused():
    pytest.importorskip("ale_py")
    with pytest.raises(ValueError, match=r"NAME must be one of \[.*'pong'.*\], got 'chess'"):
        ActorCritic("atari:chess").fit(100)


def test_without_ale_py_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ale_py", None)
    with pytest.raises(ImportError, match=r"pip install 'dpsvi\[atari\]'"):
        environments.get("atari:not_asked_before")
