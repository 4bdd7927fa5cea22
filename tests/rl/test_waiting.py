"""The queue of GA3C: what comes out of it, and which parameters choose the moves."""

from types import SimpleNamespace

import numpy as np
import pytest

from dpsvi.rl import ActorCritic, problem, waiting
from dpsvi.training.state import State
from dpsvi.training.task import make_works


def test_a_step_comes_out_as_it_went_in(rng):
    n_inputs, n_games, n_moves = 3, 2, 4
    lengths = [n_games * n_moves * k for k in (n_inputs, 1, 1, 1)] + [n_games * n_inputs]
    place = np.zeros(waiting.numbers(n_inputs, n_games, n_moves))
    assert len(place) == sum(lengths)
    steps = [[rng.normal(size=n).astype(np.float32) for n in lengths] for _ in range(3)]
    before = [np.zeros(n) for n in lengths]
    for step in steps:
        arrays = [array.copy() for array in step]
        waiting.exchange(place, *arrays)
        for found, expected in zip(arrays, before, strict=True):
            np.testing.assert_array_equal(found, expected)
        before = step


@pytest.mark.parametrize("algorithm, expected", [("ga3c", [0, 1, 1, 1]), ("pa3c", [0, 0, 0, 0])])
def test_with_a_queue_the_newest_parameters_choose_each_move(algorithm, expected):
    """The first move changes the parameters, as another thread would, so that 1 is chosen."""
    agent = ActorCritic(algorithm=algorithm, hidden=(), n_games=1, n_moves=4)
    actions = []

    def step(state, action, random):
        actions.append(action)
        biases[:] = [0, 50, 0]
        return 0.0, False

    def nothing(*args):
        return False

    game = SimpleNamespace(
        SHAPE=(1,), N_ACTIONS=2, N_STATE=1, LIMIT=0, reset=nothing, step=step, observe=nothing,
        cuts=nothing,
    )  # fmt: skip
    network = agent._network()._replace(shape=(1,))
    model = problem.model(game, network, agent._settings(), 0)
    theta = np.array([0, 0, 0, 50, 0, 0], np.float32)  # weights, and what 0, 1 and the value add
    state = State.resume(model, problem.to_rows(theta, model.shape), 1)
    biases = state.shared.rows.reshape(-1)[3:6]
    items = problem.steps(1)
    (work,) = make_works(model, items, 1, 1)
    model.local(state.shared, 1.0, model.hyper, items, np.zeros(1, np.int32), work)
    assert actions == expected
