"""Symbols 0 ... V-1 under categorical distributions with Dirichlet posteriors.

States are rows whose first entry belongs to the model and whose others are the concentrations of
the V symbols.  They are natural parameters: a symbol that is seen adds 1 to its own.
"""

from __future__ import annotations

from dpsvi.kernels.digamma import digamma
from dpsvi.kernels.jit import inline_kernel


@inline_kernel
def to_expected_log(concentration):
    """Turn the concentrations of a Dirichlet distribution into ``E ln p`` (psi), in place."""
    total = 0.0
    for v in range(concentration.shape[0]):
        total += concentration[v]
    total = digamma(total)
    for v in range(concentration.shape[0]):
        concentration[v] = digamma(concentration[v]) - total


@inline_kernel
def log_probabilities(symbols, expected, log_p):
    """``log_p[i, k] = expected[k, 1 + symbols[i]]``.

    Parameters
    ----------
    symbols : float64 array, (n,)
        NaN where one is missing: it is 0 for all states then.
    expected : float64 array, (K, V + 1)
    log_p : float64 array, (n, K)
        Overwritten.
    """
    for i in range(symbols.shape[0]):
        there = symbols[i] == symbols[i]
        v = 1 + int(symbols[i]) if there else 0
        for k in range(expected.shape[0]):
            log_p[i, k] = expected[k, v] if there else 0.0


@inline_kernel
def add_symbols(symbols, weight, stats):
    """Add ``weight[i, k]`` to the entries of each symbol and to the first entry of each row.

    Arrays as in :func:`log_probabilities`; `weight` is (n, K).
    """
    for i in range(symbols.shape[0]):
        there = symbols[i] == symbols[i]
        v = 1 + int(symbols[i]) if there else 0
        for k in range(stats.shape[0]):
            stats[k, 0] += weight[i, k]
            if there:
                stats[k, v] += weight[i, k]
