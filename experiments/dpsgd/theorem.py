"""Theorem 3.1 on trial: mean squared gradient norms of a network on a virtual cluster.

Master, workers and virtual threads run Alg. 1-2 on a network with one hidden layer, which is not
convex, at the rate of Corollary 1, ``eta = sqrt(D / (L V^2 T M p B))``, with the D, L and V^2 that
:func:`constants` estimates.  The theorem says

    (1/T) sum_t E |grad f(v_t)|^2 = O(1 / sqrt(T M p B))

whatever the staleness, as long as the workers n are at most of the order of sqrt(T) and the threads
p of T^(1/4).  The norm is that of the full gradient over the training items, at about 32 moments of
a run, from its start on.
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
FORMS = {  # n, M, p, B
    "n = M = p = B = 1": (1, 1, 1, 1),
    "n = M = 4": (4, 4, 1, 1),
    "p = 4": (1, 1, 4, 1),
    "B = 4": (1, 1, 1, 4),
    "n = M = p = 2": (2, 2, 2, 1),
}
LENGTHS = (128, 512, 2048)  # T
WORKERS = (1, 4, 16, 32, 64, 128)
THREADS = (1, 2, 4, 8, 16)


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
    """Mean squared norm over T global steps of M p B gradients, at rate c / sqrt(T M p B)."""
    X, y = items()
    passes = n_steps * m * p * b * BATCH // ITEMS
    rate = c / float(np.sqrt(n_steps * m * p * b))
    found = []
    optimizer = DPSGD(
        learning_rate=rate, batch_size=BATCH, max_iter=passes, engine="simulated", n_jobs=p,
        local_steps=b, evaluate_every=min(1.0, passes / LOOKS), random_state=seed,
        cluster=VirtualCluster(
            n_workers=n, master_batch=m, network=Network(0.0, np.inf), seed=seed,
            # Workers and threads are equally fast, but for chance.
            timing=Timing(step=1.0, value=0.0, spread=(0.8, 1.0, 1.2)),
        ),
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
        "norm": statistics.mean(norms), "global_steps": len(result.exchanges) / m,
        "staleness": float(result.exchanges["staleness"].mean()),
        "loss": network.mean_loss(result.x, X, y, CLASSES),
    }  # fmt: skip


def run(n_steps: int, seeds: int) -> list[dict]:
    """Three sweeps: over T, over the workers and over the threads at T = `n_steps`."""
    plan = [("T", name, (length, *form)) for name, form in FORMS.items() for length in LENGTHS]
    plan += [("workers", "M = 1", (n_steps, n, 1, 1, 1)) for n in WORKERS]
    plan += [("threads", "n = M = 1", (n_steps, 1, 1, p, 1)) for p in THREADS]
    found, rows = constants(), []
    c = float(np.sqrt(found["drop"] / (found["L"] * found["V2"])))
    for sweep, name, settings in plan:
        for seed in range(seeds):
            row = measure(*settings, seed, c)
            rows.append({"sweep": sweep, "name": name, **row, "c": c, **found})
        print(rows[-1], flush=True)
    return rows


def medians(rows, sweep: str) -> dict[str, list[dict]]:
    """Medians over the seeds: name -> records in the order of the sweep."""
    found = {}
    for row in rows:
        if row["sweep"] == sweep and row["seed"] == 0:
            same = [r for r in rows if all(r[k] == row[k] for k in ("sweep", "name", *"TnMpB"))]
            keys = "norm", "staleness", "loss"
            found.setdefault(row["name"], []).append(
                {**row, **{k: statistics.median(r[k] for r in same) for k in keys}}
            )
    return found


def scaled(row) -> float:
    """The mean squared norm times sqrt(T M p B): the theorem bounds it."""
    return row["norm"] * np.sqrt(row["T"] * row["M"] * row["p"] * row["B"])


def bound(row) -> float:
    """What (11) bounds :func:`scaled` by where nothing is over-written: 6 sqrt(L D V^2)."""
    return 6 * float(np.sqrt(row["L"] * row["drop"] * row["V2"]))


def table(rows) -> list[str]:
    """Lines of Markdown."""
    lines = [
        "| sweep | | T | n | M | p | B | staleness | rate | mean \\|grad\\|^2 "
        "| times sqrt(T M p B) | loss at the end |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    slopes = []
    for sweep in ("T", "workers", "threads"):
        for name, found in medians(rows, sweep).items():
            for r in found:
                lines.append(
                    f"| {sweep} | {name} | {r['T']} | {r['n']} | {r['M']} | {r['p']} | {r['B']} "
                    f"| {r['staleness']:.1f} | {r['rate']:.4f} | {r['norm']:.5f} "
                    f"| {scaled(r):.3f} | {r['loss']:.3f} |"
                )
            if sweep == "T":
                logs = np.log([[r["T"], r["norm"]] for r in found]).T
                slopes.append(f"{name}: {np.polyfit(*logs, 1)[0]:.2f}")
    return [
        *lines, "", f"Exponents of T, by least squares (-0.5 in the bound): {'; '.join(slopes)}.",
        "", f"Rates are c / sqrt(T M p B), c = sqrt(D / (L V^2)) = {r['c']:.3f}: D = "
        f"{r['drop']:.2f}, L = {r['L']:.2f}, V^2 = {r['V2']:.3f}.  The last column but one is at "
        f"most 6 sqrt(L D V^2) = {bound(r):.1f} in (11).",
    ]  # fmt: skip


def plot(rows, n_steps: int, path) -> None:
    """Mean squared norms over T, workers and threads, with the bounds."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(14, 4))
    for name, found in medians(rows, "T").items():
        axes[0].plot([r["T"] for r in found], [r["norm"] for r in found], "o-", label=name)
    limit = bound(rows[0])
    axes[0].plot(LENGTHS, limit / np.sqrt(LENGTHS), "k:", label="bound (11), M p B = 1")
    axes[0].set(xlabel="global steps T", ylabel="mean |grad f(v_t)|^2", yscale="log")
    for axis, sweep, key, power in (
        (axes[1], "workers", "n", 1 / 2), (axes[2], "threads", "p", 1 / 4),
    ):  # fmt: skip
        for name, found in medians(rows, sweep).items():
            axis.plot([r[key] for r in found], [scaled(r) for r in found], "o-", label=name)
        mark = n_steps**power
        axis.axvline(mark, color="k", ls="--", label=f"T^(1/{1 / power:g}) = {mark:.0f}")
        axis.axhline(limit, color="k", ls=":", label="bound (11)")
        axis.set(xlabel=f"{sweep} {key}, T = {n_steps}", yscale="log",
                 ylabel="mean |grad|^2 sqrt(T M p B)")  # fmt: skip
    for axis in axes:
        axis.set_xscale("log", base=2)
        axis.grid(alpha=0.3)
        axis.legend(fontsize=8)
    figure.suptitle("A network with 16 hidden units on 1,024 digits, simulated cluster")
    figure.tight_layout()
    figure.savefig(path, dpi=120)
