"""``python -m experiments.environments``: moves per second of environments, ours and the peers'.

With ``--check N`` it compares N moves of every MinAtar game with minatar's instead, and N moves of
classic control with gymnasium's.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path

from dpsvi.rl import environments
from experiments.environments import control, rates, side_by_side
from experiments.provenance import described, provenance

OUT = Path("experiments/results/environments")
PACKAGES = ["numpy", "numba", "minatar", "gymnasium"]


def main(argv=None) -> None:
    """Measure, or compare, and write a JSON file and a table."""
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(prog="python -m experiments.environments", description=__doc__)
    parser.add_argument("--environments", default=",".join(environments.names()))
    parser.add_argument("--check", type=int, metavar="N", help="compare N moves of each game")
    parser.add_argument("--seconds", type=float, default=1.0, help="of a measurement")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args(argv)
    source = provenance("experiments.environments", argv, PACKAGES, {"all": 0})
    names = args.environments.split(",")
    if args.check:
        found = {"check": check(names, args.check), "check-control": control_of(names, args.check)}
    else:
        found = {"rates": measure(names, args.seconds, args.repeats)}
    args.out.mkdir(parents=True, exist_ok=True)
    for stem, (rows, lines) in found.items():
        if rows:
            text = json.dumps({**source, "rows": rows}, indent=1)
            (args.out / f"{stem}.json").write_text(text + "\n")
            (args.out / f"{stem}.md").write_text("\n".join([described(source), "", *lines]) + "\n")


def measure(names, seconds, repeats) -> tuple[list[dict], list[str]]:
    """Rates of all entrants, as rows and as lines of a table."""
    rows, lines = [], [
        "Random actions, every observation read, a reset at every end; one core.", "",
        "| environment | entrant | moves per second of processor time (range) | dpsvi is |",
        "|---|---|---|---|",
    ]  # fmt: skip
    for name in names:
        found = rates.measure(name, seconds, repeats)
        rows.append({"environment": name, "moves_per_second": found})
        print(json.dumps(rows[-1]), flush=True)
        ours = statistics.median(found["dpsvi"])
        for entrant, each in found.items():
            rate = statistics.median(each)
            times = "" if entrant == "dpsvi" else f"{ours / rate:.0f} times as fast"
            lines.append(
                f"| {name} | {entrant} | {rate:,.0f} ({min(each):,.0f}-{max(each):,.0f}) "
                f"| {times} |"
            )
    return rows, [*lines, "", rates.LIMITS]


def check(names, moves) -> tuple[list[dict], list[str]]:
    """What the comparisons saw, as rows and as lines of a table; a difference ends the command."""
    rows, lines = [], [
        "Observations, rewards, ends and draws of every move are those of minatar.", "",
        "| game | sticky actions | moves | episodes | rewards | longest episode | highest level |",
        "|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for name in (name for name in names if name in side_by_side.GAMES):
        for sticky in side_by_side.STICKY:
            found = side_by_side.compare(name, moves, sticky)
            rows.append({"environment": name, "sticky": sticky, **found})
            print(json.dumps(rows[-1]), flush=True)
            cells = (f"{value:,.0f}" for value in found.values())
            lines.append(f"| {name} | {sticky:g} | {' | '.join(cells)} |")
    return rows, lines


def control_of(names, moves) -> tuple[list[dict], list[str]]:
    """The same of classic control."""
    rows, lines = [], [
        "Rewards and ends of every move are those of gymnasium, each from the same state; what "
        "differs most in states, and in observations, which are float32.", "",
        "| environment | moves | episodes | ends | states | observations |",
        "|---|---|---|---|---|---|",
    ]  # fmt: skip
    for name in (name for name in names if name in control.PEERS):
        found = control.compare(name, moves)
        rows.append({"environment": name, **found})
        print(json.dumps(rows[-1]), flush=True)
        lines.append(
            f"| {name} | {moves:,} | {found['episodes']:,} | {found['ends']:,} "
            f"| {found['apart']:.1e} | {found['apart_seen']:.1e} |"
        )
    return rows, lines


if __name__ == "__main__":
    main()
