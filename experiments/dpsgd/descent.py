"""One run of the trial of Theorem 3.1: Alg. 1-2 on a network that is not convex, in virtual time.

The network has one hidden layer and classifies digits.  Master, workers and virtual threads run at
the rate of Corollary 1, ``eta = sqrt(D / (L V^2 T M p B))``, with the D, L and V^2 that
:func:`constants` estimates.
"""

from __future__ import annotations

import statistics

import numpy as np
from scipy.special import softmax

from dpsvi import DPSGD, VirtualCluster
from dpsvi.cluster.virtual import Network, Timing
from dpsvi.optimize import network
from experiments.dpsgd import data

HIDDEN, CLASSES, ITEMS, BATCH = 16, 10, 1024, 8
LOOKS = 32


def gradient(x, X, y) -> np.ndarray:
    """Mean gradient over the items, in numpy."""
    W, b, U, c = network.layers(x, CLASSES)
    hidden = np.tanh(X @ W.T + b)
    error = softmax(hidden @ U + c, axis=1)
    error[np.arange(len(y)), y] -= 1
    error /= len(y)
    back = error @ U.T * (1 - hidden**2)
    found = np.zeros_like(x)
    for part, value in zip(
        network.layers(found, CLASSES),
        (back.T @ X, back.sum(axis=0), hidden.T @ error, error.sum(axis=0)), strict=True,
    ):  # fmt: skip
        part[...] = value
    return found


def squared_norm(x, X, y) -> float:
    """|grad f(x)|^2 over all items."""
    return float(np.sum(gradient(x, X, y) ** 2))


def items():
    """The training items."""
    X, y, *_ = data.digits()
    return X[:ITEMS].astype(np.float64), y[:ITEMS]


def constants(seed: int = 0) -> dict:
    """f(v_0) - f* (f* = 0), L and V^2: the largest of the start and after 1 and 4 passes.

    L is the largest eigenvalue of the Hessian by power iteration on differences of gradients, V^2
    the mean squared norm of the gradient of a batch.
    """
    X, y = items()
    rng = np.random.default_rng(seed)
    x = start = network.start(X.shape[1], CLASSES, HIDDEN, rng)
    lipschitz, noise = [], []
    for passes in (0, 1, 4):
        optimizer = DPSGD(learning_rate=0.05, batch_size=BATCH, max_iter=passes, random_state=seed)
        x = optimizer.minimize(network.objective(X, y, CLASSES, HIDDEN), start).x
        direction = rng.normal(size=x.shape)
        for _ in range(30):
            direction *= 1e-4 / np.linalg.norm(direction)
            direction = (gradient(x + direction, X, y) - gradient(x, X, y)) / 1e-4
        lipschitz.append(float(np.linalg.norm(direction)))
        batches = rng.permutation(ITEMS).reshape(-1, BATCH)
        noise.append(float(np.mean([squared_norm(x, X[i], y[i]) for i in batches])))
    drop = network.mean_loss(start, X, y, CLASSES)
    return {"drop": drop, "L": max(lipschitz), "V2": max(noise)}


def measure(n_steps: int, n: int, m: int, p: int, b: int, seed: int, c: float) -> dict:
    """Mean squared norm over T global steps of M p B gradients, at rate c / sqrt(T M p B).

    The norm is that of the full gradient, at about 32 moments of the run, from its start on.  n = 0
    is serial SGD, without a master; then M = p = B = 1.
    """
    X, y = items()
    passes = n_steps * m * p * b * BATCH // ITEMS
    rate = c / float(np.sqrt(n_steps * m * p * b))
    found = []
    optimizer = DPSGD(
        learning_rate=rate, batch_size=BATCH, max_iter=passes, n_jobs=p,
        evaluate_every=min(1.0, passes / LOOKS), random_state=seed, **_engine(n, m, b, seed),
    )  # fmt: skip
    x0 = network.start(X.shape[1], CLASSES, HIDDEN, np.random.default_rng(seed))
    every, looks = max(1, passes // LOOKS), [0]

    def look(intermediate_result):
        looks[0] += 1
        if looks[0] % every == 0:
            found.append(squared_norm(intermediate_result.x, X, y))

    result = optimizer.minimize(network.objective(X, y, CLASSES, HIDDEN), x0, callback=look)
    norms = [squared_norm(x0, X, y), *found[:-1]]  # of the parameters that steps started from
    return {
        "T": n_steps, "n": n, "M": m, "p": p, "B": b, "seed": seed, "rate": rate,
        "norm": statistics.mean(norms),
        "global_steps": len(result.exchanges) / m if n else result.njev,
        "staleness": float(result.exchanges["staleness"].mean()) if n else 0.0,
        "loss": network.mean_loss(result.x, X, y, CLASSES),
    }  # fmt: skip


def _engine(n, m, b, seed) -> dict:
    """Parameters of DPSGD that say where it runs."""
    if not n:
        return {"engine": "serial"}
    cluster = VirtualCluster(
        n_workers=n, master_batch=m, network=Network(0.0, np.inf), seed=seed,
        # Workers and threads are equally fast, but for chance.
        timing=Timing(step=1.0, value=0.0, spread=(0.8, 1.0, 1.2)),
    )  # fmt: skip
    return {"engine": "simulated", "local_steps": b, "cluster": cluster}
