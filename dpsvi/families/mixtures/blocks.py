"""Points in blocks: how they are read, their responsibilities, weights and changes."""

from __future__ import annotations

import math

from dpsvi.expfam.gaussian import BLOCK
from dpsvi.kernels.jit import inline_kernel, kernel

LEAST = -300.0  # logarithm of the smallest responsibility over the largest of its point


@inline_kernel
def load_block(items, batch, first, x):
    """Copy items batch[first:first + BLOCK] into the columns of `x`; returns their number.

    A block that is not full repeats its first point; give the copies the weight 0.
    """
    size = min(BLOCK, batch.shape[0] - first)
    for i in range(BLOCK):
        start = items.offsets[batch[first + i if i < size else first]]
        for d in range(x.shape[0]):
            x[d, i] = items.value[start + d]
    return size


@inline_kernel
def relative(below):
    """exp(below), or 0 if `below`, the logarithm of a ratio to the largest, is below `LEAST`.

    Products with what is smaller would be subnormal numbers, with which arithmetic takes many times
    as long.
    """
    return math.exp(below) if below > LEAST else 0.0


@inline_kernel
def normalise(log_p, size, bound, total):
    """Turn a block of log-densities into responsibilities in place, 0 from point `size` on.

    `bound`, (BLOCK,), gets ``ln sum_k exp(log_p[k])``; `total`, (BLOCK,), is scratch.
    """
    n_components = log_p.shape[0]
    for i in range(BLOCK):
        bound[i] = log_p[0, i]
        total[i] = 0.0
    for k in range(1, n_components):
        for i in range(BLOCK):
            bound[i] = max(bound[i], log_p[k, i])
    for k in range(n_components):
        for i in range(BLOCK):
            log_p[k, i] = relative(log_p[k, i] - bound[i])
            total[i] += log_p[k, i]
    for k in range(n_components):
        for i in range(BLOCK):
            log_p[k, i] = log_p[k, i] / total[i] if i < size else 0.0
    for i in range(BLOCK):
        bound[i] += math.log(total[i])


@kernel
def weigh(items, batch, first, size, n, resp):
    """Multiply responsibilities, (K, BLOCK), by the weights of the points of a block.

    Points are items of `n` numbers; the number behind these is the weight of the point.
    """
    for i in range(size):
        weight = items.value[items.offsets[batch[first + i]] + n]
        for k in range(resp.shape[0]):
            resp[k, i] *= weight


@inline_kernel
def to_changes(memory, batch, first, size, resp):
    """Turn responsibilities into their changes since the last visit; how many had none is returned.

    They sum to 1, so that a point without any is one that was not visited yet.
    """
    n_new = 0
    for i in range(size):
        old, known = memory[batch[first + i]], 0.0
        for k in range(resp.shape[0]):
            new = resp[k, i]
            resp[k, i] = new - old[k]
            known += old[k]
            old[k] = new
        n_new += known == 0.0
    return n_new


@inline_kernel
def add_unvisited(memory, n_items, times, stats):
    """Add `times` what stands for an item that was not visited yet, behind those of `memory`."""
    if times != 0:
        share = memory[n_items:].reshape(stats.shape)
        for k in range(stats.shape[0]):
            for j in range(stats.shape[1]):
                stats[k, j] += times * share[k, j]
