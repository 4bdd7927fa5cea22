"""``python -m experiments.panel.before REVISION``: our rows of the panel, then and now.

Compares what ``panel.csv`` of an older revision says with what it says now: fits of one entrant to
one corpus, with as many topics, passes and threads and the same seed.  A case is a corpus and a
number of topics, read at the most passes up to 30 that both have; one that is the same to the last
digit is not shown.
"""

from __future__ import annotations

import argparse
import csv
import io
import statistics
import subprocess
from collections.abc import Iterable
from pathlib import Path

from experiments.panel.cells import READ_AT

_ROOT = Path(__file__).resolve().parents[2]


def rows_of(lines: Iterable[str], entrant: str) -> dict[tuple, dict]:
    """Whole fits of `entrant`, as the file has them, by what is the same then and now."""
    rows = [row for row in csv.DictReader(lines) if row["entrant"] == entrant]
    same = "corpus", "topics", "passes_asked", "threads", "seed"
    return {tuple(row[key] for key in same): row for row in rows if row["cut"] == "False"}


def compare(before: dict[tuple, dict], now: dict[tuple, dict]) -> list[dict]:
    """One row for each case that changed: medians over the seeds that both have."""
    both, cases = before.keys() & now.keys(), {}
    for key in both:
        if int(key[2]) <= READ_AT:
            cases.setdefault((key[0], int(key[1])), []).append(key)
    found = []
    for (corpus, topics), keys in sorted(cases.items()):
        most = max(int(key[2]) for key in keys)
        read = [key for key in keys if int(key[2]) == most]
        then, today = (
            statistics.median(float(rows[key]["perplexity"]) for key in read)
            for rows in (before, now)
        )
        if then != today:
            found.append({
                "corpus": corpus, "topics": topics, "passes": most, "seeds": len(read),
                "before": then, "now": today,
            })  # fmt: skip
    return found


def table(cases: list[dict], entrant: str, revision: str) -> str:
    """All cases and what they come to, as Markdown."""
    changes = [100 * (case["now"] / case["before"] - 1) for case in cases]
    lower = sum(change < 0 for change in changes)
    lines = [
        f"# The panel, {entrant}: at {revision} and now", "",
        f"`python -m experiments.panel.before {revision} --entrant {entrant}`; held-out perplexity "
        "with a model's own priors, medians over the seeds. Fits of two threads that are run again "
        "differ by chance, too.", "",
        f"Of {len(cases)} cases that changed {lower} are lower, "
        f"{statistics.mean(changes):+.2f} % on average ({min(changes):+.1f} to "
        f"{max(changes):+.1f} %).", "",
        "| corpus | K | passes | seeds | before | now | % |", "|---|---:|---:|---:|---:|---:|---:|",
    ]  # fmt: skip
    lines += [
        f"| {case['corpus']} | {case['topics']} | {case['passes']} | {case['seeds']} "
        f"| {case['before']:,.1f} | {case['now']:,.1f} | {change:+.2f} |"
        for case, change in zip(cases, changes, strict=True)
    ]
    return "\n".join(lines) + "\n"


def main(argv=None) -> None:
    """Write the table beside the panel's."""
    parser = argparse.ArgumentParser(prog="python -m experiments.panel.before", description=__doc__)
    parser.add_argument("revision", help="of this repository, such as a commit")
    parser.add_argument("--entrant", default="defaults")
    parser.add_argument("--panel", default="experiments/results/panel/panel.csv",
                        help="in the repository [%(default)s]")  # fmt: skip
    args = parser.parse_args(argv)
    older = subprocess.run(
        ["git", "show", f"{args.revision}:{args.panel}"],
        cwd=_ROOT, capture_output=True, text=True,
    )  # fmt: skip
    if older.returncode:
        parser.error(older.stderr.strip())
    path = _ROOT / args.panel
    with path.open(newline="") as newer:
        now = rows_of(newer, args.entrant)
    if not (cases := compare(rows_of(io.StringIO(older.stdout), args.entrant), now)):
        parser.exit(message=f"nothing of {args.entrant} has changed since {args.revision}\n")
    path.with_name("before.md").write_text(table(cases, args.entrant, args.revision))


if __name__ == "__main__":
    main()
