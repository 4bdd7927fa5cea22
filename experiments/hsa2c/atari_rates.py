"""Figure 5 on Atari: moves per second of one and two workers over MPI, MEASURED, Space Invaders.

Master and workers are processes of this machine, with the paper's network and no link between them
that is slower than memory: what an exchange costs is what its 2.7 MB cost there.
"""

from __future__ import annotations

from experiments.hsa2c import figure5, speed
from experiments.hsa2c.runs import Runs

AGENT = {"environment": "atari:space_invaders", "n_games": 8, "n_moves": 5}
NODES = (1, 2)
REPEATS = 3


def make(runs: Runs, args) -> list[dict]:
    """A row for each B, n and repeat; all cells take turns."""
    rows = []
    for repeat in range(REPEATS):
        for B in figure5.LOCAL_STEPS:
            for n in args.nodes or NODES:
                cell = {**AGENT, "B": B, "n": n, "repeat": repeat}
                found = runs.get(rate, {**cell, "exchanges": max(args.exchanges, 64 // B)})
                if found is not None:
                    rows.append({**cell, **found})
    return rows


def rate(settings: dict) -> dict:
    """Moves per second of the second half of a fit, and the load before it."""
    told = {**settings, "moves": figure5.moves(settings)}
    return speed.over_mpi(told, {key: settings[key] for key in AGENT})


def table(rows: list[dict]) -> list[str]:
    """Lines of Markdown: medians and ranges."""
    nodes = sorted({row["n"] for row in rows})
    lines = [
        speed.loads(rows), "",
        f"| B | {' | '.join(f'n = {n}' for n in nodes)} |", "|---|" + "---:|" * len(nodes),
    ]  # fmt: skip
    for B in sorted({row["B"] for row in rows}):
        cells = [[r["rate"] for r in rows if (r["B"], r["n"]) == (B, n)] for n in nodes]
        lines.append(f"| {B} | {' | '.join(speed.spread(c) if c else '-' for c in cells)} |")
    return lines
