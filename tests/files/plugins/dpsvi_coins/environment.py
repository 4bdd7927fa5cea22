"""Guess the next toss of a coin that shows heads four times out of five."""

from dpsvi.kernels.jit import inline_kernel
from dpsvi.rl.generator import uniform

SHAPE, N_ACTIONS, N_STATE, LIMIT = (1,), 2, 1, 50


@inline_kernel
def reset(state, random):
    state[0] = uniform(random) < 0.8


@inline_kernel
def step(state, action, random):
    last = state[0]
    state[0] = uniform(random) < 0.8
    return 1.0 if state[0] == action else 0.0, state[0] == last == 0


@inline_kernel
def observe(state, observation):
    observation[0] = state[0]


def draw(state):
    return [("circle", 0.5, 0.5, 0.4, "#ffd166" if state[0] else "#888888")]
