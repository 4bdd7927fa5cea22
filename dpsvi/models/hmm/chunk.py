"""The memory in which a thread visits sequences, and how items get there.

Sequences are short or long, so it is a *chunk* of steps that as many whole items share as fit into
it; emissions are handled BLOCK steps at a time whatever the items.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpsvi.expfam.gaussian import BLOCK
from dpsvi.kernels.jit import kernel, naming_kernel

INSIDE, BEGINS = 1, 2  # marks of a step: its statistics count; it is the first of its sequence
_BLOCKS = 4  # least size of a chunk
ZERO = np.int64(0)  # a literal 0 as an argument would have a kernel compiled once more


class Chunk(NamedTuple):
    """Memory for the steps of some items; a sweep over them fills it from top to bottom."""

    x: np.ndarray  # (n_blocks, D, BLOCK): the observations
    mark: np.ndarray  # (n_steps,): sums of INSIDE and BEGINS
    weight: np.ndarray  # (n_steps, K): ln e, then e over its largest, then `predicted`
    shift: np.ndarray  # (n_steps,): ln of that largest
    posterior: np.ndarray  # (n_steps, K): `filtered`, then gamma_t, 0 where not INSIDE
    bound: np.ndarray  # (n_steps,): ln of the factor of Z, the step's share of the bound
    y: np.ndarray  # (D + 1, BLOCK)
    block: np.ndarray  # (K, BLOCK): emissions or posteriors of a block, transposed
    visits: np.ndarray  # (K,): distribution of the state where a window begins


def scratch(n_components: int, n: int, row: int, longest: int) -> int:
    """Numbers in the memory of a thread.

    Parameters
    ----------
    n_components, n : int
        K and D.
    row, longest : int
        Values of a step, its mark included, and of the longest item.
    """
    n_steps = BLOCK * max(_BLOCKS, -(-(longest // row) // BLOCK))
    return n_steps * (n + 2 * n_components + 3) + (n + 1 + n_components) * BLOCK + n_components


@naming_kernel
def chunk_of(memory, n_components, n):
    """The :class:`Chunk` that lies in a vector of the length that :func:`scratch` says."""
    visits, memory = memory[:n_components], memory[n_components:]
    last = (n + 1) * BLOCK
    y, memory = memory[:last].reshape((n + 1, BLOCK)), memory[last:]
    last = n_components * BLOCK
    block, memory = memory[:last].reshape((n_components, BLOCK)), memory[last:]
    n_steps = memory.shape[0] // (n + 2 * n_components + 3)
    steps, memory = memory[: 3 * n_steps].reshape((3, n_steps)), memory[3 * n_steps :]
    last = 2 * n_steps * n_components
    states = memory[:last].reshape((2, n_steps, n_components))
    x = memory[last:].reshape((n_steps // BLOCK, n, BLOCK))
    # Indexed, not unpacked: numba does not see that unpacked rows are contiguous.
    return Chunk(x, steps[0], states[0], steps[1], states[1], steps[2], y, block, visits)


@kernel
def load(items, batch, first, marked, chunk):
    """Copy items batch[first:last] into the chunk, as many as fit; returns last and their steps."""
    n = chunk.x.shape[1]
    n_steps, last = 0, first
    while last < batch.shape[0]:
        begin, end = items.offsets[batch[last]], items.offsets[batch[last] + 1]
        length = (end - begin) // (n + marked)
        if n_steps + length > chunk.mark.shape[0]:
            break
        for t in range(length):
            row, s = begin + t * (n + marked), n_steps + t
            if marked:
                chunk.mark[s] = items.value[row]
            else:
                chunk.mark[s] = INSIDE + BEGINS if t == 0 else INSIDE
            for d in range(n):
                chunk.x[s // BLOCK, d, s % BLOCK] = items.value[row + marked + d]
        n_steps += length
        last += 1
    return last, n_steps
