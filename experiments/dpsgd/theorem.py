"""Theorem 3.1 on trial: mean squared gradient norms of a network on a virtual cluster.

Master, workers and virtual threads run Alg. 1-2 on a network with one hidden layer, which is not
convex, at the rate of Corollary 1, ``eta = c / sqrt(T M p B)``.  The theorem says

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

HIDDEN, CLASSES, ITEMS, BATCH, C = 16, 10, 1024, 8, 4.0
LOOKS = 32
FORMS = {  # n, M, p, B
    "n = M = p = B = 1": (1, 1, 1, 1),
    "n = M = 4": (4, 4, 1, 1),
    "p = 4": (1, 1, 4, 1),
    "B = 4": (1, 1, 1, 4),
    "n = M = 4, p = B = 2": (4, 4, 2, 2),
}
LENGTHS = (128, 512, 2048)  # T
WORKERS = (1, 4, 16, 32, 64, 128)
THREADS = (1, 2, 4, 8, 16, 32)


def squared_norm(x, X, y) -> float:
    """|grad f(x)|^2 over all items, in numpy."""
    W, b, U, c = network.layers(x, CLASSES)
    hidden = np.tanh(X @ W.T + b)
    error = softmax(hidden @ U + c, axis=1)
    error[np.arange(len(y)), y] -= 1
    error /= len(y)
    back = error @ U.T * (1 - hidden**2)
    parts = back.T @ X, back.sum(axis=0), hidden.T @ error, error.sum(axis=0)
    return float(sum(np.sum(part**2) for part in parts))


def measure(n_steps: int, n: int, m: int, p: int, b: int, seed: int) -> dict:
    """Mean squared norm over T global steps with M p B gradients each."""
    X, y, *_ = data.digits()
    X, y = X[:ITEMS].astype(np.float64), y[:ITEMS]
    passes = n_steps * m * p * b * BATCH // ITEMS
    rate = C / float(np.sqrt(n_steps * m * p * b))
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
    rows = []
    for sweep, name, settings in plan:
        for seed in range(seeds):
            rows.append({"sweep": sweep, "name": name, **measure(*settings, seed)})
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
        *lines, "", f"Exponents of T, by least squares (-0.5 in the bound): {'; '.join(slopes)}."
    ]  # fmt: skip


def plot(rows, n_steps: int, path) -> None:
    """Mean squared norms over T, workers and threads, with the bounds."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(14, 4))
    for name, found in medians(rows, "T").items():
        axes[0].plot([r["T"] for r in found], [r["norm"] for r in found], "o-", label=name)
    first = medians(rows, "T")[next(iter(FORMS))]
    bound = first[0]["norm"] * np.sqrt(first[0]["T"] / np.array(LENGTHS))
    axes[0].plot(LENGTHS, bound, "k--", label="1 / sqrt(T)")
    axes[0].set(xlabel="global steps T", ylabel="mean |grad f(v_t)|^2", yscale="log")
    for axis, sweep, key, power in (
        (axes[1], "workers", "n", 1 / 2), (axes[2], "threads", "p", 1 / 4),
    ):  # fmt: skip
        for name, found in medians(rows, sweep).items():
            axis.plot([r[key] for r in found], [scaled(r) for r in found], "o-", label=name)
        mark = n_steps**power
        axis.axvline(mark, color="k", ls="--", label=f"T^(1/{1 / power:g}) = {mark:.0f}")
        axis.set(xlabel=f"{sweep} {key}, T = {n_steps}", yscale="log",
                 ylabel="mean |grad|^2 sqrt(T M p B)")  # fmt: skip
    for axis in axes:
        axis.set_xscale("log", base=2)
        axis.grid(alpha=0.3)
        axis.legend(fontsize=8)
    figure.suptitle("A network with 16 hidden units on 1,024 digits, simulated cluster")
    figure.tight_layout()
    figure.savefig(path, dpi=120)
