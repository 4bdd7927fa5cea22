"""``python -m experiments.smoothing``: statistics with less variance, in a plain serial loop.

Three estimates of the statistics of all documents, at equal visits to documents: those of a batch
(SVI); their mean over a window of batches (Mandt and Blei 2014, smoothed gradients); those of a
batch corrected by the same batch's at an anchor whose exact ones are known (SVRG, Johnson and Zhang
2013).  Each has its best of the same batch sizes and rates, found on documents for tuning; the mean
has its best window, too, so twice as many settings.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
from collections import deque
from pathlib import Path

import numpy as np

from dpsvi.kernels.jit import as_items, compile_local
from dpsvi.models.lda.estimator import DEFAULTS
from dpsvi.models.lda.model import make_model
from dpsvi.training.state import State
from dpsvi.training.task import make_works
from experiments.figures.runs import ALPHA, perplexity, split
from experiments.provenance import described, provenance

WORDS, TOPICS, PASSES, LAST = 8000, 50, 10, 0.25  # averaged: the last quarter
BATCHES = (128, 512, 2048)
RATES = {"decreasing": (1.0, 16.0, 64.0, 256.0), "constant": (0.05, 0.02, 0.01, 0.005)}
METHODS = {"SVI": (1,), "smoothed": (8, 64), "SVRG": (0,)}  # windows; 0: an anchor a pass


class Estimate:
    """The statistics of all documents, from a batch and what is remembered of others."""

    def __init__(self, model, items, batch_size: int, window: int):
        self.n, self.window, self.total = len(items.offsets) - 1, window, np.zeros(model.shape)
        self.past, self.anchor, self.left = deque(), None, -(-self.n // batch_size)
        self.steps_a_pass, self.batch_size = self.left, batch_size
        (work,) = make_works(model, items, batch_size, 1)
        local = compile_local(model.local, model.real)

        def of(shared, batch):
            work.totals[:] = shared.rows.sum(axis=0, dtype=np.float64)
            n = local(shared, 1.0, model.hyper, items, batch, work)
            found = work.touched[:n].copy(), work.stats[:n] * np.float32(self.n / len(batch))
            work.stats[:n] = 0
            return found

        self._of = of

    def __call__(self, shared, batch) -> tuple[np.ndarray, int]:
        """Statistics, shape of the model, and how many documents were visited for them."""
        return self._corrected(shared, batch) if not self.window else self._smoothed(shared, batch)

    def _smoothed(self, shared, batch):
        if len(self.past) == self.window:
            rows, old = self.past.popleft()
            self.total[rows] -= old
        self.past.append(self._of(shared, batch))
        rows, new = self.past[-1]
        self.total[rows] += new
        return self.total / len(self.past), len(batch)

    def _corrected(self, shared, batch):
        visits = len(batch)
        if self.left == 0:  # not at the random start: the first pass is SVI
            self.anchor, self.left = shared._replace(rows=shared.rows.copy()), self.steps_a_pass
            self.total[:], visits = 0, visits + self.n
            for part in batches(np.arange(self.n), self.batch_size):
                rows, exact = self._of(self.anchor, part)
                self.total[rows] += exact * (len(part) / self.n)
        self.left -= 1
        found = self.total.copy()
        rows, new = self._of(shared, batch)
        found[rows] += new
        if self.anchor is not None:
            found[rows] -= self._of(self.anchor, batch)[1]
            visits += len(batch)
        return np.maximum(found, 0), visits  # a difference may leave what is valid


def batches(order: np.ndarray, size: int) -> list[np.ndarray]:
    """Parts of `order`, as kernels want them."""
    return [order[i : i + size].astype(np.int32) for i in range(0, len(order), size)]


def descend(train, local_step, window, batch_size, kind, rate, seed):
    """Natural parameters at the end and their mean over the last part."""
    rng = np.random.default_rng(seed)
    default = DEFAULTS[local_step]
    model = make_model(
        train.n_features, TOPICS, ALPHA, default.eta(TOPICS), local_step=local_step,
        n_sweeps=default.sweeps, tol=0.005,
    )  # fmt: skip
    items = as_items(train.offsets, train.index, train.value, model.real)
    estimate, shared = Estimate(model, items, batch_size, window), State.start(model, rng, 1).shared
    visits, t, looks, mean, queue = 0, 0, 0, 0.0, []
    while visits < PASSES * estimate.n:
        queue = queue or batches(rng.permutation(estimate.n), batch_size)
        rho = (t + rate) ** -0.7 if kind == "decreasing" else rate
        found, more = estimate(shared, queue.pop())
        shared.rows[...] += (rho * (found - shared.rows)).astype(model.real)
        visits, t = visits + more, t + 1
        if visits >= ((1 - LAST) * PASSES + looks / 20) * estimate.n:
            looks += 1
            mean = mean + (model.prior + shared.rows.astype(np.float64) - mean) / looks
    return model.prior + shared.rows, mean


def main(argv=None) -> None:
    """Choose settings on one seed, run the chosen ones on all; write JSON and a table."""
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(prog="python -m experiments.smoothing", description=__doc__)
    parser.add_argument("--corpus", type=Path, required=True, help="UCI docword file")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("experiments/results/smoothing"))
    args = parser.parse_args(argv)
    train, test, tuning = split(str(args.corpus), None, WORDS)
    source = provenance(
        "experiments.smoothing", argv, ["numpy", "numba"],
        {"split": 0, "tuning": 0, "fit": list(range(args.seeds))},
    )  # fmt: skip
    rows = []
    for local_step, kind, method in itertools.product(DEFAULTS, RATES, METHODS):
        tried = {
            setting: min(
                perplexity(found, TOPICS, tuning)
                for found in descend(train, local_step, setting[0], setting[1], kind, setting[2], 0)
            )
            for setting in itertools.product(METHODS[method], BATCHES, RATES[kind])
        }
        window, batch_size, rate = best = min(tried, key=tried.get)
        found = [
            [
                perplexity(natural, TOPICS, test)
                for natural in descend(train, local_step, window, batch_size, kind, rate, seed)
            ]
            for seed in range(args.seeds)
        ]
        print(local_step, kind, method, best, found, flush=True)
        rows.append(
            {"local_step": local_step, "rates": kind, "method": method, "window": window,
             "batch_size": batch_size, "rate": rate, "perplexity": found,
             "tuning": [[*setting, value] for setting, value in tried.items()]}
        )  # fmt: skip
    args.out.mkdir(parents=True, exist_ok=True)
    name = args.out / args.corpus.name.split(".")[1]
    name.with_suffix(".json").write_text(json.dumps({**source, "rows": rows}, indent=1) + "\n")
    name.with_suffix(".md").write_text(table(rows, source, train.n_items), "utf-8")


def table(rows: list[dict], source: dict, n: int) -> str:
    """Markdown: medians and ranges over seeds."""
    lines = [
        described(source), "",
        f"{n:,} documents, {TOPICS} topics, each document visited {PASSES} times for each method; "
        f"the best of {len(BATCHES)} batch sizes and {len(RATES['constant'])} rates; perplexity.",
        "", "| local step | rates | method | window | batch | rate | at the end (range) "
        f"| averaged over the last {LAST:.0%} (range) |", "|" + 8 * "---|",
    ]  # fmt: skip
    for row in rows:
        cells = [
            f"{statistics.median(found):.0f} ({min(found):.0f}-{max(found):.0f})"
            for found in zip(*row["perplexity"], strict=True)
        ]
        rate = f"{row['rate']:g}" if row["rates"] == "constant" else f"(t + {row['rate']:g})^-0.7"
        lines.append(
            f"| {row['local_step']} | {row['rates']} | {row['method']} | {row['window'] or '-'} "
            f"| {row['batch_size']} | {rate} | {' | '.join(cells)} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
