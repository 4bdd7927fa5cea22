"""Posteriors, bounds and best paths of sequences under a fitted hidden Markov model."""

from __future__ import annotations

import numpy as np

from dpsvi.kernels.jit import kernel
from dpsvi.models.hmm import markov
from dpsvi.models.hmm.chunk import ZERO, load
from dpsvi.models.hmm.local import emissions, sweep


@kernel
def infer(items, batch, marked, weights, chunk, gaps, posterior, bound):
    """Posteriors and bounds of the steps of the items in `batch`, one behind the other.

    Parameters
    ----------
    items : Items
    batch : int32 array
    marked : int
        1 when every step of an item is preceded by its mark, else 0.
    weights : Weights
    chunk : Chunk
        For items of this length.
    gaps : None or int
        As in :func:`dpsvi.models.hmm.local.emissions`.
    posterior : float64 array, (n_steps, K) or (0, K)
        Overwritten with gamma_t; left alone when it has no rows.
    bound : float64 array, (n_steps,)
        Overwritten with ``ln p~(x_t | x_1 ... x_{t-1})``; they add up to ln Z~ of a sequence.
    """
    n_components = weights.start.shape[0]
    begins, pairs = np.zeros(n_components), np.zeros((n_components, n_components))
    first, done = ZERO, 0
    while first < batch.shape[0]:
        first, n_steps = sweep(items, batch, first, marked, weights, chunk, gaps, begins, pairs)
        for t in range(n_steps):
            bound[done + t] = chunk.bound[t]
            if posterior.shape[0] > 0:
                for k in range(n_components):
                    posterior[done + t, k] = chunk.posterior[t, k]
        done += n_steps


@kernel
def decode(items, batch, marked, weights, chunk, gaps, path, value):
    """Best paths of the items in `batch`, one behind the other.

    Parameters
    ----------
    items, batch, marked, weights, chunk, gaps
        As in :func:`infer`.
    path : int64 array, (n_steps,)
        Overwritten with the states.
    value : float64 array, (n_batch,)
        Overwritten with the logarithms of the paths' weights.
    """
    n = weights.origins.shape[1] + marked
    log_start, log_trans = np.log(weights.start), np.log(weights.trans)
    first, done = ZERO, 0
    while first < batch.shape[0]:
        last, n_steps = load(items, batch, first, marked, chunk)
        emissions(weights, n_steps, chunk, gaps)
        begin = 0
        for i in range(first, last):
            end = begin + (items.offsets[batch[i] + 1] - items.offsets[batch[i]]) // n
            value[i] = markov.viterbi(
                log_start, log_trans, chunk.weight[begin:end], path[done + begin : done + end]
            )
            begin = end
        first, done = last, done + n_steps


@kernel
def walk(start, trans, offsets, chance, states):
    """Draw the states of sequences.

    Parameters
    ----------
    start, trans : float64 arrays, (K,) and (K, K)
        Cumulative probabilities of the first state, and of the next.
    offsets : int64 array, (n_sequences + 1,)
    chance : float64 array, (n_steps,)
        In [0, 1).
    states : int64 array, (n_steps,)
        Overwritten.
    """
    for i in range(offsets.shape[0] - 1):
        for t in range(offsets[i], offsets[i + 1]):
            law = start if t == offsets[i] else trans[states[t - 1]]
            k = 0
            while k < law.shape[0] - 1 and chance[t] >= law[k]:
                k += 1
            states[t] = k
