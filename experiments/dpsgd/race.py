"""Seconds to a test error: DPSGD on one and two threads beside scikit-learn.

The mark is the test error at which the first entrant ends with its own stopping rule, the median of
all seeds.  Step sizes come from a validation split (:mod:`experiments.dpsgd.tune`).  Each entrant
gets as many passes as its own curve, with the same seed, needs to be at or below the mark (60 at
most), and the whole call of its fit with so many passes is timed: all entrants in turn, `rounds`
times, medians.  All code is compiled before, and BLAS has one thread.  Processor time is that of
all threads.
"""

from __future__ import annotations

import statistics

from experiments.dpsgd.entrants import Problem
from experiments.dpsgd.tune import PASSES, fit, tuned


def run(problem: Problem, seeds: int, rounds: int) -> list[dict]:
    """One record for each entrant and seed; the mark is that of the first entrant."""
    for name, entrant in problem.entrants.items():
        fit(problem, name, next(iter(entrant.steps)), 0, 1)  # compiles
    chosen = tuned(problem)
    steps = {name: choice.step for name, choice in chosen.choices.items()}
    first = next(iter(problem.entrants))
    mark = statistics.median(
        fit(problem, first, chosen.ends, seed, None).error for seed in range(seeds)
    )
    records = []
    for seed in range(seeds):
        needed = {}
        for name, entrant in problem.entrants.items():
            needed[name] = (
                needed[entrant.like] if entrant.same else _needed(problem, name, steps, seed, mark)
            )
        made = {name: [] for name, passes in needed.items() if passes}
        for _ in range(rounds):
            for name, fits in made.items():
                fits.append(fit(problem, name, steps[name], seed, needed[name]))
        for name, passes in needed.items():
            fits = made.get(name, [])
            records.append(
                {"problem": problem.name, "seed": seed, "entrant": name, "mark": mark,
                 "mark_step": chosen.ends, "validation_mark": chosen.mark,
                 "step": steps[name], "validation": chosen.choices[name]._asdict(),
                 "passes": passes, "seconds": [f.seconds for f in fits],
                 "processor": [f.processor for f in fits], "errors": [f.error for f in fits]}
            )  # fmt: skip
            print(records[-1], flush=True)
    return records


def table(records) -> list[str]:
    """Lines of Markdown: medians over the seeds, ratios to the first entrant seed by seed."""
    lines = [
        "| problem | test error to reach | entrant | step size | seeds that do | passes | seconds "
        "| processor seconds | error | times as soon (range over seeds) "
        "| times less processor time (range) |",
        "|" + 11 * "---|",
    ]
    for problem in dict.fromkeys(r["problem"] for r in records):
        mine = [r for r in records if r["problem"] == problem]
        entrants = list(dict.fromkeys(r["entrant"] for r in mine))
        base = {r["seed"]: r for r in mine if r["entrant"] == entrants[0] and r["passes"]}
        for name in entrants:
            rows = [r for r in mine if r["entrant"] == name]
            reached = [r for r in rows if r["passes"]]
            start = (
                f"| {problem} | {rows[0]['mark']:.4f} | {name} | {rows[0]['step']} "
                f"| {len(reached)} of {len(rows)} "
            )
            if not reached:
                lines.append(start + 6 * "| " + "|")
                continue
            both = [r for r in reached if r["seed"] in base]
            lines.append(
                start + f"| {statistics.median(r['passes'] for r in reached):g} "
                f"| {_typical(reached, 'seconds'):.3f} | {_typical(reached, 'processor'):.3f} "
                f"| {_typical(reached, 'errors'):.4f} "
                f"| {_ratios(base, both, 'seconds')} | {_ratios(base, both, 'processor')} |"
            )
    return lines


def _typical(records, key) -> float:
    """Median over the records of their medians."""
    return statistics.median(statistics.median(record[key]) for record in records)


def _ratios(base, records, key) -> str:
    """What the first entrant took over what these took, seed by seed."""
    found = [statistics.median(base[r["seed"]][key]) / statistics.median(r[key]) for r in records]
    if not found:
        return ""
    return f"{statistics.median(found):.2f} ({min(found):.2f}-{max(found):.2f})"


def _needed(problem, name, steps, seed, mark) -> int | None:
    """The fewest passes after which the test error is at most `mark`."""
    for passes in PASSES:
        if fit(problem, name, steps[name], seed, passes).error <= mark:
            return passes
    return None
