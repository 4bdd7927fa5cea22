"""Seaquest (MinAtar): a submarine shoots, saves divers and comes up for air.

Fish and submarines cross the rows 1 to 8, either way but in one row only one way; divers do, too.
Submarines shoot.  A fish or submarine that the player shoots has reward 1.  Touching a diver takes
it on board, up to six.  Oxygen lasts for 200 moves under water.  Coming up fills it and costs a
diver, and whatever comes up after that is more frequent and, every other time, faster; with six
divers it costs all and has a reward of 0 to 10, the oxygen that was left.  An episode ends when
something hits the player, the oxygen is gone, or the player comes up with no diver.

Coming up with six divers takes away one more than there are, in MinAtar and so here: the player
then owes one, and may come up with a debt.

Actions: stay, left, up, right, down, shoot.  Channels: the player's front and back, its bullets,
where things were, their bullets, fish, submarines, oxygen and divers on board (both in the last
row), divers.

References
----------
As in :mod:`dpsvi.rl.environments._cells`.
"""

from __future__ import annotations

import numpy as np

from dpsvi.kernels.jit import inline_kernel
from dpsvi.rl.environments import _cells
from dpsvi.rl.environments._cells import LIMIT, SIZE, clear, mark  # noqa: F401
from dpsvi.rl.generator import below, uniform

SHAPE = (SIZE, SIZE, 10)
N_ACTIONS = 6

# Places in the state.  SHIFT_EVERY: moves between two of a fish or submarine; SURFACED: whether
# the player has been at the top since the last move.
(X, Y, FACING, RELOAD, OXYGEN, ON_BOARD, SURFACED, LEVEL,
 ENEMY, ENEMY_EVERY, SHIFT_EVERY, DIVER) = range(12)  # fmt: skip

# Then lists of things, in the order of their age: first how many there are, then for each its
# column, its row, its direction, moves until it moves and moves until it shoots.
COLUMN, ROW, DIRECTION, SHIFT, SHOT, WIDTH = range(6)
# At most 31 fish and submarines are there at once: a crossing takes 30 moves when one enters with
# every move.  Those of ten moves, 41, have at most one bullet each.  The player shoots every five
# moves, and a bullet is gone after ten; divers enter every 30 moves and are gone after 60.
FISH = 12
SUBS = FISH + 1 + 32 * WIDTH
DIVERS = SUBS + 1 + 32 * WIDTH
BULLETS = DIVERS + 1 + 4 * WIDTH
ENEMY_BULLETS = BULLETS + 1 + 4 * WIDTH
N_STATE = ENEMY_BULLETS + 1 + 44 * WIDTH
_LISTS = (FISH, SUBS, DIVERS, BULLETS, ENEMY_BULLETS)

_OXYGEN, _SEATS, _RELOADS, _SHOT_EVERY, _DIVER_EVERY, _DIVER_SHIFT = 200, 6, 5, 10, 30, 5.0
_COLOURS = (
    "#e8e8e8", "#9aa5ad", "#ffd166", "#34505e", "#ff7f51", "#d1495b", "#a23b72", "#4ea8de",
    "#80b918", "#80b918",
)  # fmt: skip


@inline_kernel
def reset(state, random):
    """The player in the middle of the top, alone."""
    state[X], state[Y], state[FACING] = 5, 0, -1
    state[RELOAD] = state[ON_BOARD] = state[LEVEL] = 0
    state[OXYGEN] = _OXYGEN
    state[SURFACED] = 1
    state[ENEMY] = state[ENEMY_EVERY] = 20
    state[SHIFT_EVERY] = 5
    state[DIVER] = _DIVER_EVERY
    for things in _LISTS:
        state[things] = 0


@inline_kernel
def _last(state, things):
    """Place after that of the last thing."""
    return things + 1 + np.int64(state[things]) * WIDTH


@inline_kernel
def _add(state, things, column, row, direction, shift):
    """One more thing, the last."""
    at = _last(state, things)
    state[at + COLUMN], state[at + ROW], state[at + DIRECTION] = column, row, direction
    state[at + SHIFT], state[at + SHOT] = shift, _SHOT_EVERY
    state[things] += 1


@inline_kernel
def _remove(state, things, at):
    """The thing at place `at` is no more; younger ones move up."""
    for k in range(at, _last(state, things) - WIDTH):
        state[k] = state[k + WIDTH]
    state[things] -= 1


