"""The task of the trials: a network of two layers learns scikit-learn's digits, SIMULATED workers.

A step is a batch of 4 images unless a trial says otherwise, and takes a millisecond of virtual
time, a fifth more or less by chance; messages take no time unless a trial gives a network.  The
rate is that of a worker's own steps, for every strategy: :class:`dpsvi.DPSGD` multiplies rates by n
where a mean of n replicas is taken, and is given the n-th part there.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from dpsvi import DPSGD, VirtualCluster, strategies
from dpsvi.cluster.virtual import Network, Timing
from dpsvi.errors import DivergedError
from dpsvi.optimize import network
from experiments.dpsgd import data

HIDDEN, CLASSES, BATCH = 32, 10, 4
VALIDATION = 307  # of the 1,347 training images, so that 1,040 are left to learn from
FREE = Network(latency=0.0, bandwidth=np.inf)
TIMING = Timing(step=1e-3, value=0.0, spread=(0.8, 1.0, 1.2))


class Images(NamedTuple):
    """Pixels from 0 to 1, (n, 64), and digits, (n,)."""

    X: np.ndarray
    y: np.ndarray


@cache
def parts() -> dict[str, Images]:
    """Images to learn from (`train`), to choose rates by (`tuning`), and to judge by (`test`)."""
    X, y, test_X, test_y = data.digits()
    X, test_X, first = X.astype(float), test_X.astype(float), VALIDATION
    return {
        "train": Images(X[first:], y[first:]), "tuning": Images(X[:first], y[:first]),
        "test": Images(test_X, test_y),
    }  # fmt: skip


def start(seed: int) -> np.ndarray:
    """First parameters of a fit."""
    return network.start(64, CLASSES, HIDDEN, np.random.default_rng(seed))


def loss(x, images: Images) -> float:
    """Mean loss in nats."""
    return network.mean_loss(x, images.X, images.y, CLASSES)


def error(x, images: Images) -> float:
    """Share of the images that are taken for another digit."""
    return float(np.mean(network.scores(x, images.X, CLASSES).argmax(axis=1) != images.y))


def fit(
    strategy: str, rate: float, seed: int, *, n: int, passes: int, options: dict | None = None,
    batch: int = BATCH, local_steps: int = 1, looks: float = 1.0, tuning: bool = False,
    link: Network = FREE, make=VirtualCluster, look=None,
) -> dict:  # fmt: skip
    """What a fit with n virtual workers came to.

    Parameters
    ----------
    strategy, options
        As for :class:`dpsvi.Cluster`.
    rate : float
        Of a worker's own steps.
    looks : float
        Passes between two looks.
    tuning : bool
        Whether to judge by the images for choosing, else by those for tests.
    link : Network
    make : callable
        What makes the cluster, :class:`dpsvi.VirtualCluster` or a subclass of it.
    look : callable(x) or None
        What it returns is kept, at every look.

    Returns
    -------
    dict
        ``train``, ``loss`` and ``error`` at the end; ``curve``, a list of ``[passes, virtual
        seconds, loss to judge by]``; ``seconds``, ``n``, ``exchanges``, ``bytes``; ``looks``.  Or
        ``failed``.
    """
    images, judged = parts(), parts()["tuning" if tuning else "test"]
    cluster = make(
        n_workers=n, strategy=strategy, strategy_options=options or {}, network=link,
        timing=TIMING, seed=seed,
    )  # fmt: skip
    kind = strategies.get(strategy)
    replicas = kind(**options or {}).averaged(n)
    seen = []
    optimizer = DPSGD(
        learning_rate=rate / replicas, batch_size=batch, max_iter=passes, engine="simulated",
        local_steps=local_steps, cluster=cluster, evaluate_every=looks, random_state=seed,
    )  # fmt: skip
    try:
        with np.errstate(all="ignore"):
            found = optimizer.minimize(
                network.objective(*images["train"], CLASSES, HIDDEN), start(seed),
                fun=lambda x: loss(x, judged),
                callback=None if look is None else lambda result: seen.append(look(result.x)),
            )  # fmt: skip
    except DivergedError as reason:
        return {"failed": str(reason)}
    history = found.history
    return {
        "train": loss(found.x, images["train"]), "loss": float(found.fun),
        "error": error(found.x, judged), "seconds": float(history["seconds"][-1]),
        "n": n, "exchanges": len(found.exchanges), "bytes": int(found.exchanges["n_bytes"].sum()),
        "curve": [list(map(float, row)) for row in history[["epoch", "seconds", "fun"]]],
        "looks": seen,
    }  # fmt: skip
