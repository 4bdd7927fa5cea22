"""Asterix (MinAtar): fetch gold, keep away from enemies.

Each of the rows 1 to 8 has room for one thing, an enemy or gold (one in three), which enters from
the left or the right and crosses the row.  Gold has reward 1; meeting an enemy ends the episode.
Every 102 moves a new thing comes a move sooner, and every other time all move a move sooner, too.

Actions: stay, left, up, right, down.  Channels: player, enemies, where things were, gold.

References
----------
As in :mod:`dpsvi.rl.environments._cells`.
"""

from __future__ import annotations

from dpsvi.kernels.jit import inline_kernel
from dpsvi.rl.environments import _cells
from dpsvi.rl.environments._cells import LIMIT, SIZE, clear, mark  # noqa: F401
from dpsvi.rl.generator import below, uniform

SHAPE = (SIZE, SIZE, 4)
N_ACTIONS = 5

# Places in the state: the player; moves until the next thing, the next shift and the next level,
# and what the first two begin at; then the things, in the order of their rows.
X, Y, ENTRY, SHIFT, HARDER, ENTRY_EVERY, SHIFT_EVERY, LEVEL = range(8)
N_ROWS = 8
KIND, COLUMN, DIRECTION = 8, 8 + N_ROWS, 8 + 2 * N_ROWS
N_STATE = 8 + 3 * N_ROWS

NOTHING, ENEMY, GOLD = 0, 1, 2
_MOVES_A_LEVEL = 100
_COLOURS = ("#e8e8e8", "#d1495b", "#44505c", "#ffd166")


@inline_kernel
def reset(state, random):
    """The player in the middle, alone."""
    state[X] = state[Y] = 5
    state[ENTRY] = state[ENTRY_EVERY] = 10
    state[SHIFT] = state[SHIFT_EVERY] = 5
    state[HARDER] = _MOVES_A_LEVEL
    state[LEVEL] = 0
    for row in range(N_ROWS):
        state[KIND + row] = NOTHING
        state[COLUMN + row] = state[DIRECTION + row] = 0


@inline_kernel
def _enter(state, random):
    """A thing enters a row that is free, if there is one."""
    from_left = uniform(random) < 1 / 2
    gold = uniform(random) < 1 / 3
    n_free = 0
    for row in range(N_ROWS):
        n_free += state[KIND + row] == NOTHING
    if n_free == 0:
        return
    skipped = below(random, n_free)
    row = 0
    while state[KIND + row] != NOTHING or skipped > 0:
        skipped -= state[KIND + row] == NOTHING
        row += 1
    state[KIND + row] = GOLD if gold else ENEMY
    state[COLUMN + row] = 0 if from_left else 9
    state[DIRECTION + row] = 1 if from_left else -1


@inline_kernel
def _meet(state):
    """What the player meets in its cell: gold is taken."""
    row = int(state[Y]) - 1
    kind = state[KIND + row]
    if kind == NOTHING or state[COLUMN + row] != state[X]:
        return 0.0, False
    if kind == ENEMY:
        return 0.0, True
    state[KIND + row] = NOTHING
    return 1.0, False


@inline_kernel
def _grow_harder(state):
    """Count moves towards the next level."""
    if state[ENTRY_EVERY] == 1 and state[SHIFT_EVERY] == 1:
        return
    if state[HARDER] >= 0:
        state[HARDER] -= 1
        return
    if state[SHIFT_EVERY] > 1 and state[LEVEL] % 2 == 1:
        state[SHIFT_EVERY] -= 1
    if state[ENTRY_EVERY] > 1:
        state[ENTRY_EVERY] -= 1
    state[LEVEL] += 1
    state[HARDER] = _MOVES_A_LEVEL


@inline_kernel
def step(state, action, random):
    """A thing enters, the player moves, all things move if it is time for that."""
    if state[ENTRY] == 0:
        _enter(state, random)
        state[ENTRY] = state[ENTRY_EVERY]
    if action == 1:
        state[X] = max(0.0, state[X] - 1)
    elif action == 2:
        state[Y] = max(1.0, state[Y] - 1)
    elif action == 3:
        state[X] = min(9.0, state[X] + 1)
    elif action == 4:
        state[Y] = min(8.0, state[Y] + 1)
    reward, ended = _meet(state)
    if state[SHIFT] == 0:
        state[SHIFT] = state[SHIFT_EVERY]
        for row in range(N_ROWS):
            column = state[COLUMN + row] + state[DIRECTION + row]
            state[COLUMN + row] = column
            if column < 0 or column > 9:
                state[KIND + row] = NOTHING
        more, met = _meet(state)
        reward += more
        ended |= met
    state[ENTRY] -= 1
    state[SHIFT] -= 1
    _grow_harder(state)
    return reward, ended


@inline_kernel
def observe(state, observation):
    """The player, and each thing with the cell that it came from."""
    clear(observation)
    mark(observation, 4, 0, state[X], state[Y])
    for row in range(N_ROWS):
        kind, column = state[KIND + row], state[COLUMN + row]
        if kind != NOTHING:
            mark(observation, 4, 1 if kind == ENEMY else 3, column, row + 1)
            behind = column - state[DIRECTION + row]
            if behind >= 0 and behind <= 9:
                mark(observation, 4, 2, behind, row + 1)


def draw(state) -> list[tuple]:
    """A coloured cell for each object."""
    return _cells.drawn(observe, state, _COLOURS)
