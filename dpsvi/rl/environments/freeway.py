"""Freeway (MinAtar): cross eight lanes of cars, again and again.

A chicken goes up or down in column 4, one cell in three moves.  Reaching the top has reward 1: the
chicken is at the bottom again, and speeds and directions of all cars are drawn anew.  A car that
meets it sends it to the bottom.  Cars that leave on one side come back on the other.  An episode
ends after 2,501 moves.

Actions: stay, up, down.  Channels: chicken, cars, and behind each car one of five that tells how
many moves it pauses after each of its own, 1 to 5.

References
----------
As in :mod:`dpsvi.rl.environments._cells`.
"""

from __future__ import annotations

from dpsvi.kernels.jit import inline_kernel
from dpsvi.rl.environments import _cells
from dpsvi.rl.environments._cells import SIZE, clear, mark
from dpsvi.rl.generator import below, uniform

SHAPE = (SIZE, SIZE, 7)
N_ACTIONS = 3
LIMIT = 0

# Places in the state: the chicken, moves until it can move and until the end; then the cars in the
# order of their lanes, rows 1 to 8.
Y, REST, LEFT = range(3)
N_CARS = 8
COLUMN, WAIT, PAUSE, DIRECTION = 3, 3 + N_CARS, 3 + 2 * N_CARS, 3 + 3 * N_CARS
N_STATE = 3 + 4 * N_CARS

_CHICKEN_X = 4
_CHICKEN_RESTS, _MOVES = 3, 2500
_COLOURS = ("#ffd166", "#d1495b", "#6c757d", "#616a72", "#565e66", "#4b5259", "#40464c")


@inline_kernel
def _draw_speeds(state, random):
    for car in range(N_CARS):
        state[PAUSE + car] = state[WAIT + car] = 1 + below(random, 5)
    for car in range(N_CARS):
        state[DIRECTION + car] = 1 if uniform(random) >= 0.5 else -1


@inline_kernel
def reset(state, random):
    """The chicken at the bottom, all cars on the left."""
    _draw_speeds(state, random)
    for car in range(N_CARS):
        state[COLUMN + car] = 0
    state[Y] = 9
    state[REST] = _CHICKEN_RESTS
    state[LEFT] = _MOVES


@inline_kernel
def step(state, action, random):
    """Move the chicken, then the cars."""
    y, reward = state[Y], 0.0
    if action != 0 and state[REST] == 0:
        state[REST] = _CHICKEN_RESTS
        y = max(0.0, y - 1) if action == 1 else min(9.0, y + 1)
    if y == 0:
        reward = 1.0
        _draw_speeds(state, random)
        y = 9.0
    for car in range(N_CARS):
        lane = car + 1
        if state[COLUMN + car] == _CHICKEN_X and y == lane:
            y = 9.0
        if state[WAIT + car] == 0:
            state[WAIT + car] = state[PAUSE + car]
            column = state[COLUMN + car] + state[DIRECTION + car]
            state[COLUMN + car] = column = 9.0 if column < 0 else 0.0 if column > 9 else column
            if column == _CHICKEN_X and y == lane:
                y = 9.0
        else:
            state[WAIT + car] -= 1
    state[Y] = y
    state[REST] = max(0.0, state[REST] - 1)
    state[LEFT] -= 1
    return reward, state[LEFT] < 0


@inline_kernel
def observe(state, observation):
    """The chicken, and each car with the cell that it came from."""
    clear(observation)
    mark(observation, 7, 0, _CHICKEN_X, state[Y])
    for car in range(N_CARS):
        column = state[COLUMN + car]
        behind = column - state[DIRECTION + car]
        behind = 9.0 if behind < 0 else 0.0 if behind > 9 else behind
        mark(observation, 7, 1, column, car + 1)
        mark(observation, 7, 1 + int(state[PAUSE + car]), behind, car + 1)


def draw(state) -> list[tuple]:
    """A coloured cell for each object."""
    return _cells.drawn(observe, state, _COLOURS)
