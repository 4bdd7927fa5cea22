"""What the games on a grid of 10 x 10 cells share; their rules are those of MinAtar.

An observation is 1 where a cell holds what a channel stands for, else 0.

References
----------
K. Young, T. Tian, MinAtar: an Atari-inspired testbed for thorough and reproducible reinforcement
learning experiments, arXiv:1903.03176, 2019.
"""

from __future__ import annotations

import numpy as np

from dpsvi.kernels.jit import inline_kernel, lowest_bit

SIZE = 10
LIMIT = 5000  # moves


@inline_kernel
def clear(observation):
    """Nothing anywhere."""
    for k in range(observation.size):
        observation[k] = 0


@inline_kernel
def mark(observation, n_channels, channel, x, y):
    """`channel` holds the cell in column `x` of row `y`."""
    observation[(SIZE * np.int64(y) + np.int64(x)) * n_channels + channel] = 1


@inline_kernel
def mark_all(observation, n_channels, channel, first, bits):
    """`channel` holds those cells, counted along the rows from cell `first` on, whose bit is 1."""
    while bits:
        observation[(first + lowest_bit(bits)) * n_channels + channel] = 1
        bits &= bits - 1


def drawn(observe, state, colours) -> list[tuple]:
    """Shapes of all cells that are not empty; `colours` has one a channel, None: do not draw it."""
    observation = np.empty(SIZE * SIZE * len(colours), np.float32)
    observe(state, observation)
    side = 1 / SIZE
    shapes = [("rect", 0.0, 0.0, 1.0, 1.0, "#101820")]
    for channel, colour in enumerate(colours):
        if colour is not None:
            for cell in np.flatnonzero(observation[channel :: len(colours)]):
                y, x = divmod(int(cell), SIZE)
                shapes.append(("rect", x * side, y * side, side, side, colour))
    return shapes
