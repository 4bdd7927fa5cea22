"""Breakout (MinAtar): a paddle keeps a ball in play that breaks bricks.

The ball goes along diagonals, one cell a move, and is thrown back by walls, bricks and the paddle:
in mirror image if it was above the paddle, to where it came from if it arrives beside that.  A
brick has reward 1; after it the ball flies through bricks until it is out of them.  When all
thirty are gone, new ones come as the ball reaches the bottom row.  An episode ends when the
paddle misses the ball.

Actions: stay, left, right.  Channels: paddle, ball, where the ball was, bricks.

References
----------
As in :mod:`dpsvi.rl.environments._cells`.
"""

from __future__ import annotations

import numpy as np

from dpsvi.kernels.jit import inline_kernel
from dpsvi.rl.environments import _cells
from dpsvi.rl.environments._cells import LIMIT, SIZE, clear, mark, mark_all  # noqa: F401
from dpsvi.rl.generator import below

SHAPE = (SIZE, SIZE, 4)
N_ACTIONS = 3

# Places in the state.  DX and DY: where the ball goes, -1 or 1.  BRICKS: one bit each, three rows.
PADDLE, X, Y, DX, DY, LAST_X, LAST_Y, BRICKS, IN_BRICKS = range(9)
N_STATE = 9

_ALL_BRICKS = (1 << 3 * SIZE) - 1
_COLOURS = ("#e8e8e8", "#ffd166", "#7a6a3a", "#c8553d")


@inline_kernel
def reset(state, random):
    """The ball comes from one of the upper corners."""
    right = below(random, 2)
    state[PADDLE] = 4
    state[X] = state[LAST_X] = 9 * right
    state[Y] = state[LAST_Y] = 3
    state[DX] = 1 - 2 * right
    state[DY] = 1
    state[BRICKS] = _ALL_BRICKS
    state[IN_BRICKS] = 0


@inline_kernel
def step(state, action, random):
    """Move the paddle, then the ball."""
    paddle = state[PADDLE]
    if action == 1:
        paddle = max(0.0, paddle - 1)
    elif action == 2:
        paddle = min(9.0, paddle + 1)
    state[PADDLE] = paddle
    x, y = state[X], state[Y]
    state[LAST_X], state[LAST_Y] = x, y
    new_x, new_y = x + state[DX], y + state[DY]
    if new_x < 0 or new_x > 9:
        new_x = x
        state[DX] = -state[DX]
    reward, ended, in_bricks = 0.0, False, 0.0
    if new_y < 0:
        new_y = 0.0
        state[DY] = 1
    elif new_y <= 3 and new_y >= 1:
        bricks = np.int64(state[BRICKS])
        brick = 1 << (SIZE * (np.int64(new_y) - 1) + np.int64(new_x))
        if bricks & brick:
            in_bricks = 1.0
            if state[IN_BRICKS] == 0:
                reward = 1.0
                state[BRICKS] = bricks ^ brick
                new_y = y
                state[DY] = -state[DY]
    elif new_y == 9:
        if state[BRICKS] == 0:
            state[BRICKS] = _ALL_BRICKS
        if x == paddle or new_x == paddle:
            if x != paddle:
                state[DX] = -state[DX]
            state[DY] = -1
            new_y = y
        else:
            ended = True
    state[IN_BRICKS] = in_bricks
    state[X], state[Y] = new_x, new_y
    return reward, ended


@inline_kernel
def observe(state, observation):
    """Paddle, ball, its last cell, bricks."""
    clear(observation)
    mark(observation, 4, 0, state[PADDLE], 9)
    mark(observation, 4, 1, state[X], state[Y])
    mark(observation, 4, 2, state[LAST_X], state[LAST_Y])
    mark_all(observation, 4, 3, SIZE, np.int64(state[BRICKS]))


def draw(state) -> list[tuple]:
    """A coloured cell for each object."""
    return _cells.drawn(observe, state, _COLOURS)
