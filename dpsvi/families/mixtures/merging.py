"""Merges of components that raise the bound, on responsibilities that are known.

With q(theta) at its best for the responsibilities r, the ELBO is

    sum_k ln Z(prior + statistics_k) + A(N) - sum_nk r_nk ln r_nk + const

where Z is the normaliser of a component's conjugate prior and A(N) the bound of the weights (Beal
2003, 2.4).  Two components merge by adding their columns of r, and so their statistics (Hughes and
Sudderth 2013): that saves the second one's complexity and loses the entropy of who is whose.  All
terms are known, so that a merge is a step up the bound and not a guess.
"""

from __future__ import annotations

import numpy as np
from scipy.special import xlogy

from dpsvi.expfam.gaussian import statistics
from dpsvi.families.mixtures.components import Prior

_ROUNDS = 10  # of merges; two or three are the rule


def merge_until_stable(points, resp, prior: Prior, weight_bound, fewest, most, ascend):
    """Improve responsibilities by `ascend` and by :func:`merge` in turn, until no pair gains.

    Only then pairs are merged at a loss, while there are more than `most`.

    Parameters
    ----------
    ascend : callable(resp) -> resp
        Coordinate ascent: raises the bound and keeps the sums of rows.
    points, resp, prior, weight_bound, fewest, most
        As in :func:`merge`.
    """
    for _ in range(_ROUNDS):
        resp = ascend(resp)
        merged = merge(points, resp, prior, weight_bound, fewest, resp.shape[1])
        if merged.shape == resp.shape:
            if resp.shape[1] <= most:
                return resp
            merged = merge(points, resp, prior, weight_bound, fewest, most)
        resp = merged
    return merge(points, resp, prior, weight_bound, fewest, most)


def merge(points, resp, prior: Prior, weight_bound, fewest, most):
    """Merge the best two components while that raises the bound or there are too many.

    Parameters
    ----------
    points : float64 array, (n, D)
    resp : float64 array, (n, K)
        Rows may have any sum: what a point counts.
    prior : Prior
    weight_bound : callable(counts) -> float
        A(N), in nats.
    fewest, most : int, >= 1
        Components that may be left: merges end at `fewest`, and not before `most`.

    Returns
    -------
    float64 array, (n, K')
        Without components of less than one point.
    """
    resp = _drop_empty(resp).T.copy()
    origins = np.tile(prior.mean, (len(resp), 1))  # not a view: that is another type to a kernel
    rows = statistics(points, resp.T, origins, prior.covariance.ndim == 1)
    evidence = prior.log_evidence(rows)
    # What merging i and j > i brings of the evidence, and what it costs of the entropy
    gains = np.full((len(rows), len(rows)), -np.inf)
    losses = np.full_like(gains, np.nan)
    for i in range(len(rows)):
        gains[i, i + 1 :] = prior.log_evidence(rows[i] + rows[i + 1 :]) - evidence[i + 1 :]
        gains[i] -= evidence[i]
    while len(rows) > fewest:
        gain, i, j = _best(resp, rows[:, 0], gains, losses, weight_bound)
        if gain <= 0 and len(rows) <= most:
            break
        resp[i] += resp[j]
        rows[i] += rows[j]
        evidence[i : i + 1] = prior.log_evidence(rows[i])
        resp, rows, evidence = (np.delete(x, j, axis=0) for x in (resp, rows, evidence))
        gains, losses = (np.delete(np.delete(x, j, 0), j, 1) for x in (gains, losses))
        new = prior.log_evidence(rows[i] + rows) - evidence - evidence[i]
        gains[i, i + 1 :], gains[:i, i] = new[i + 1 :], new[:i]
        losses[i], losses[:, i] = np.nan, np.nan
    return resp.T


def _drop_empty(resp):
    """Without components of less than one point: a point's first choice gets what they had."""
    size = resp.sum(axis=0)
    kept = resp[:, size >= min(1.0, size.max())]
    kept[np.arange(len(kept)), kept.argmax(axis=1)] += resp.sum(axis=1) - kept.sum(axis=1)
    return kept


def _best(resp, counts, gains, losses, weight_bound):
    """The pair whose merge raises the bound most, and by how much.

    With multinomial weights and hard responsibilities the gain would be `hopes`; it is hardly ever
    more, so pairs are looked at in that order until hope ends.
    """
    own = xlogy(counts, counts)
    both = counts[:, None] + counts
    hopes = gains + xlogy(both, both) - own[:, None] - own
    before, best = weight_bound(counts), (-np.inf, 0, 1)
    for pair in np.argsort(-hopes, axis=None):
        i, j = divmod(int(pair), len(counts))
        if hopes[i, j] <= best[0] or not i < j:
            break
        if np.isnan(losses[i, j]):
            r, s = resp[i], resp[j]
            losses[i, j] = np.sum(xlogy(r + s, r + s) - xlogy(r, r) - xlogy(s, s))
        after = counts.copy()
        after[[i, j]] = both[i, j], 0.0
        gain = gains[i, j] - losses[i, j] + weight_bound(after) - before
        best = max(best, (gain, i, j))
    return best
