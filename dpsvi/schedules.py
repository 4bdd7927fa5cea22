"""Step sizes rho_t and rule (13), which carries a tuned rate over to M, p and B.

In the literature the step size is `rho`, the offset `tau_0` and the decay `kappa`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

LR_RULES = ("per_T", "per_sample", "constant")


def robbins_monro(offset: float, decay: float, rate: float = 1.0) -> Callable:
    """``rho_t = rate * (t + offset) ** -decay``, at most 1 (Hoffman et al. 2013, eq. 26).

    Parameters
    ----------
    offset : float, > 0
        tau_0; larger values slow the first steps down.
    decay : float, in (0.5, 1] for convergence
        kappa, the rate at which old values are forgotten.
    rate : float, > 0
        Constant factor, 1 in the literature.

    Examples
    --------
    >>> robbins_monro(1.0, 1.0)(np.array([0, 1, 3]))
    array([1.  , 0.5 , 0.25])
    """
    if not 0 < offset < math.inf:
        raise ValueError(f"learning_offset must be > 0, got {offset!r}")
    if not 0 < decay <= 1:
        raise ValueError(f"learning_decay must be in (0, 1], got {decay!r}")

    if not 0 < rate < math.inf:
        raise ValueError(f"rate must be > 0, got {rate!r}")

    def schedule(t):
        return np.minimum(1.0, rate * (np.asarray(t) + offset) ** -decay)

    return schedule


def constant(rate: float) -> Callable:
    """``rho_t = rate`` for ever (Corollary 1 of the paper).

    Examples
    --------
    >>> constant(0.1)(np.array([0, 5]))
    array([0.1, 0.1])
    """
    if not 0 < rate <= 1:
        raise ValueError(f"learning_rate must be in (0, 1], got {rate!r}")
    return lambda t: np.full(np.shape(t), float(rate))


def scaled_rate(
    rate: float, *, master_batch: int = 1, n_jobs: int = 1, local_steps: int = 1,
    rule: str = "per_T",
) -> float:
    """Carry a rate tuned at M = p = B = 1 over to other values, rule (13).

    ``"per_T"``: at a fixed number of *global* steps, Corollary 1 gives rate / sqrt(M p B).
    ``"per_sample"``, ``"constant"``: at a fixed number of *samples*, the rate stays.

    Examples
    --------
    >>> scaled_rate(0.1, n_jobs=4)
    0.05
    """
    if rule not in LR_RULES:
        raise ValueError(f"lr_rule must be one of {LR_RULES}, got {rule!r}")
    if rule != "per_T":
        return rate
    return rate / math.sqrt(master_batch * n_jobs * local_steps)
