"""Whole episodes with a policy that does not change: evaluations and replays."""

from __future__ import annotations

import numpy as np

from dpsvi.kernels.jit import copy
from dpsvi.rl import generator
from dpsvi.rl.environments import name_of, opened
from dpsvi.rl.layers import forward, sizes
from dpsvi.rl.objectives import best, choose
from dpsvi.rl.play import LIMIT, N_STATE, NETWORK, OBJECTIVE, STICKY, sticks
from dpsvi.rl.templates import as_fast, cuts, observe, reset, step

ENDLESS = 1_000_000  # moves: where no LIMIT cuts an episode, it must have ended before
LIMITED_BY = "LIMIT (of gymnasium's: max_episode_steps)"
_MOST = 5000  # moves of a replay


def episodes(theta, hyper, random, greedy, returns, lengths, states):
    """Template: play whole episodes with a fixed policy.

    Parameters
    ----------
    theta : float32 array
    hyper : float64 array
    random : uint64, (1,)
        The generator.
    greedy : bool
        Take the action with the largest output instead of drawing one.
    returns, lengths : float64, (n_episodes,)
        Result: sums of rewards, and moves.
    states : float64, (n, state)
        Result: the states of the first episode, as far as there is room.
    """
    net, objective = hyper[NETWORK:], int(hyper[OBJECTIVE])
    inputs, n_actions, units, _ = sizes(net)
    x, hidden = np.empty(inputs, theta.dtype), np.empty(units, theta.dtype)
    out, state = np.empty(n_actions + 1, theta.dtype), np.zeros(int(hyper[N_STATE]))
    for number in range(returns.shape[0]):
        reset(state, random)
        total, age, last, over = 0.0, 0, 0, False
        while not over:
            if number == 0 and age < states.shape[0]:
                copy(state, states[age])
            observe(state, x)
            forward(theta, net, x, hidden, out, 1, 0, 1)
            if greedy:
                action = best(out, 0, n_actions)
            else:
                action = choose(objective, out, 0, n_actions, number, random)
            if sticks(hyper[STICKY], random) and age > 0:
                action = last
            last = action
            reward, over = step(state, action, random)
            total += reward
            age += 1
            over = over or cuts(state) or age >= (hyper[LIMIT] if hyper[LIMIT] > 0 else ENDLESS)
        returns[number], lengths[number] = total, age


def play_episodes(
    environment, theta: np.ndarray, hyper: np.ndarray, n_episodes: int, greedy: bool, seed: int,
    record: bool = False,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Returns of so many episodes, and the states of the first if they are to be recorded.

    Parameters
    ----------
    environment : module or object
        As :mod:`dpsvi.rl.environments` describes it.
    theta : float32 array
        Parameters of the network.
    hyper : float64 array
        As :func:`dpsvi.rl.problem.hyper` makes it.
    n_episodes : int
    greedy : bool
        Take the likeliest action instead of drawing one.
    seed : int

    Returns
    -------
    returns : float64, (n_episodes,)
    states : float64, (n, N_STATE)

    Raises
    ------
    ValueError
        An episode does not end.
    """
    random = np.zeros(1, np.uint64)
    generator.seed(random, seed)
    returns, lengths = np.zeros(n_episodes), np.zeros(n_episodes)
    states = np.zeros((_MOST if record else 0, environment.N_STATE))
    with opened(environment) as playing:
        as_fast(episodes, playing)(theta, hyper, random, greedy, returns, lengths, states)
    if environment.LIMIT == 0 and lengths.max() >= ENDLESS:
        raise ValueError(
            f"an episode of environment {name_of(environment)} did not end in {ENDLESS:,} moves: "
            f"{LIMITED_BY} must say when it is cut"
        )
    return returns, states[: int(lengths[0])]