@inline_kernel
def _find(state, things, column, row):
    """Place of the oldest thing in a cell, 0 if there is none."""
    for at in range(things + 1, _last(state, things), WIDTH):
        if state[at + COLUMN] == column and state[at + ROW] == row:
            return at
    return 0


@inline_kernel
def _strike(state, things, column, row):
    """The oldest thing in a cell is no more; return whether there was one."""
    at = _find(state, things, column, row)
    if at:
        _remove(state, things, at)
    return at != 0


@inline_kernel
def _at_player(state, at):
    return state[at + COLUMN] == state[X] and state[at + ROW] == state[Y]


@inline_kernel
def _shift(state, at):
    """Move a thing by one cell; return whether it is still in the picture."""
    state[at + COLUMN] += state[at + DIRECTION]
    return state[at + COLUMN] >= 0 and state[at + COLUMN] < SIZE


@inline_kernel
def _opposed(state, things, row, direction):
    """Whether something in the row goes the other way."""
    for at in range(things + 1, _last(state, things), WIDTH):
        if state[at + ROW] == row and state[at + DIRECTION] != direction:
            return True
    return False


@inline_kernel
def _enter(state, random):
    """Fish, submarines and divers enter when it is time."""
    if state[ENEMY] == 0:
        direction = 1.0 if uniform(random) < 1 / 2 else -1.0
        things = SUBS if uniform(random) < 1 / 3 else FISH
        row = 1.0 + below(random, 8)
        if not (_opposed(state, SUBS, row, direction) or _opposed(state, FISH, row, direction)):
            _add(state, things, 4.5 - 4.5 * direction, row, direction, state[SHIFT_EVERY])
        state[ENEMY] = state[ENEMY_EVERY]
    if state[DIVER] == 0:
        direction = 1.0 if uniform(random) < 1 / 2 else -1.0
        row = 1.0 + below(random, 8)
        _add(state, DIVERS, 4.5 - 4.5 * direction, row, direction, _DIVER_SHIFT)
        state[DIVER] = _DIVER_EVERY


@inline_kernel
def _act(state, action):
    if action == 1:
        state[X], state[FACING] = max(0.0, state[X] - 1), -1
    elif action == 2:
        state[Y] = max(0.0, state[Y] - 1)
    elif action == 3:
        state[X], state[FACING] = min(9.0, state[X] + 1), 1
    elif action == 4:
        state[Y] = min(8.0, state[Y] + 1)
    elif action == 5 and state[RELOAD] == 0:
        _add(state, BULLETS, state[X], state[Y], state[FACING], 0.0)
        state[RELOAD] = _RELOADS


@inline_kernel
def _bullets_fly(state):
    """The player's bullets move, from the youngest on; return how many hit."""
    n = 0
    for at in range(_last(state, BULLETS) - WIDTH, BULLETS, -WIDTH):
        if not _shift(state, at):
            _remove(state, BULLETS, at)
            continue
        column, row = state[at + COLUMN], state[at + ROW]
        if _strike(state, FISH, column, row) or _strike(state, SUBS, column, row):
            _remove(state, BULLETS, at)
            n += 1
    return n


@inline_kernel
def _divers_swim(state):
    """Divers come on board where the player is, or else move if it is time."""
    for at in range(_last(state, DIVERS) - WIDTH, DIVERS, -WIDTH):
        free = state[ON_BOARD] < _SEATS
        saved = free and _at_player(state, at)
        gone = False
        if not saved:
            if state[at + SHIFT] == 0:
                state[at + SHIFT] = _DIVER_SHIFT
                gone = not _shift(state, at)
                saved = free and _at_player(state, at)
            else:
                state[at + SHIFT] -= 1
        state[ON_BOARD] += saved
        if saved or gone:
            _remove(state, DIVERS, at)


