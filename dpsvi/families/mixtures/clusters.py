"""Where components begin: k-means, in one thread, or at random."""

from __future__ import annotations

from functools import cache

import numpy as np


def cluster(points, n_clusters, rng, n_init=1, weight=None):
    """A fitted scikit-learn KMeans with one center for each cluster.

    Parameters
    ----------
    points : float64 array, (n, D)
    n_clusters : int, >= 1
        No more than there are distinct points are made.
    rng : numpy.random.Generator
    n_init : int, >= 1
        Starts, of which the best counts.
    weight : float64 array, (n,), or None
        How often each point counts; None: once.
    """
    from sklearn.cluster import KMeans

    n_clusters = min(n_clusters, len(np.unique(points, axis=0)))
    seed = int(rng.integers(np.iinfo(np.int32).max))
    # Its threads wait for each other, very long where other processes keep the cores busy.
    with _thread_pools().limit(limits=1):
        return KMeans(n_clusters, n_init=n_init, random_state=seed).fit(
            points, sample_weight=weight
        )


@cache
def _thread_pools():
    """The libraries with threads; to find them takes longer than a small k-means."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def first_responsibilities(points, n_components, init_params, rng, weight=None):
    """Responsibilities to start from, (n, K): 0 or 1 by k-means, or random.

    `weight`, (n,), says how often each point counts.

    With fewer distinct points than components k-means leaves some components empty.
    """
    if init_params == "random":
        resp = rng.random((len(points), n_components))
        return resp / resp.sum(axis=1, keepdims=True)
    return np.eye(n_components)[cluster(points, n_components, rng, weight=weight).labels_]
