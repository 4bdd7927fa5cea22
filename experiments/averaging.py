"""``python -m experiments.averaging``: averaged parameters against plain ones (simulated workers).

At equal documents: serial SVI and ten workers, the schedule that is best for serial SVI and
constant rates, as they end and averaged over the last quarter of the fit.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from dataclasses import replace
from pathlib import Path

from dpsvi.averaging import Averaged
from experiments.figures.runs import Run, estimator, perplexity, split
from experiments.provenance import described, provenance

RATES = (0.0, 0.01, 0.02, 0.05)  # 0: kappa and tau0
WORKERS = {"n": 10, "p": 1, "B": 16}
LAST = 0.25  # of the passes
OUT = Path("experiments/results/figures")


def main(argv=None) -> None:
    """Run what is missing and write the table."""
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(prog="python -m experiments.averaging", description=__doc__)
    parser.add_argument("--corpus", type=Path, required=True, help="UCI docword file")
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args(argv)
    # The best of experiments.figures' grid.
    base = Run(
        args.corpus.name, args.documents, kappa=0.7, tau0=1.0, batch_size=64, passes=2, every=0.05
    )  # fmt: skip
    timing = json.loads(Path("experiments/results/figures/timing.json").read_text())["timing"]
    train, test, _ = split(str(args.corpus), base.documents, base.words)
    seeds = list(range(args.seeds))
    about = {"fit": seeds, "split": 0}
    source = provenance("experiments.averaging", argv, ["numpy", "numba"], about)
    rows = []
    for workers in ({}, WORKERS):
        for rate in RATES:
            found = []
            for seed in seeds:
                run = replace(base, **workers, rate=rate, seed=seed)
                averaged = Averaged(start=(1 - LAST) * run.passes)
                lda = estimator(run, timing, [averaged]).fit(train)
                pair = (
                    perplexity(natural, run.topics, test)
                    for natural in (lda._state.natural(), averaged.mean)
                )
                found.append(list(pair))
                print(f"n={run.n} rate {rate:g} seed {seed}: {found[-1]}", flush=True)
            rows.append({"workers": run.n, "rate": rate, "perplexity": found})
    args.out.mkdir(parents=True, exist_ok=True)
    name = args.out / "averaging"
    name.with_suffix(".json").write_text(json.dumps({**source, "rows": rows}, indent=1) + "\n")
    name.with_suffix(".md").write_text(table(rows, source, base), "utf-8")


def table(rows: list[dict], source: dict, base: Run) -> str:
    """Markdown: medians and ranges over seeds."""
    lines = [
        described(source), "",
        f"{base.documents:,} documents, {base.passes} passes; averaged over the last {LAST:.0%}.",
        "", "| workers | rate | perplexity at the end (range) | averaged (range) | ratio |",
        "|---|---|---|---|---|",
    ]  # fmt: skip
    for row in rows:
        plain, mean = zip(*row["perplexity"], strict=True)
        rate = f"{row['rate']:g}" if row["rate"] else f"(t + {base.tau0:g})^-{base.kappa:g}"
        cells = [
            f"{statistics.median(found):.0f} ({min(found):.0f}-{max(found):.0f})"
            for found in (plain, mean)
        ]
        ratio = statistics.median(b / a for a, b in row["perplexity"])
        lines.append(
            f"| {row['workers'] or 'serial'} | {rate} | {' | '.join(cells)} | {ratio:.3f} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
