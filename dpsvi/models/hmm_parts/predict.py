"""Posteriors, bounds and best paths of sequences under a fitted hidden Markov model."""

from __future__ import annotations

import numpy as np

from dpsvi.expfam import markov
from dpsvi.jit import kernel
from dpsvi.models.hmm_parts.chunk import chunk_of, load
from dpsvi.models.hmm_parts.local import emissions, split, sweep, unpack


@kernel
def infer(items, batch, hyper, marked, expected, memory, posterior, bound):
    """Posteriors and bounds of the steps of the items in `batch`, one behind the other.

    Parameters
    ----------
    memory : float64 array
        Of the length that :func:`scratch` says; ``visits`` filled by :func:`expect`.
    posterior : float64 array, (n_steps, K) or (0, K)
        Overwritten with gamma_t; left alone when it has no rows.
    bound : float64 array, (n_steps,)
        Overwritten with ``ln p~(x_t | x_1 ... x_{t-1})``; they add up to ln Z~ of a sequence.
    """
    n_components = split(expected, int(hyper[2]))[0].shape[0]
    chunk = chunk_of(memory, n_components, int(hyper[3]))
    begins = np.empty(n_components)
    chunk.pairs[:] = 0.0
    first, done = 0, 0
    while first < batch.shape[0]:
        first, n_steps = sweep(items, batch, first, hyper, marked, expected, memory, begins)
        bound[done : done + n_steps] = chunk.bound[:n_steps]
        if posterior.shape[0] > 0:
            posterior[done : done + n_steps] = chunk.posterior[:n_steps]
        done += n_steps


@kernel
def decode(items, batch, hyper, expected, memory, path, value):
    """Best paths of whole sequences, one behind the other, and the logarithms of their weights.

    Parameters
    ----------
    path : int64 array, (n_steps,)
    value : float64 array, (n_batch,)
        Overwritten, both.
    """
    kind, _, _, origins, _ = unpack(hyper)
    n_components, n = origins.shape
    start, trans, states = split(expected, n_components)
    chunk = chunk_of(memory, n_components, n)
    log_start, log_trans = np.log(start), np.log(trans)
    first, done = 0, 0
    while first < batch.shape[0]:
        last, n_steps = load(items, batch, first, 0, chunk)
        emissions(kind, origins, states, n_steps, chunk)
        end = 0
        for i in range(first, last):
            begin = end
            end += (items.offsets[batch[i] + 1] - items.offsets[batch[i]]) // n
            value[i] = markov.viterbi(
                log_start, log_trans, chunk.weight[begin:end], path[done + begin : done + end]
            )
        first, done = last, done + n_steps
