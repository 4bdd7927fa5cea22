"""``python -m experiments.staleness``: what staleness costs, displacement against decay.

SIMULATED asynchrony: one process, n workers that take turns (:mod:`dpsvi.cluster.turns`), so
that every update is D' = n - 1 global steps old.  All fits visit the same number of documents.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import sys
import time
from pathlib import Path

import numpy as np

from dpsvi.cluster import Cluster
from dpsvi.cluster.turns import take_turns
from dpsvi.evaluation.completion import completion_perplexity
from dpsvi.families.topics.matrix import FLOAT
from dpsvi.kernels.jit import as_items
from dpsvi.models.lda.estimator import DEFAULTS
from dpsvi.models.lda.model import make_model
from dpsvi.training.job import Job
from dpsvi.training.ledger import Ledger
from dpsvi.training.schedules import robbins_monro
from dpsvi.training.state import State
from experiments.held_out import load_split
from experiments.provenance import provenance

ALPHA = 0.1
STRATEGIES = ("decay", "displacement")


def measure(train, test, args, local_step, strategy, staleness, local_steps, seed) -> dict:
    """Perplexity after the passes; counts of reduced rates come with the warning only."""
    eta = DEFAULTS[local_step].eta(args.topics)
    model = make_model(
        train.n_features, args.topics, ALPHA, eta, local_step=local_step,
        n_sweeps=DEFAULTS[local_step].sweeps, tol=0.005,
    )  # fmt: skip
    rng = np.random.default_rng(seed)
    state = State.start(model, rng, 1)
    items = as_items(train.offsets, train.index, train.value, FLOAT)
    batch_size = DEFAULTS[local_step].batch_size(train.n_items)
    passes = Ledger(train.n_items, batch_size, args.passes, seed)
    job = Job(
        state, items, passes, robbins_monro(4.0, 0.7), local_steps=local_steps,
        most_blind=args.most_blind, cluster=Cluster(strategy=strategy),
    )  # fmt: skip
    started = time.perf_counter()
    master = take_turns(job, staleness + 1)
    seconds = time.perf_counter() - started
    topics = state.natural()[:, : args.topics].astype(np.float64)
    found = completion_perplexity(topics / topics.sum(axis=0), test, ALPHA)
    measured = [exchange.staleness for exchange in master.exchanges]
    return {
        "local_step": local_step, "strategy": strategy, "staleness": staleness,
        "local_steps": local_steps, "seed": seed, "perplexity": float(found.perplexity),
        "mean_staleness": statistics.mean(measured), "seconds": seconds,
        "docs": state.items,
    }  # fmt: skip


def main(argv=None) -> None:
    """Run the grid; write JSON, CSV and a figure."""
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(prog="python -m experiments.staleness", description=__doc__)
    numbers = lambda text: [int(n) for n in text.split(",")]  # noqa: E731
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--documents", type=int, help="training documents (all not held out)")
    parser.add_argument("--topics", type=int, default=100)
    parser.add_argument("--passes", type=int, default=6)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--staleness", type=numbers, default=[0, 1, 2, 4, 8, 16])
    parser.add_argument("--local-steps", type=numbers, default=[1, 4], help="B")
    parser.add_argument("--most-blind", type=float, help="as in dpsvi.training.job.Job")
    parser.add_argument("--steps", default="collapsed,mean_field")
    parser.add_argument("--out", type=Path, default=Path("experiments/results/staleness"))
    args = parser.parse_args(argv)
    source = provenance(
        "experiments.staleness", argv, ["numpy", "numba"],
        {"fit": list(range(args.seeds)), "split": 0},
    )  # fmt: skip
    train, test = load_split(args.corpus, args.documents)
    rows = []
    for local_step in args.steps.split(","):
        for local_steps in args.local_steps:
            for staleness in args.staleness:
                for strategy in STRATEGIES:
                    for seed in range(args.seeds):
                        rows.append(
                            measure(train, test, args, local_step, strategy, staleness,
                                    local_steps, seed)
                        )  # fmt: skip
                    print(json.dumps(rows[-1]), flush=True)
    args.out.mkdir(parents=True, exist_ok=True)
    blind = "" if args.most_blind is None else f"-blind-{args.most_blind:g}"
    stem = args.out / f"{Path(args.corpus).name.split('.')[1]}{blind}"
    facts = {"simulated": True, "training_documents": train.n_items, "rows": rows}
    stem.with_suffix(".json").write_text(json.dumps({**source, **facts}, indent=1) + "\n")
    with open(stem.with_suffix(".csv"), "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    plot(rows, args, stem.with_suffix(".png"))


def plot(rows, args, path) -> None:
    """Median perplexity over staleness, a panel for each local step."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    steps = list(dict.fromkeys(row["local_step"] for row in rows))
    figure, axes = plt.subplots(1, len(steps), figsize=(5.2 * len(steps), 3.8), squeeze=False)
    tried = list(dict.fromkeys(row["strategy"] for row in rows))
    for axis, step in zip(axes[0], steps, strict=True):
        for n, strategy in enumerate(tried):
            for local_steps, style in zip(args.local_steps, ("-o", "--s", ":^"), strict=False):
                medians = [
                    statistics.median(
                        r["perplexity"] for r in rows
                        if (r["local_step"], r["strategy"], r["local_steps"], r["staleness"])
                        == (step, strategy, local_steps, staleness)
                    )
                    for staleness in args.staleness
                ]  # fmt: skip
                axis.plot(args.staleness, medians, style, color=f"C{n}",
                          label=f"{strategy}, B = {local_steps}")  # fmt: skip
        axis.set(title=f"{step}, {args.passes} passes", xlabel="staleness D' (simulated)",
                 ylabel="held-out perplexity")  # fmt: skip
        axis.set_xscale("symlog", linthresh=1)
        axis.set_xticks(args.staleness, [str(s) for s in args.staleness])
        axis.grid(alpha=0.3)
    axes[0][0].legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
