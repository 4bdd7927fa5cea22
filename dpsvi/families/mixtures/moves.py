"""Merges, deletes and births of components, as proposals: responsibilities that may be better ones.

The kinds are those of :mod:`dpsvi.estimators.between_parts` (Ueda and others 2000; Hughes and
Sudderth 2013).  Where there is no component without points for a birth, the two that are most alike
are merged first.

Nothing here knows what a component is made of, or whether a proposal is any good:
:mod:`dpsvi.families.mixtures.restructuring` tries them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import entr

_TRIES = 2  # of merges and of births


def proposals(resp, points, weight=None) -> Iterator[tuple[str, np.ndarray]]:
    """Name the kind of each proposal, and give its responsibilities, (n, K); the likeliest first.

    Parameters
    ----------
    resp : float64 array, (n, K)
        Responsibilities now, which are not changed.  The sums of rows stay what they are.
    points : float64 array, (n, D)
    weight : float64 array, (n,), or None
        How often each point counts; None: once.
    """
    mass = resp.sum(axis=0) if weight is None else weight @ resp
    used = np.flatnonzero(mass >= min(1.0, mass.max()))
    pairs = _most_alike(resp, used)
    for i, j in pairs[:_TRIES]:
        yield "merge", _merged(resp, i, j)
    if len(used) > 1:
        yield "delete", _deleted(resp, used[np.argmin(mass[used])])
    splits = [(k, *_split(resp, k, points, weight)) for k in used]
    splits.sort(key=lambda split: -split[2])
    free = np.setdiff1d(np.arange(len(mass)), used)
    for k, side, gain in splits[:_TRIES]:
        others = [pair for pair in pairs if k not in pair]
        if gain == -np.inf or not (len(free) or others):
            continue
        base, row = (resp, free[0]) if len(free) else (_merged(resp, *others[0]), others[0][1])
        born = base.copy()
        born[side, row] += born[side, k]
        born[side, k] = 0.0
        yield "birth", born


def _most_alike(resp, used):
    """Pairs of the components `used`, by how much the same points are theirs; the most first."""
    share = resp[:, used]
    share = share / np.sqrt((share**2).sum(axis=0))
    i, j = np.triu_indices(len(used), 1)
    order = np.argsort(-(share.T @ share)[i, j], kind="stable")
    return list(zip(used[i[order]].tolist(), used[j[order]].tolist(), strict=True))


def _merged(resp, i, j):
    merged = resp.copy()
    merged[:, i] += merged[:, j]
    merged[:, j] = 0.0
    return merged


def _deleted(resp, k):
    rest = resp.copy()
    rest[:, k] = 0.0
    left, all_of_it = (each.sum(axis=1, keepdims=True) for each in (rest, resp))
    # A point of which no other component knows anything goes to all alike.
    alike = (np.arange(resp.shape[1]) != k) / max(1, resp.shape[1] - 1)
    return all_of_it * np.where(left > 1e-100, rest / np.maximum(left, 1e-100), alike)


def _split(resp, k, points, weight):
    """Cut what component k is responsible for in two, across its longest axis.

    Returns
    -------
    side : bool array, (n,)
        On which side of the cut each of all points is.
    gain : float
        In nats: what two normal densities along the axis explain better than one, less the entropy
        of which is whose; -inf where there is nothing to cut.
    """
    own = np.flatnonzero(resp.argmax(axis=1) == k)
    w = np.ones(len(own)) if weight is None else weight[own]
    if not w.any():
        return None, -np.inf
    shifted = points - np.average(points[own], axis=0, weights=w)
    axis = np.linalg.eigh((w[:, None] * shifted[own]).T @ shifted[own])[1][:, -1]
    places = shifted @ axis
    order = np.argsort(places[own])
    place, w = places[own][order], w[order]
    left, sums, total = np.cumsum(w)[:-1], np.cumsum(w * place)[:-1], w @ place**2
    right = w.sum() - left
    cuts = np.flatnonzero((place[1:] > place[:-1]) & (left > 0) & (right > 0))
    if not len(cuts):
        return None, -np.inf
    between = sums[cuts] ** 2 * (1 / left[cuts] + 1 / right[cuts])
    best, within = cuts[np.argmax(between)], max(1.0 - between.max() / total, 1e-6)
    share = left[best] / w.sum()
    gain = w.sum() * (-0.5 * np.log(within) - entr(share) - entr(1 - share))
    return places > (place[best] + place[best + 1]) / 2, gain
