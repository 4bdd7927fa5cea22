"""``python -m experiments.dpsgd``: DPSGD beside scikit-learn, and Theorem 3.1 on trial.

Races for seconds to scikit-learn's test error, on digits and, with ``--corpus`` and ``--labels``,
on labelled documents, by logistic regression and a network with one hidden layer.  ``theorem``:
mean squared gradient norms of a network on a virtual cluster.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from experiments.dpsgd import data, race, theorem, trial
from experiments.dpsgd.entrants import Problem, logistic, network
from experiments.dpsgd.tune import SEEDS
from experiments.provenance import described, provenance
from experiments.record import kept

RACES = ("digits-logistic", "digits-network", "logistic", "network")
OF_CORPUS = RACES[2:]


def problems(part: str, args) -> list[Problem]:
    """What is raced in a part."""
    if part == "digits-logistic":
        return [logistic("digits, logistic", data.digits(), 1e-4, 1.0)]
    if part == "digits-network":
        return [network("digits, 64 hidden units", data.digits(), 1e-4, 64)]
    documents = data.corpus(args.corpus, args.labels)
    name = Path(args.corpus).name.split(".")[1]
    if part == "network":
        title = f"{name}, {data.COLUMNS} dense columns, 64 hidden units"
        return [network(title, data.dense(documents), 1e-4, 64)]
    # As in scikit-learn, the bias of sparse features learns at a hundredth of the rate.
    return [
        logistic(f"{name}, logistic, alpha {alpha:g}", documents, alpha, 0.1)
        for alpha in (1e-4, 1e-5)
    ]


def main(argv=None) -> None:
    """Run what was asked for; write JSON of each part, tables and a picture."""
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(prog="python -m experiments.dpsgd", description=__doc__)
    parser.add_argument(
        "--only", help=f"some of {','.join((*RACES, 'theorem'))} (default: all there is data for)"
    )
    parser.add_argument("--corpus", help="UCI bag of words")
    parser.add_argument("--labels", help="a line for each document: train or test, tab, class")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3, help="timings of each fit [%(default)s]")
    parser.add_argument("--out", type=Path, default=Path("experiments/results/dpsgd"))
    parser.add_argument("--redraw", action="store_true", help="tables, from what was kept")
    args = parser.parse_args(argv)
    if (args.corpus is None) != (args.labels is None):
        parser.error("--corpus and --labels go together")
    known = [part for part in (*RACES, "theorem") if args.corpus or part not in OF_CORPUS]
    only = args.only.split(",") if args.only else known
    if unknown := set(only) - set(known):
        parser.error(f"--only knows {', '.join(known)}, not {', '.join(sorted(unknown))}")
    source = provenance(
        "experiments.dpsgd", argv, ["numpy", "numba", "scikit-learn"],
        {"fits": list(range(args.seeds)), "split": 0, "tuning": SEEDS},
    )  # fmt: skip
    for part in only:
        measure = None if args.redraw else partial(run, part, args)
        kept(args.out / f"{part}.json", source, measure)
        if part == "theorem":
            write_table(args.out / "theorem.md", ["theorem"], theorem.__doc__, trial.table)
        else:
            write_table(args.out / "race.md", RACES, race.__doc__, race.table)


def run(part: str, args) -> list[dict]:
    """Rows of a part; of the theorem a picture, too."""
    if part != "theorem":
        return [r for p in problems(part, args) for r in race.run(p, args.seeds, args.rounds)]
    rows = theorem.run(args.seeds)
    trial.plot(rows, args.out / "theorem.png")
    return rows


def write_table(path: Path, parts: Sequence[str], title: str, table: Callable) -> None:
    """Write one table of those parts whose JSON is there, with where they come from."""
    files = [path.with_name(f"{part}.json") for part in parts]
    results = [json.loads(file.read_text()) for file in files if file.exists()]
    lines = [f"# {title.splitlines()[0]}", ""]
    for source in dict.fromkeys(described(found) for found in results):
        lines += [source, ""]
    lines += table([row for found in results for row in found["rows"]])
    path.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
