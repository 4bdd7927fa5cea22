"""``python -m experiments.dpsgd``: DPSGD beside scikit-learn, and Theorem 3.1 on trial.

``race``: seconds to scikit-learn's test error on digits and, with ``--corpus`` and ``--labels``, on
labelled documents, for logistic regression and a network with one hidden layer.  ``theorem``: mean
squared gradient norms of a network on a virtual cluster.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from experiments.dpsgd import data, race, theorem, trial
from experiments.dpsgd.entrants import Problem, logistic, network
from experiments.dpsgd.tune import SEEDS
from experiments.provenance import described, provenance


def problems(args) -> list[Problem]:
    """What is raced."""
    digits = data.digits()
    found = [
        logistic("digits, logistic", digits, 1e-4, 1.0),
        network("digits, 64 hidden units", digits, 1e-4, 64),
    ]
    if args.corpus is not None:
        documents = data.corpus(args.corpus, args.labels)
        name = Path(args.corpus).name.split(".")[1]
        # As in scikit-learn, the bias of sparse features learns at a hundredth of the rate.
        found += [
            logistic(f"{name}, logistic, alpha {alpha:g}", documents, alpha, 0.1)
            for alpha in (1e-4, 1e-5)
        ]
        title = f"{name}, {data.COLUMNS} dense columns, 64 hidden units"
        found.append(network(title, data.dense(documents), 1e-4, 64))
    return found


def main(argv=None) -> None:
    """Run what was asked for; write JSON, tables and a picture."""
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(prog="python -m experiments.dpsgd", description=__doc__)
    parser.add_argument("--only", choices=["race", "theorem"], help="[both]")
    parser.add_argument("--corpus", help="UCI bag of words")
    parser.add_argument("--labels", help="a line for each document: train or test, tab, class")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3, help="timings of each fit [%(default)s]")
    parser.add_argument("--out", type=Path, default=Path("experiments/results/dpsgd"))
    args = parser.parse_args(argv)
    if (args.corpus is None) != (args.labels is None):
        parser.error("--corpus and --labels go together")
    args.out.mkdir(parents=True, exist_ok=True)
    source = provenance(
        "experiments.dpsgd", argv, ["numpy", "numba", "scikit-learn"],
        {"fits": list(range(args.seeds)), "split": 0, "tuning": SEEDS},
    )  # fmt: skip
    if args.only != "theorem":
        rows = [r for p in problems(args) for r in race.run(p, args.seeds, args.rounds)]
        write(args.out / "race", race.__doc__, source, rows, race.table(rows))
    if args.only != "race":
        rows = theorem.run(args.seeds)
        write(args.out / "theorem", theorem.__doc__, source, rows, trial.table(rows))
        trial.plot(rows, args.out / "theorem.png")


def write(stem: Path, title: str, source: dict, rows: list[dict], table: list[str]) -> None:
    """Write records as JSON and a table below the first line of a text."""
    stem.with_suffix(".json").write_text(json.dumps({**source, "rows": rows}, indent=1) + "\n")
    lines = [f"# {title.splitlines()[0]}", "", described(source), "", *table]
    stem.with_suffix(".md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
