"""Topics as points in the plane: classical scaling of Jensen-Shannon distances.

The Jensen-Shannon distance is the square root of the divergence; the root is a metric [1]_ that
embeds isometrically in a Hilbert space [2]_, so classical scaling [3]_ meets no negative
eigenvalue other than rounding, and its first two axes are the best linear view of the topics.

References
----------
.. [1] Endres, Schindelin. A new metric for probability distributions. IEEE Trans. Information
   Theory 49(7), 2003.
.. [2] Fuglede, Topsoe. Jensen-Shannon divergence and Hilbert space embedding. ISIT, 2004.
.. [3] Gower. Some distance properties of latent root and vector methods used in multivariate
   analysis. Biometrika 53(3-4), 1966.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

MOST_TOPICS = 2000  # of a page with a map: it costs their square, and nobody can tell more apart
BLOCK_ENTRIES = 1 << 18  # float64 entries per block: 2 MiB, so that a block stays in cache


def js_distances(components):
    """Jensen-Shannon distances between all pairs of topics.

    Takes about ``n_components**2 * n_words / 2`` logarithms and 2 MiB of scratch memory.

    Parameters
    ----------
    components : array-like of float, shape (n_components, n_words)
        Non-negative topic-word weights; every row is normalised to sum to one.

    Returns
    -------
    distances : float64 array, shape (n_components, n_components)
        Square roots of the divergences in bits: 0 for equal topics, 1 for topics without a
        common word.

    Raises
    ------
    ValueError
        If `components` is not a non-empty matrix of finite, non-negative numbers with a positive
        sum in every row.
    """
    topics = _distributions(components)
    n_topics, n_words = topics.shape
    # In bits, JS(p, q) = 1 + (sum p log p + sum q log q - sum (p + q) log (p + q)) / 2.
    own = np.zeros(n_topics)
    joint = np.zeros((n_topics, n_topics))
    width = max(1, BLOCK_ENTRIES // n_topics)
    for start in range(0, n_words, width):
        block = np.ascontiguousarray(topics[:, start : start + width])
        own += _x_log_x(block)
        for i in range(n_topics - 1):
            joint[i, i + 1 :] += _x_log_x(block[i] + block[i + 1 :])
    upper = np.triu(1 + (own[:, None] + own - joint) / 2, k=1)
    return np.sqrt(np.clip(upper + upper.T, 0, 1))


def topic_map(components: ArrayLike, weights: ArrayLike | None = None) -> np.ndarray:
    """Place topics in the plane so that similar topics lie close together.

    Parameters
    ----------
    components : array-like of float, shape (n_components, n_words)
        Non-negative topic-word weights, for instance ``components_`` of a fitted model.
    weights : array-like of float, shape (n_components,), optional
        Share of each topic in the corpus. The origin is the mean position under these weights,
        that of the average token; they do not turn the axes, which a few heavy topics would
        otherwise take for themselves. Equal shares by default.

    Returns
    -------
    positions : float64 array, shape (n_components, 2)
        Principal coordinates, the axis with the larger spread first, each turned so that its
        entry of largest magnitude is positive. An axis without spread (one topic, two topics,
        equal topics) is zero.

    Raises
    ------
    ValueError
        If `components` is not as `js_distances` wants it, or `weights` has another length, an
        entry that is negative or not finite, or no positive entry.

    Examples
    --------
    >>> from dpsvi.report import topic_map
    >>> topic_map([[1, 0], [0, 1]])
    array([[ 0.5,  0. ],
           [-0.5,  0. ]])
    """
    squared = js_distances(components) ** 2
    mass = _mass(weights, len(squared))
    # Double centring turns squared distances into inner products of points around their mean.
    gram = -0.5 * (squared - squared.mean(axis=0))
    gram -= gram.mean(axis=1, keepdims=True)
    values, vectors = np.linalg.eigh(gram)
    positions = np.zeros((len(squared), 2))
    # The distances are good to 1e-7, so smaller eigenvalues than its square are rounding.
    for axis, index in enumerate(np.argsort(values)[::-1][:2]):
        if values[index] > 1e-14:
            column = vectors[:, index] * np.sqrt(values[index])
            column -= mass @ column
            positions[:, axis] = column * np.sign(column[np.abs(column).argmax()])
    return positions


def _distributions(components):
    topics = np.asarray(components, dtype=np.float64)
    if topics.ndim != 2 or 0 in topics.shape:
        raise ValueError(
            f"components must be a non-empty matrix (topics, words), got shape {topics.shape}"
        )
    bad = np.argwhere(~(np.isfinite(topics) & (topics >= 0)))
    if len(bad):
        topic, word = bad[0]
        raise ValueError(
            f"components[{topic}, {word}] is {topics[topic, word]}; allowed: finite and >= 0"
        )
    totals = topics.sum(axis=1, keepdims=True)
    if not totals.all():
        raise ValueError(f"components[{totals.argmin()}] sums to 0; a topic needs some weight")
    return topics / totals


def _mass(weights, n_topics):
    mass = np.ones(n_topics) if weights is None else np.asarray(weights, dtype=np.float64)
    if mass.shape != (n_topics,):
        raise ValueError(f"weights must have shape ({n_topics},), got {mass.shape}")
    if not (np.isfinite(mass).all() and mass.min() >= 0 and mass.max() > 0):
        raise ValueError(f"weights must be finite, >= 0 and not all zero, got {mass}")
    return mass / mass.sum()


def _x_log_x(x):
    """Row sums of x log2 x, with 0 log 0 = 0."""
    logs = np.maximum(x, np.finfo(np.float64).tiny)
    np.log2(logs, out=logs)
    return np.einsum("...w,...w->...", x, logs)
