"""Figure 5: moves per second over nodes and B, on the paced cluster.

Every step and every message is executed, on MinAtar's Space Invaders with a small network: what is
learned does not matter here.  The rate is that between a quarter and three quarters of a fit.
"""

from __future__ import annotations

from pathlib import Path

from experiments.figures.draw import pyplot
from experiments.hsa2c import paced
from experiments.hsa2c.runs import Runs

SETTINGS = {
    "environment": "space_invaders", "hidden": [16], "n_games": 8, "n_moves": 5, "seed": 0,
}  # fmt: skip
NODES = (1, 2, 4, 8, 16, 30, 60)
LOCAL_STEPS = (1, 4, 16, 64)


def make(runs: Runs, args) -> list[dict]:
    """A row for each link, B and n."""
    rows = []
    for link in paced.LINKS:
        for B in LOCAL_STEPS:
            for n in args.nodes or NODES:
                cell = {**SETTINGS, "link": link, "B": B, "n": n}
                found = runs.get(data_rate, {**cell, "exchanges": max(args.exchanges, 64 // B)})
                if found is not None:
                    rows.append({**cell, **found, "predicted": prediction(link, B, n)})
    return rows


def prediction(link: str, B: int, n: int) -> float:
    """Moves per second by the formula."""
    return paced.predicted(n, B, SETTINGS["n_games"] * SETTINGS["n_moves"], link)


def moves(settings: dict) -> int:
    """Moves of a fit in which every worker makes so many exchanges."""
    steps = settings["n"] * settings["B"] * settings["exchanges"]
    return steps * settings["n_games"] * settings["n_moves"]


def data_rate(settings: dict) -> dict:
    """Moves per second, the share of time that workers wait, seconds of the cluster."""
    agent = paced.agent(settings, n_evaluations=4, n_episodes=1).fit(moves(settings))
    return paced.middle(agent)


def table(rows: list[dict], how: str = "SIMULATED") -> list[str]:
    """Lines of Markdown: moves per second, predicted ones in brackets."""
    lines = []
    for link in paced.LINKS:
        mine = {(row["B"], row["n"]): row for row in rows if row["link"] == link}
        nodes = sorted({n for _, n in mine})
        lines += [
            f"Moves per second over a link of {link}, {how} (by the formula).", "",
            f"| B | {' | '.join(f'n = {n}' for n in nodes)} |", "|---|" + "---:|" * len(nodes),
        ]  # fmt: skip
        for B in LOCAL_STEPS:
            cells = (mine.get((B, n)) for n in nodes)
            said = ("" if r is None else f"{r['rate']:,.0f} ({r['predicted']:,.0f})" for r in cells)
            lines.append(f"| {B} | {' | '.join(said)} |")
        lines.append("")
    return lines


def draw(rows: list[dict], path: Path, how: str = "SIMULATED") -> None:
    """A panel for each link: dots are what was found, lines are the formula."""
    plt = pyplot()
    figure, axes = plt.subplots(1, len(paced.LINKS), figsize=(11, 4.4), sharey=True)
    for axis, link in zip(axes, paced.LINKS, strict=True):
        nodes = sorted({row["n"] for row in rows})
        for number, B in enumerate(LOCAL_STEPS):
            mine = [row for row in rows if (row["link"], row["B"]) == (link, B)]
            colour = f"C{number}"
            axis.plot([r["n"] for r in mine], [r["rate"] for r in mine], "o", color=colour,
                      markersize=5, label=f"B = {B}")  # fmt: skip
            axis.plot(nodes, [prediction(link, B, n) for n in nodes], color=colour, alpha=0.6)
        axis.plot(nodes, [n * paced.MOVES_A_SECOND for n in nodes], ":", color="0.5",
                  label="no exchanges")  # fmt: skip
        axis.set(xscale="log", yscale="log", xlabel="nodes", title=link)
        axis.set_xticks(nodes, [str(n) for n in nodes])
        axis.minorticks_off()
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("moves per second")
    axes[0].legend(fontsize=8)
    figure.suptitle(f"Figure 5: data rate, Space Invaders ({how}; lines: the formula)")
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)
