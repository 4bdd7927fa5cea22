"""How good a list of recommended items is: NDCG and recall at n."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike


def ndcg(recommended: ArrayLike, relevant: Any) -> float:
    """Mean normalised discounted cumulative gain of lists of n items (Järvelin, Kekäläinen 2002).

    ``DCG = sum_r gain_r / log2(r + 1)`` over ranks r = 1 ... n, divided by that of the best list.

    Parameters
    ----------
    recommended : int array of shape (n_users, n)
        Items, best first; -1 for none, as
        :meth:`dpsvi.families.recommender.Recommender.recommend` answers.
    relevant : sparse or dense matrix of shape (n_users, n_items)
        Gain of each item, >= 0.  Users without any are left out.

    Returns
    -------
    float in [0, 1]

    Raises
    ------
    ValueError
        Shapes differ, a gain is negative, or no user has one above 0.

    Examples
    --------
    >>> relevant = [[1, 0, 1], [0, 1, 0]]  # of two users
    >>> ndcg([[0, 2], [1, 0]], relevant)
    1.0
    >>> round(ndcg([[1, 0], [1, 0]], relevant), 3)
    0.693
    """
    gains, relevant = _gains(recommended, relevant)
    n = gains.shape[1]
    discounts = 1 / np.log2(np.arange(2, n + 2))
    best = np.zeros(gains.shape)
    for u in range(len(best)):
        top = np.sort(relevant.data[relevant.indptr[u] : relevant.indptr[u + 1]])[::-1][:n]
        best[u, : len(top)] = top
    return float(np.mean((gains @ discounts) / (best @ discounts)))


def recall(recommended: ArrayLike, relevant: Any) -> float:
    """Mean share of a user's relevant items that are among the n recommended ones.

    Parameters, errors: as :func:`ndcg`; every item with a gain above 0 is relevant.

    Examples
    --------
    >>> recall([[0, 1], [1, 0]], [[1, 0, 1], [0, 1, 0]])  # one of two, and one of one
    0.75
    """
    gains, relevant = _gains(recommended, relevant)
    return float(np.mean((gains > 0).sum(axis=1) / np.diff(relevant.indptr)))


def _gains(recommended, relevant):
    """Gains of the recommended items, and all gains, of users who have some."""
    recommended, relevant = np.asarray(recommended), scipy.sparse.csr_array(relevant)
    if recommended.ndim != 2 or len(recommended) != relevant.shape[0]:
        raise ValueError(
            f"recommended must have a row for each of the {relevant.shape[0]} users, got shape "
            f"{recommended.shape}"
        )
    if recommended.size and not -1 <= recommended.min() <= recommended.max() < relevant.shape[1]:
        raise ValueError(
            f"recommended items must be in -1..{relevant.shape[1] - 1}, got "
            f"{recommended.min()}..{recommended.max()}"
        )
    if relevant.data.min(initial=0) < 0:
        raise ValueError(f"gains must be >= 0, got {relevant.data.min()}")
    relevant = relevant.copy()
    relevant.eliminate_zeros()
    some = np.diff(relevant.indptr) > 0
    if not some.any():
        raise ValueError(f"none of the {len(some)} users has a relevant item")
    recommended, relevant = recommended[some], relevant[some]
    users = np.arange(len(recommended))[:, None]
    gains = np.asarray(relevant[users, np.maximum(recommended, 0)].todense())
    return np.where(recommended < 0, 0.0, gains), relevant
