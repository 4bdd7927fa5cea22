"""The memory in which a thread visits sequences, and how items get there.

Sequences are short or long, so it is a *chunk* of steps that as many whole items share as fit into
it; emissions are handled BLOCK steps at a time whatever the items.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpsvi.expfam.gaussian import BLOCK
from dpsvi.jit import inline_kernel

INSIDE, BEGINS = 1, 2  # marks of a step: its statistics count; it is the first of its sequence
_BLOCKS = 4  # least size of a chunk


class Chunk(NamedTuple):
    """Memory for the steps of some items; a pass over them fills it from top to bottom."""

    x: np.ndarray  # (n_blocks, D, BLOCK): the observations
    mark: np.ndarray  # (n_steps,): sums of INSIDE and BEGINS
    weight: np.ndarray  # (n_steps, K): ln e, then e over its largest, then `predicted`
    shift: np.ndarray  # (n_steps,): ln of that largest
    posterior: np.ndarray  # (n_steps, K): `filtered`, then gamma_t, 0 where not INSIDE
    bound: np.ndarray  # (n_steps,): ln of the factor of Z, the step's share of the bound
    y: np.ndarray  # (D + 1, BLOCK)
    block: np.ndarray  # (K, BLOCK): emissions or posteriors of a block, transposed
    visits: np.ndarray  # (K,): distribution of the state where a window begins
    pairs: np.ndarray  # (K, K): transitions are these times `trans`


@inline_kernel
def _fixed(n_components, n):
    return (n + 1 + n_components) * BLOCK + n_components * (n_components + 1)


def scratch(n_components, n, row, longest):
    """Length of the memory of a thread: `longest` is that of an item, `row` of each of its steps."""
    n_steps = BLOCK * max(_BLOCKS, -(-(longest // row) // BLOCK))
    return n_steps * (n + 2 * n_components + 3) + _fixed(n_components, n)


@inline_kernel
def chunk_of(memory, n_components, n):
    """The :class:`Chunk` that lies in `memory`, a vector of the length that :func:`scratch` says."""
    fixed = _fixed(n_components, n)
    n_steps = (memory.shape[0] - fixed) // (n + 2 * n_components + 3)
    rest, least = memory[:fixed], memory[fixed:]
    y, rest = rest[: (n + 1) * BLOCK], rest[(n + 1) * BLOCK :]
    block, rest = rest[: n_components * BLOCK], rest[n_components * BLOCK :]
    x, least = least[: n_steps * n], least[n_steps * n :]
    matrices, vectors = least[: -3 * n_steps], least[-3 * n_steps :].reshape((3, n_steps))
    matrices = matrices.reshape((2, n_steps, n_components))
    return Chunk(
        x.reshape((n_steps // BLOCK, n, BLOCK)), vectors[0], matrices[0], vectors[1], matrices[1],
        vectors[2], y.reshape((n + 1, BLOCK)), block.reshape((n_components, BLOCK)),
        rest[:n_components], rest[n_components:].reshape((n_components, n_components)),
    )  # fmt: skip


@inline_kernel
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
            chunk.mark[s] = items.value[row] if marked else INSIDE + (BEGINS if t == 0 else 0)
            for d in range(n):
                chunk.x[s // BLOCK, d, s % BLOCK] = items.value[row + marked + d]
        n_steps += length
        last += 1
    return last, n_steps
