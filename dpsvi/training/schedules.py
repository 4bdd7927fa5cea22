"""Step sizes rho_t and rule (13), which carries a tuned rate over to M, p and B.

In the literature the step size is `rho`, the offset `tau_0` and the decay `kappa`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dpsvi.errors import check_choice, check_number

LR_RULES = ("per_T", "per_sample", "constant")


def robbins_monro(offset: float, decay: float, rate: float = 1.0, least: float = 0.0) -> Callable:
    """``rho_t = rate * (t + offset) ** -decay``, at most 1 (Hoffman et al. 2013, eq. 26).

    Parameters
    ----------
    offset : float, > 0
        tau_0; larger values slow the first steps down.
    decay : float, in (0.5, 1] for convergence
        kappa, the rate at which old values are forgotten.
    rate : float, > 0
        Constant factor, 1 in the literature.
    least : float, >= 0
        The rates fall no further than this.

    Examples
    --------
    >>> robbins_monro(1.0, 1.0)(np.array([0, 1, 3]))
    array([1.  , 0.5 , 0.25])
    """
    check_number("learning_offset", offset, low=0, open_low=True)
    check_number("learning_decay", decay, low=0, high=1, open_low=True)
    check_number("rate", rate, low=0, open_low=True)
    check_number("least", least, low=0)

    def schedule(t):
        return np.minimum(1.0, np.maximum(rate * (np.asarray(t) + offset) ** -decay, least))

    return schedule


def averaged_from(schedule: Callable, turn: float) -> Callable:
    """``rho_t`` of `schedule` before step `turn`, then ``1 / (1 / rho_turn + t - turn)``.

    With the latter, parameters become the mean of the estimates of all steps since (suffix
    averaging, Rakhlin, Shamir, Sridharan 2012): the noise of a rate that is large, so that steps
    forget early mistakes, ends with it.

    Examples
    --------
    >>> averaged_from(constant(0.5), 2)(np.array([0, 2, 4]))
    array([0.5 , 0.5 , 0.25])
    """
    rate = float(schedule(np.array([turn]))[0])

    def averaged(t):
        t = np.asarray(t)
        return np.where(t < turn, schedule(t), 1.0 / (1.0 / rate + np.maximum(t - turn, 0)))

    return averaged


def of_parts(schedule: Callable, parts: float) -> Callable:
    """Rates of the parts of batches that have been cut in so many.

    Together they do what the batch did: all have the same weight, and what was there before keeps
    ``1 - rho`` of its own.  A share of the batch's rate for each would take less away, and those
    that follow would take from those before.

    Parameters
    ----------
    schedule : callable
        Of whole batches; part t is one of batch ``t // parts``.
    parts : float, >= 1

    Examples
    --------
    >>> of_parts(robbins_monro(1.0, 1.0), 2)(np.array([0, 1, 2, 3]))
    array([1.        , 0.5       , 0.33333333, 0.25      ])
    """
    if parts == 1:
        return schedule

    def rates(t):
        t = np.asarray(t)
        batch = np.floor(t / parts)
        return _of_part(schedule(batch), parts, t - parts * batch, 1.0)

    return rates


def of_stream(schedule: Callable, whole: int, before: int, size: int, first: int = 0) -> Callable:
    """Rates of steps over the next items of a stream, however it is cut.

    As in :func:`of_parts`, the steps that make up a batch do together what the batch does.

    Parameters
    ----------
    schedule : callable
        Of batches.
    whole : int
        Items of a batch.
    before : int
        Items that came earlier.
    size : int
        Items of a step.
    first : int
        Number of the first step.

    Examples
    --------
    >>> of_stream(robbins_monro(1.0, 1.0), 20, before=10, size=5)(np.array([0, 1, 2]))
    array([0.33333333, 0.25      , 0.2       ])
    """

    def rates(t):
        batch, rest = np.divmod(before + (np.asarray(t) - first) * size, whole)
        return _of_part(schedule(batch), whole, rest, size)

    return rates


def _of_part(rate, whole, before, part):
    """Rate of a part of a batch of size `whole`, of which `before` was there earlier."""
    rate = np.asarray(rate)
    return rate * part / (whole * (1.0 - rate) + rate * (before + part))


def at_least(schedule: Callable, least: float) -> Callable:
    """``rho_t`` of `schedule`, but no less than `least`, and no more than 1.

    Examples
    --------
    >>> at_least(robbins_monro(1.0, 1.0), 0.3)(np.array([0, 1, 9]))
    array([1. , 0.5, 0.3])
    """
    return lambda t: np.minimum(1.0, np.maximum(schedule(t), least))


def constant(rate: float) -> Callable:
    """``rho_t = rate`` for ever (Corollary 1 of the paper).

    Examples
    --------
    >>> constant(0.1)(np.array([0, 5]))
    array([0.1, 0.1])
    """
    check_number("learning_rate", rate, low=0, high=1, open_low=True)
    return lambda t: np.full(np.shape(t), float(rate))


def scaled_rate(
    rate: float,
    *,
    master_batch: int = 1,
    n_jobs: int = 1,
    local_steps: int = 1,
    global_rate: float = 1.0,
    rule: str = "per_T",
) -> float:
    """Carry a rate tuned at M = p = B = 1 over to other values, rule (13).

    ``"per_T"``: at a fixed number of *global* steps, Corollary 1 gives rate / sqrt(M p B).
    ``"per_sample"``: at a fixed number of *samples*, the rate stays.  Both are rates of the sum of
    M updates; where the master averages them, with a `global_rate` of 1/M, local steps are M times
    as large.  ``"constant"``: the rate stays in any case.

    Examples
    --------
    >>> scaled_rate(0.1, n_jobs=4)
    0.05
    >>> scaled_rate(0.1, master_batch=4, global_rate=0.25)
    0.2
    """
    check_choice("lr_rule", rule, LR_RULES)
    if rule == "constant":
        return rate
    if rule == "per_T":
        rate /= math.sqrt(master_batch * n_jobs * local_steps)
    averages = math.isclose(global_rate * master_batch, 1.0)
    return rate * master_batch if averages else rate
