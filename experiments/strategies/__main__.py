"""``python -m experiments.strategies FOLDER``: every strategy beside every other, SIMULATED.

FOLDER holds docword.20news.txt.gz and labels.20news.txt.gz; the mixture and the chain are drawn.
Every fit of a problem makes the same number of passes over the same items, on
``engine="simulated"``, whose costs are measured once on this machine.  What is asked:

* how far from serial SVI is the held-out score with n workers, who draw from all items?
* how far with one of 20 groups a worker, so that no worker ever sees what another one does?
* how soon is it as good as serial SVI, how many bytes does an item cost?
* how much longer does a fit take in which one worker is ten times slower?

Each strategy may first choose from three settings, on items and with a seed of their own.  What was
run is kept in ``runs-PROBLEM.json`` and is not run again while revision and arguments are the same.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from dpsvi import strategies
from dpsvi.cluster.virtual import Timing
from experiments.provenance import described, provenance
from experiments.strategies.draw import draw
from experiments.strategies.problems import GROUPS, PROBLEMS
from experiments.strategies.settings import choices
from experiments.strategies.table import table
from experiments.strategies.trial import Trials

TUNING_SEED = 1000


def main(argv=None) -> None:
    """Make all fits; write JSON after each strategy, tables and pictures after each problem."""
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(prog="python -m experiments.strategies", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--problems", default=",".join(PROBLEMS), help="%(default)s")
    parser.add_argument("--only", help="some strategies (all)")
    parser.add_argument(
        "--settings", type=json.loads, default={}, metavar="JSON",
        help="settings of strategies, by name, that have no choice",
    )  # fmt: skip
    parser.add_argument("--workers", default="4,16,64", help="n (%(default)s)")
    parser.add_argument("--apart", type=int, default=8, help="n beside one that is slow")
    parser.add_argument("--passes", type=int, help="in the place of the problem's own")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("experiments/results/strategies"))
    parser.add_argument(
        "--redraw", action="store_true", help="run nothing, write tables and pictures anew"
    )
    args = parser.parse_args(argv)
    args.out.mkdir(parents=True, exist_ok=True)
    names = args.only.split(",") if args.only else strategies.names()
    for problem in args.problems.split(","):
        path = args.out / f"{problem}.json"
        if not args.redraw:
            fits(problem, names, args, argv, path)
        record = json.loads(path.read_text())
        text = f"# Strategies, simulated: {problem}\n\n{described(record)}\n\n{table(record)}"
        path.with_suffix(".md").write_text(text)
    draw(args.out)


def fits(problem: str, names: list[str], args, argv, path: Path) -> None:
    """Make the fits of a problem that `path` lacks."""
    seeds, workers = list(range(args.seeds)), [int(n) for n in args.workers.split(",")]
    source = provenance(
        "experiments.strategies", argv, ["numpy", "numba"],
        {"fit": seeds, "choice": TUNING_SEED, "split": 0},
    )  # fmt: skip
    made = PROBLEMS[problem](args.folder)
    asked = {"seeds": seeds, "workers": workers, "apart": args.apart, "passes": args.passes}
    record = {**source, "simulated": True, "unit": made.unit, **asked, "rows": {}}
    if path.exists():
        before = json.loads(path.read_text())
        same = before["git"] == source["git"] and not source["git"]["modified"]
        if same and all(before.get(key) == value for key, value in asked.items()):
            record = before
    trials = Trials(made, args.passes)
    if "timing" in record:
        trials.timing = Timing(**record["timing"])
    else:
        record["serial"] = [trials.fit(seed, "decay", {}, 1) for seed in seeds]
        record["timing"] = asdict(trials.timing)
    for strategy in names:
        if strategy in record["rows"]:
            continue
        given = args.settings.get(strategy)
        tried = choices(strategy) if given is None else [given]
        settings, scores = trials.tune(strategy, tried, workers[len(workers) // 2], TUNING_SEED)
        rows = [trials.row(strategy, settings, seed, workers, args.apart, GROUPS) for seed in seeds]
        record["rows"][strategy] = {
            "settings": settings, "tried": tried, "scores": scores, "seeds": rows
        }  # fmt: skip
        path.write_text(json.dumps(record) + "\n")
        print(problem, table(record).splitlines()[-1], flush=True)


if __name__ == "__main__":
    main()
