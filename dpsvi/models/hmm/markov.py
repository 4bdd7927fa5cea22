"""Hidden Markov chains: messages, posteriors and the best path, for weights of any size.

With weights ``begin[k]``, ``trans[j, k]`` and ``e[t, k]``, none of which need sum to 1, a chain of
T observations has

    Z = sum over paths z of  begin[z_0] e[0, z_0] prod_t trans[z_{t-1}, z_t] e[t, z_t].

The messages are scaled (Rabiner 1989, V.A): `filtered` ones sum to 1 at every step and the factors
taken out multiply to Z.  The way back needs no scaled beta, which could overflow: with the state
after known, the state before depends on the past only,

    q(z_{t-1} = j | z_t = k) = filtered[t-1, j] trans[j, k] / predicted[t, k].

Inner loops run over the states in the order in which they lie in memory; a step costs 3 K^2
multiplications.
"""

from __future__ import annotations

import math

import numpy as np

from dpsvi.kernels.jit import inline_kernel, kernel

# Least weight of a transition or a beginning.  It keeps every `predicted` above 0, whatever the
# observations: a state that only this number leads to is taken when all others are impossible.
LEAST = 1e-290


@inline_kernel
def _normal(mass):
    """Mass, or 0 below `LEAST`: arithmetic with subnormal numbers takes many times as long."""
    return mass if mass > LEAST else 0.0


@inline_kernel
def forward(begin, trans, weight, filtered, factor):
    """The messages from the past to every step.

    Parameters
    ----------
    begin : float64 array, (K,), >= LEAST
    trans : float64 array, (K, K), >= LEAST
    weight : float64 array, (T, K)
        ``e``, with a largest entry of 1 at every step.  Overwritten with `predicted`, the weights
        of the states before e[t] is seen.
    filtered : float64 array, (T, K)
        Overwritten with the distribution of the state at each step given the past and e[t].
    factor : float64 array, (T,)
        Overwritten with the factors of Z.
    """
    n_states = begin.shape[0]
    for t in range(weight.shape[0]):
        here, likely = filtered[t], weight[t]
        if t == 0:
            for k in range(n_states):
                here[k] = begin[k]
        else:
            before = filtered[t - 1]
            for k in range(n_states):
                here[k] = before[0] * trans[0, k]
            for j in range(1, n_states):
                from_j, mass = trans[j], before[j]
                for k in range(n_states):
                    here[k] += mass * from_j[k]
        total = 0.0
        for k in range(n_states):
            predicted = here[k]
            here[k] = predicted * likely[k]
            likely[k] = predicted
            total += here[k]
        factor[t] = total
        scale = 1.0 / total
        for k in range(n_states):
            here[k] = _normal(here[k] * scale)


@inline_kernel
def smooth(trans, predicted, filtered, first, last, pairs):
    """The messages from the future: `filtered` becomes the posterior of the states.

    Parameters
    ----------
    trans, predicted, filtered
        As :func:`forward` left them; `predicted` is overwritten, `filtered` right from `first` on.
    first, last : int
        The steps ``first:last`` count.
    pairs : float64 array, (K, K)
        To ``pairs * trans`` the expected transitions into these steps are added.
    """
    n_states = trans.shape[0]
    for t in range(filtered.shape[0] - 1, max(first, 1) - 1, -1):
        ratio, here, before = predicted[t], filtered[t], filtered[t - 1]
        for k in range(n_states):
            ratio[k] = here[k] / ratio[k]
        if t < last:
            for j in range(n_states):
                mass, counts = before[j], pairs[j]
                for k in range(n_states):
                    counts[k] += mass * ratio[k]
        for j in range(n_states):
            to_k, likely = trans[j], 0.0
            for k in range(n_states):
                likely += to_k[k] * ratio[k]
            before[j] = _normal(before[j] * likely)


@kernel
def viterbi(log_begin, log_trans, log_weight, path):
    """The path of the largest weight (Viterbi 1967).

    Parameters
    ----------
    log_begin : float64 array, (K,)
    log_trans : float64 array, (K, K)
    log_weight : float64 array, (T, K)
        Overwritten.
    path : int64 array, (T,)
        Overwritten with the path.

    Returns
    -------
    float
        Logarithm of its weight.
    """
    n_steps, n_states = log_weight.shape
    origin = np.empty((n_steps, n_states), np.int32)
    for k in range(n_states):
        log_weight[0, k] += log_begin[k]
    for t in range(1, n_steps):
        before, here = log_weight[t - 1], log_weight[t]
        for k in range(n_states):
            best, source = -math.inf, 0
            for j in range(n_states):
                value = before[j] + log_trans[j, k]
                if value > best:
                    best, source = value, j
            here[k] += best
            origin[t, k] = source
    best = 0
    for k in range(1, n_states):
        if log_weight[n_steps - 1, k] > log_weight[n_steps - 1, best]:
            best = k
    value = log_weight[n_steps - 1, best]
    for t in range(n_steps - 1, -1, -1):
        path[t] = best
        best = origin[t, best]
    return value
