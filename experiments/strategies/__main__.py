"""``python -m experiments.strategies FOLDER``: every strategy beside every other.

FOLDER holds docword.20news.txt.gz and labels.20news.txt.gz; digits come with scikit-learn.  Every
fit of a problem makes the same number of passes over the same items, on ``engine="simulated"``
with rough constants for its costs; two workers are real processes, too.  An actor-critic makes the
same number of moves instead; its score is a mean return, and groups it has none.  What is asked:

* how far from serial SVI is the held-out score with n workers, who draw from all items?
* how far with one of 20 groups a worker, so that no worker ever sees what another one does?
* how soon is it as good as serial SVI, how many bytes does an item cost?
* how much longer does a fit take in which one worker is ten times slower?
* how far from serial SVI is a fit of which one worker is killed?

Some strategies take part in several forms (`settings.FORMS`), each like a strategy of its own.
Serial SVI chooses the offset of the rates, one agent alone its learning rate, from three, and all
others take it over; then each
strategy chooses from three settings of its own, on items and with a seed for that.  What is on
record in PROBLEM.json is not made again, whatever revision it was made with (it says which), so
that the command may be stopped at any time and given again; ``--fresh`` makes strategies again.
Kills that a record of an earlier revision has not are added to it.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np

from experiments.provenance import described, provenance
from experiments.strategies.draw import draw
from experiments.strategies.measured import measure
from experiments.strategies.problems import PROBLEMS
from experiments.strategies.settings import ENTRANTS, choices
from experiments.strategies.table import middle_of, table
from experiments.strategies.trial import Trials

TUNING_SEED = 1000


def main(argv=None) -> None:
    """Make all fits; write JSON after each strategy, tables and pictures after each problem."""
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(prog="python -m experiments.strategies", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--problems", default=",".join(PROBLEMS), help="%(default)s")
    parser.add_argument("--only", help="some of them (all)")
    parser.add_argument("--fresh", action="store_true", help="make them again")
    parser.add_argument("--workers", default="4,16,64", help="n (%(default)s)")
    parser.add_argument("--length", type=int, help="passes, or moves (the problem's own)")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("experiments/results/strategies"))
    parser.add_argument(
        "--redraw", action="store_true", help="run nothing, write tables and pictures anew"
    )
    args = parser.parse_args(argv)
    args.out.mkdir(parents=True, exist_ok=True)
    for problem in args.problems.split(","):
        path = args.out / f"{problem}.json"
        if not args.redraw:
            fits(problem, args, argv, path)
        record = json.loads(path.read_text())
        text = f"{described(record)}\n\n{table(record)}"
        path.with_suffix(".md").write_text(f"# Strategies: {problem}\n\n{text}")
    draw(args.out)


def fits(problem: str, args, argv, path: Path) -> None:
    """Make the fits of a problem that `path` lacks.

    Raises
    ------
    ValueError
        There are fits with other numbers of workers or seeds, or of another length.
    """
    seeds, workers = list(range(args.seeds)), [int(n) for n in args.workers.split(",")]
    source = provenance(
        "experiments.strategies", argv, ["numpy", "numba", "scikit-learn", "mpi4py"],
        {"fit": seeds, "choice": TUNING_SEED, "split": 0},
    )  # fmt: skip
    made = PROBLEMS[problem](args.folder)
    length, rate = args.length or made.length, made.measure.rate
    asked = {"seeds_of_fits": seeds, "workers": workers, made.measure.length: length}
    if path.exists():
        record = json.loads(path.read_text())
        before = {name: record[name] for name in asked}
        if before != asked:
            raise ValueError(
                f"{path} holds fits with {before}, not with {asked}: use another --out"
            )
    else:
        record = {**source, "unit": made.unit, **asked, **begun(made, length, seeds)}
    trials = Trials(made, length, record[rate])
    mark = {name: source[name] for name in ("date", "git")}
    for strategy in args.only.split(",") if args.only else ENTRANTS:
        if strategy in record["rows"] and not args.fresh:
            continue
        tried = choices(strategy, made.choices)
        settings, scores = trials.tune(strategy, tried, workers[len(workers) // 2], TUNING_SEED)
        rows = [trials.row(strategy, settings, seed, workers) for seed in seeds]
        record["rows"][strategy] = {
            "settings": settings, "tried": tried, "scores": scores, "seeds": rows, **mark
        }  # fmt: skip
        path.write_text(json.dumps(record) + "\n")
        print(problem, strategy, settings, flush=True)
    add_kills(trials, record, mark)
    left = {
        name: row["settings"] for name, row in record["rows"].items()
        if "two processes" not in row["seeds"][0]
    }  # fmt: skip
    found = measure(args.folder, problem, length, record[rate], left, seeds)
    for name, by_seed in found.items():
        for row, fit in zip(record["rows"][name]["seeds"], by_seed, strict=True):
            row["two processes"] = fit
    path.write_text(json.dumps(record) + "\n")


def add_kills(trials: Trials, record: dict, mark: dict) -> None:
    """Make the fits with a killed worker that `record` lacks."""
    middle = middle_of(record)
    for name, row in record["rows"].items():
        for seed, found in zip(record["seeds_of_fits"], row["seeds"], strict=True):
            if "one killed" not in found and "seconds" in found[middle]:
                n, seconds = int(middle.split()[-1]), found[middle]["seconds"]
                found["one killed"] = trials.killed(seed, name, row["settings"], n, seconds)
                row["added"] = {"one killed": mark}


def begun(made, length: int, seeds: list[int]) -> dict:
    """What one worker alone, serial SVI, finds: the parameter of the rates, scores."""
    tried = [
        Trials(made, length, rate).fit(TUNING_SEED, "decay", {}, 1, tuning=True)["score"]
        for rate in made.rates
    ]
    rate, name = made.rates[int(np.argmax(tried))], made.measure.rate
    trials = Trials(made, length, rate)
    return {
        name: rate, f"{name}s": dict(zip(map(str, made.rates), tried, strict=True)),
        "serial": [trials.fit(seed, "decay", {}, 1) for seed in seeds], "rows": {},
    }  # fmt: skip


if __name__ == "__main__":
    main()
