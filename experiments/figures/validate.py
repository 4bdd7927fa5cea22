"""Simulated against measured: every (n, p) that the cores of this machine can hold.

The virtual cluster is this machine: its times are measured just before each fit that is predicted,
workers share its socket, rows of the master are read where they lie, and messages take as long as
it takes to wake who waits for them, which other fits have shown.
"""

from __future__ import annotations

import dataclasses
import json
import statistics
from pathlib import Path

from experiments import mpiexec
from experiments.figures.draw import pyplot, save
from experiments.figures.runs import ALPHA, perplexity, split


def fit(settings: dict) -> dict | None:
    """One fit, on every rank; what rank 0 measured."""
    from dpsvi import VirtualCluster
    from dpsvi.cluster.virtual import Network

    train, test, _ = split(settings["corpus"], settings["documents"])
    engine, cluster = settings["engine"], None
    if engine == "simulated":
        short = {**settings, "passes": 1, "p": 1}
        timing = estimator(short, VirtualCluster()).fit(train).exchanges_["timing"]
        cluster = VirtualCluster(
            n_workers=settings["n"], workers_a_node=settings["n"],
            timing=dataclasses.replace(timing, read=0.0),
            network=Network(settings["waking"], float("inf")), seed=settings["seed"],
        )  # fmt: skip
    lda = estimator(settings, cluster).fit(train)
    if engine == "mpi":
        from mpi4py import MPI

        if MPI.COMM_WORLD.Get_rank():
            return None
    found = lda.exchanges_
    waited = sum(exchange.waited for exchange in found["exchanges"])
    return {
        "seconds": found["seconds"],
        "perplexity": perplexity(lda._state.natural(), settings["topics"], test),
        "waking": max(0.0, waited - found["busy"]) / (2 * len(found["exchanges"])),
    }


def estimator(settings: dict, cluster):
    """What is fitted."""
    from dpsvi import DPSVILDA

    return DPSVILDA(
        settings["topics"], engine=settings["engine"], cluster=cluster,
        local_step=settings["local_step"], n_jobs=settings["p"], local_steps=settings["B"],
        lr_rule="constant", batch_size=settings["batch_size"], max_iter=settings["passes"],
        evaluate_every=settings["passes"], doc_topic_prior=ALPHA, topic_word_prior=None,
        random_state=settings["seed"],
    )  # fmt: skip


def launch(settings: dict) -> dict:
    """Run :func:`fit` in processes of its own."""
    n_ranks = settings["n"] + 1 if settings["engine"] == "mpi" else 0
    started = mpiexec.start(n_ranks, "experiments.figures", "--fit", json.dumps(settings))
    return mpiexec.finish(started, seconds=900)


def validate(corpus: str, documents: int, seeds: int, n_cores: int, **settings) -> list[dict]:
    """Predicted and measured seconds and perplexity of every (n, p) with n p <= `n_cores`."""
    rows = []
    settings |= {"corpus": corpus, "documents": documents}
    short = {"engine": "mpi", "n": 1, "p": 1, "passes": 1, "seed": seeds}
    settings["waking"] = launch({**settings, **short})["waking"]
    print(f"{1e3 * settings['waking']:.2f} ms to wake a rank", flush=True)
    for n in range(1, n_cores + 1):
        for p in range(1, n_cores // n + 1):
            pairs = []
            for seed in range(seeds):
                common = {**settings, "n": n, "p": p, "seed": seed}
                # The machine becomes slower and faster by itself: now one is first, now the other.
                order = ("simulated", "mpi") if seed % 2 else ("mpi", "simulated")
                found = {engine: launch({**common, "engine": engine}) for engine in order}
                pairs.append((found["simulated"], found["mpi"]))
                print(f"n={n} p={p} seed {seed}: {pairs[-1]}", flush=True)
            row = {"n": n, "p": p}
            for name in ("seconds", "perplexity"):
                ratios = [simulated[name] / measured[name] for simulated, measured in pairs]
                row[name] = {
                    "simulated": statistics.median(pair[0][name] for pair in pairs),
                    "measured": statistics.median(pair[1][name] for pair in pairs),
                    "ratio": statistics.median(ratios), "range": [min(ratios), max(ratios)],
                }  # fmt: skip
            rows.append(row)
    return rows


def table(rows: list[dict]) -> str:
    """Markdown."""
    lines = [
        "| n | p | seconds, simulated | measured | ratio (range) | perplexity, simulated "
        "| measured | ratio |", "|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for row in rows:
        time, found = row["seconds"], row["perplexity"]
        lines.append(
            f"| {row['n']} | {row['p']} | {time['simulated']:.2f} | {time['measured']:.2f} "
            f"| {time['ratio']:.2f} ({time['range'][0]:.2f}-{time['range'][1]:.2f}) "
            f"| {found['simulated']:.0f} | {found['measured']:.0f} | {found['ratio']:.4f} |"
        )
    return "\n".join(lines) + "\n"


def draw(rows: list[dict], path: Path) -> None:
    """The one panel with measured points: both times of this machine, for the same problem."""
    plt = pyplot()
    figure, axis = plt.subplots(figsize=(5.6, 3.9))
    places = range(len(rows))
    for name, form in (("simulated", "o"), ("measured", "k*")):
        seconds = [row["seconds"][name] for row in rows]
        axis.plot(places, seconds, form, markersize=9, label=name)
    axis.set_xticks(places, [f"n = {row['n']}, p = {row['p']}" for row in rows])
    axis.set(ylabel="seconds", ylim=(0, None), xlim=(-0.5, len(rows) - 0.5))
    axis.set_title("This machine, without a network: predicted and MEASURED", fontsize=10)
    axis.grid(alpha=0.3)
    axis.legend()
    save(figure, path)
