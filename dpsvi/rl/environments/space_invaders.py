"""Space Invaders (MinAtar): shoot aliens before they arrive.

Aliens march sideways, and a row down when they reach an edge.  The fewer there are, the sooner they
march.  The alien nearest to the cannon's column shoots every ten moves.  A shot alien has reward 1;
after the last one a new wave of 24 comes, which begins to march a move sooner, down to six.  An
episode ends when an alien or its bullet meets the cannon, or when aliens would leave at the bottom.

Actions: stay, left, right, shoot.  Channels: cannon, aliens, aliens that march to the left, to the
right, the cannon's bullets, the aliens' bullets.

References
----------
As in :mod:`dpsvi.rl.environments._cells`.
"""

from __future__ import annotations

import numpy as np

from dpsvi.kernels.jit import inline_kernel
from dpsvi.rl.environments import _cells
from dpsvi.rl.environments._cells import LIMIT, SIZE, clear, mark, mark_all  # noqa: F401

SHAPE = (SIZE, SIZE, 6)
N_ACTIONS = 4

# Places in the state.  Aliens and bullets are one bit a cell, counted along the rows; an integer
# holds five rows, since a float64 holds no more than 53 bits.
CANNON, RELOAD, MARCH, ALIEN_RELOAD, MARCH_EVERY, DIRECTION, N_ALIENS = range(7)
ALIENS, BULLETS, ALIEN_BULLETS = 7, 9, 11  # the upper half of the picture, then the lower
N_STATE = 13

_HALF = 5 * SIZE
_LAST_ROW = _HALF - SIZE  # the first bit of a half's last row
_FULL = (1 << _HALF) - 1
_ROW = (1 << SIZE) - 1
_LEFT_EDGE = sum(1 << SIZE * row for row in range(5))
_RIGHT_EDGE = _LEFT_EDGE << SIZE - 1
_WAVE = sum(0b0011111100 << SIZE * row for row in range(4))
_WAVE_SIZE = 24
_RELOADS, _ALIEN_RELOADS, _SLOWEST, _SOONEST = 5, 10, 12, 6
_COLOURS = ("#e8e8e8", "#80b918", None, None, "#ffd166", "#d1495b")


@inline_kernel
def _halves(state, place):
    """The bits of the upper and of the lower half of the picture."""
    return np.int64(state[place]), np.int64(state[place + 1])


@inline_kernel
def _put(state, place, upper, lower):
    state[place], state[place + 1] = upper, lower


@inline_kernel
def _down(upper, lower):
    """All one row down; the last row is the first then."""
    return (
        (upper << SIZE) & _FULL | lower >> _LAST_ROW,
        (lower << SIZE) & _FULL | upper >> _LAST_ROW,
    )


@inline_kernel
def _count(bits):
    n = 0
    while bits:
        bits &= bits - 1
        n += 1
    return n


@inline_kernel
def reset(state, random):
    """A wave above, the cannon below."""
    state[CANNON] = 5
    state[RELOAD] = 0
    state[MARCH] = state[MARCH_EVERY] = _SLOWEST
    state[ALIEN_RELOAD] = _ALIEN_RELOADS
    state[DIRECTION] = -1
    state[N_ALIENS] = _WAVE_SIZE
    _put(state, ALIENS, _WAVE, 0)
    _put(state, BULLETS, 0, 0)
    _put(state, ALIEN_BULLETS, 0, 0)


@inline_kernel
def _march(state):
    """Aliens go sideways, or down and then the other way; say whether they were at the bottom."""
    upper, lower = _halves(state, ALIENS)
    left = state[DIRECTION] < 0
    at_the_bottom = False
    if (upper | lower) & (_LEFT_EDGE if left else _RIGHT_EDGE):
        state[DIRECTION] = -state[DIRECTION]
        at_the_bottom = lower >> _LAST_ROW != 0
        upper, lower = _down(upper, lower)
    elif left:
        upper, lower = upper >> 1, lower >> 1
    else:
        upper, lower = upper << 1, lower << 1
    _put(state, ALIENS, upper, lower)
    return at_the_bottom


