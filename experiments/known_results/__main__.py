"""``python -m experiments.known_results``: what others found, tried on this program's strategies.

One file of this package for each claim: in our words and with its source, how it is put to trial,
what came of it, and whether it holds here, also where it does not.  All is SIMULATED: every step is
made, only time is computed.  Rates are chosen from one grid for all entrants of a trial, by a few
fits each on other images and with other seeds; medians and ranges are over the seeds.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from importlib import import_module
from pathlib import Path

from experiments.known_results.claim import section, summary
from experiments.known_results.compare import RATES, TUNING_SEEDS
from experiments.provenance import described, provenance

CLAIMS = ("easgd", "gosgd", "local_sgd", "sgp", "a2cid2", "fedavg", "admm", "gala", "absa",
          "adversarial", "gap")  # fmt: skip
INTRODUCTION = (
    "A network with one hidden layer of 32 learns 1,024 of scikit-learn's digits on virtual "
    "workers, batches of 4 images unless said otherwise. Every entrant chose the rate of a "
    f"worker's own steps from {', '.join(f'{rate:g}' for rate in RATES)}, by the median score of "
    f"{len(TUNING_SEEDS)} fits with other images and other seeds, unless said otherwise. What "
    "stands here are medians and, in brackets, ranges over the seeds, on 450 test images."
)


def main(argv=None) -> None:
    """Run what was asked for; write JSON for each claim, and one table."""
    argv = sys.argv[1:] if argv is None else argv
    prog = "python -m experiments.known_results"
    parser = argparse.ArgumentParser(prog=prog, description=__doc__)
    parser.add_argument("--only", choices=CLAIMS, nargs="+", default=CLAIMS, help="[all]")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("experiments/results/known_results"))
    parser.add_argument("--redraw", action="store_true", help="run nothing, write the table anew")
    args = parser.parse_args(argv)
    args.out.mkdir(parents=True, exist_ok=True)
    seeds = list(range(args.seeds))
    for name in [] if args.redraw else args.only:
        source = provenance(
            "experiments.known_results", argv, ["numpy", "numba", "scikit-learn"],
            {"fits": seeds, "choice": list(TUNING_SEEDS), "split": 0},
        )  # fmt: skip
        began = time.process_time()
        rows = claim(name).run(seeds)
        record = {**source, "simulated": True, "cpu_seconds": time.process_time() - began,
                  "rows": rows}  # fmt: skip
        (args.out / f"{name}.json").write_text(json.dumps(record) + "\n")
        print(f"{name}: {record['cpu_seconds']:.0f} s, {claim(name).outcome(rows).sentence}")
    write_table(args.out)


def claim(name: str):
    """The module of a claim."""
    return import_module(f"experiments.known_results.{name}")


def write_table(out: Path) -> None:
    """Write ``known_results.md`` from the results that are there."""
    trials, sections = {}, []
    for name in CLAIMS:
        path = out / f"{name}.json"
        if path.exists():
            record = json.loads(path.read_text())
            trials[name] = claim(name), claim(name).outcome(record["rows"])
            n_seeds = len(record["seeds"]["fits"])
            sections += section(*trials[name], f"{n_seeds} seeds; {described(record)}")
    text = ["# Known results, simulated", "", INTRODUCTION, "", *summary(trials), "", *sections]
    (out / "known_results.md").write_text("\n".join(text).rstrip() + "\n")


if __name__ == "__main__":
    main()
