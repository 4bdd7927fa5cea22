"""How far natural parameters are outside of the domain of their model; 0 or less: they are inside.

Local steps repair what they read, so a fit can leave the domain and go on: this looks at the
parameters themselves.
"""

from __future__ import annotations

import numpy as np


def counts(state) -> float:
    """Of Dirichlet distributions of counts: how far any is below what it is without data."""
    return -float(state.shared.rows.min() * state.scale)


def components(state, n_features: int) -> float:
    """Of a mixture: weights that are not positive, no Normal-Wishart distribution."""
    rows = state.natural().reshape(-1, n_features**2 + n_features + 3)
    return max(float(-rows[:, 0].min()), _normal_wishart(rows[:, 1:], n_features))


def chain(state, n_states: int, n_features: int) -> float:
    """Of a hidden Markov model: the same of beginnings, transitions and states."""
    start_and_trans, states = np.split(state.natural()[0], [n_states * (n_states + 1)])
    rows = states.reshape(n_states, -1)[:, 1:]
    return max(float(-start_and_trans.min()), _normal_wishart(rows, n_features))


def _normal_wishart(rows, n) -> float:
    """Of rows ``kappa | kappa m | W^-1 + kappa m m^T | nu``: kappa > 0, nu > n - 1, W > 0."""
    kappa, h, nu = rows[:, 0], rows[:, 1 : n + 1], rows[:, -1]
    least = [kappa.min(), nu.min() - (n - 1)]
    if min(least) > 0:
        w_inverse = rows[:, n + 1 : -1].reshape(-1, n, n) - (
            h[:, :, None] * h[:, None, :] / kappa[:, None, None]
        )
        both = (w_inverse + w_inverse.swapaxes(1, 2)) / 2
        least.append(np.linalg.eigvalsh(both).min())
    return -float(min(least))