@inline_kernel
def _nearest(columns, x):
    """The column nearest to `x` whose bit is 1; of two as near, the one on the left."""
    for distance in range(SIZE):
        for column in (x - distance, x + distance):
            if column >= 0 and columns >> column & 1:
                return column
    return x


@inline_kernel
def _alien_shoots(state, cannon):
    """The lowest alien of the column nearest to the cannon."""
    upper, lower = _halves(state, ALIENS)
    rows = upper | lower
    column = _nearest((rows | rows >> 10 | rows >> 20 | rows >> 30 | rows >> 40) & _ROW, cannon)
    in_column = _LEFT_EDGE << column
    half = 1 if lower & in_column else 0
    aliens = (lower if half else upper) & in_column
    while aliens & (aliens - 1):
        aliens &= aliens - 1
    state[ALIEN_BULLETS + half] = np.int64(state[ALIEN_BULLETS + half]) | aliens


@inline_kernel
def _hit(state):
    """Aliens where bullets are, and these bullets, are no more; return how many."""
    n = 0
    for half in range(2):
        aliens, bullets = np.int64(state[ALIENS + half]), np.int64(state[BULLETS + half])
        both = aliens & bullets
        if both:
            state[ALIENS + half], state[BULLETS + half] = aliens ^ both, bullets ^ both
            n += _count(both)
    return n


@inline_kernel
def step(state, action, random):
    """The cannon acts, bullets fly, aliens march and shoot."""
    cannon = np.int64(state[CANNON])
    upper, lower = _halves(state, BULLETS)
    if action == 3 and state[RELOAD] == 0:
        lower |= 1 << _LAST_ROW + cannon
        state[RELOAD] = _RELOADS
    elif action == 1:
        cannon = max(0, cannon - 1)
    elif action == 2:
        cannon = min(9, cannon + 1)
    state[CANNON] = cannon
    _put(state, BULLETS, upper >> SIZE | (lower & _ROW) << _LAST_ROW, lower >> SIZE)

    upper, lower = _halves(state, ALIEN_BULLETS)
    upper, lower = (upper << SIZE) & _FULL, (lower << SIZE) & _FULL | upper >> _LAST_ROW
    _put(state, ALIEN_BULLETS, upper, lower)
    here = 1 << _LAST_ROW + cannon
    ended = (lower | np.int64(state[ALIENS + 1])) & here != 0

    if state[MARCH] == 0:
        state[MARCH] = min(state[N_ALIENS], state[MARCH_EVERY])
        ended |= _march(state)
        ended |= np.int64(state[ALIENS + 1]) & here != 0
    if state[ALIEN_RELOAD] == 0:
        state[ALIEN_RELOAD] = _ALIEN_RELOADS
        _alien_shoots(state, cannon)
    reward = _hit(state)
    state[N_ALIENS] -= reward

    state[RELOAD] = max(0.0, state[RELOAD] - 1)
    state[MARCH] -= 1
    state[ALIEN_RELOAD] -= 1
    if state[N_ALIENS] == 0:
        state[MARCH_EVERY] = max(np.float64(_SOONEST), state[MARCH_EVERY] - 1)
        state[N_ALIENS] = _WAVE_SIZE
        _put(state, ALIENS, _WAVE, 0)
    return np.float64(reward), ended


@inline_kernel
def observe(state, observation):
    """The cannon, aliens twice, once by direction, and bullets."""
    clear(observation)
    mark(observation, 6, 0, state[CANNON], 9)
    marching = 2 if state[DIRECTION] < 0 else 3
    for half in range(2):
        first = half * _HALF
        aliens = np.int64(state[ALIENS + half])
        mark_all(observation, 6, 1, first, aliens)
        mark_all(observation, 6, marching, first, aliens)
        mark_all(observation, 6, 4, first, np.int64(state[BULLETS + half]))
        mark_all(observation, 6, 5, first, np.int64(state[ALIEN_BULLETS + half]))


def draw(state) -> list[tuple]:
    """A coloured cell for each object."""
    return _cells.drawn(observe, state, _COLOURS)