@inline_kernel
def _enemies_swim(state, things):
    """Fish or submarines move if it is time, and submarines shoot.

    Return how many ran into a bullet, and whether one hit the player.
    """
    n, ended = 0, False
    for at in range(_last(state, things) - WIDTH, things, -WIDTH):
        ended |= _at_player(state, at)
        gone = False
        if state[at + SHIFT] == 0:
            state[at + SHIFT] = state[SHIFT_EVERY]
            gone = not _shift(state, at)
            if _at_player(state, at):
                ended = True
            elif not gone and _strike(state, BULLETS, state[at + COLUMN], state[at + ROW]):
                gone = True
                n += 1
        else:
            state[at + SHIFT] -= 1
        if things == SUBS:
            if state[at + SHOT] == 0:
                state[at + SHOT] = _SHOT_EVERY
                column, row, direction = state[at + COLUMN], state[at + ROW], state[at + DIRECTION]
                _add(state, ENEMY_BULLETS, column, row, direction, 0.0)
            else:
                state[at + SHOT] -= 1
        if gone:
            _remove(state, things, at)
    return n, ended


@inline_kernel
def _enemy_bullets_fly(state):
    """The enemies' bullets move; return whether one hit the player, before or after."""
    ended = False
    for at in range(_last(state, ENEMY_BULLETS) - WIDTH, ENEMY_BULLETS, -WIDTH):
        ended |= _at_player(state, at)
        if _shift(state, at):
            ended |= _at_player(state, at)
        else:
            _remove(state, ENEMY_BULLETS, at)
    return ended


@inline_kernel
def _come_up(state):
    """Oxygen for divers, and the next level; return the reward."""
    reward = 0.0
    if state[ON_BOARD] == _SEATS:
        state[ON_BOARD] = 0
        reward = np.floor(state[OXYGEN] * 10 / _OXYGEN)
    state[OXYGEN] = _OXYGEN
    state[ON_BOARD] -= 1
    if state[ENEMY_EVERY] > 1 or state[SHIFT_EVERY] > 2:
        if state[SHIFT_EVERY] > 2 and state[LEVEL] % 2 == 1:
            state[SHIFT_EVERY] -= 1
        if state[ENEMY_EVERY] > 1:
            state[ENEMY_EVERY] -= 1
        state[LEVEL] += 1
    return reward


@inline_kernel
def step(state, action, random):
    """Things enter, the player acts, bullets and things move, and the player breathes."""
    _enter(state, random)
    _act(state, action)
    shot = _bullets_fly(state)
    _divers_swim(state)
    subs, ended_by_sub = _enemies_swim(state, SUBS)
    ended = ended_by_sub | _enemy_bullets_fly(state)
    fish, ended_by_fish = _enemies_swim(state, FISH)
    reward = np.float64(shot + subs + fish)
    state[ENEMY] = max(0.0, state[ENEMY] - 1)
    state[DIVER] = max(0.0, state[DIVER] - 1)
    state[RELOAD] = max(0.0, state[RELOAD] - 1)
    ended |= ended_by_fish | (state[OXYGEN] <= 0)
    if state[Y] > 0:
        state[OXYGEN] -= 1
        state[SURFACED] = 0
    elif state[SURFACED] == 0:
        if state[ON_BOARD] == 0:
            ended = True
        else:
            state[SURFACED] = 1
            reward += _come_up(state)
    return reward, ended


@inline_kernel
def _mark_things(state, things, observation, channel, trail):
    """Cells of things in a list and, if `trail`, the cells that they came from."""
    for at in range(things + 1, _last(state, things), WIDTH):
        mark(observation, 10, channel, state[at + COLUMN], state[at + ROW])
        behind = state[at + COLUMN] - state[at + DIRECTION]
        if trail and behind >= 0 and behind < SIZE:
            mark(observation, 10, 3, behind, state[at + ROW])


@inline_kernel
def observe(state, observation):
    """The player, all things, oxygen and divers on board."""
    clear(observation)
    mark(observation, 10, 0, state[X], state[Y])
    mark(observation, 10, 1, state[X] - state[FACING], state[Y])
    _mark_things(state, BULLETS, observation, 2, False)
    _mark_things(state, ENEMY_BULLETS, observation, 4, False)
    _mark_things(state, FISH, observation, 5, True)
    _mark_things(state, SUBS, observation, 6, True)
    _mark_things(state, DIVERS, observation, 9, True)
    for column in range(np.int64(max(0.0, state[OXYGEN]) * 10 / _OXYGEN)):
        mark(observation, 10, 7, column, 9)
    for k in range(np.int64(state[ON_BOARD])):
        mark(observation, 10, 8, 8 - k, 9)


def draw(state) -> list[tuple]:
    """A coloured cell for each object."""
    return _cells.drawn(observe, state, _COLOURS)
