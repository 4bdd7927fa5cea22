"""Figure 6: seconds to a score over nodes and B, on the paced cluster.

The score is a mean return of 475 on CartPole, of greedy episodes with the master's parameters.
Each (n, B) chooses its learning rate and the master's rate from the same few pairs, by the mean
seconds of fits with other seeds, in which one that does not arrive counts as the limit.  Local
steps are small, since the moves of many workers come together at the master.
"""

from __future__ import annotations

import math
import statistics
from pathlib import Path

from experiments.figures.draw import pyplot
from experiments.hsa2c import paced
from experiments.hsa2c.runs import Runs

SETTINGS = {
    "environment": "cartpole", "hidden": [64, 64], "n_games": 2, "n_moves": 16, "gamma": 0.995,
    "entropy": 0.0, "link": "1 Gbit/s",
}  # fmt: skip
NODES = (1, 2, 4, 8, 16)
LOCAL_STEPS = (1, 4, 16, 64, 256)
TUNING_SEEDS = (100, 101)
TARGET, EPISODES = 475.0, 20
ON_THE_WAY = 350.0  # another score, whose times are told beside
BETWEEN = 5_000  # moves between two looks
LIMIT = 75.0  # seconds of the cluster, after which a fit is cut
# One node alone, with more time, more rates, and larger steps: what it could do at its best.
ALONE_STEPS = ((2, 16), (8, 8))
ALONE_RATES = (0.01, 0.005, 0.002)
ALONE_LIMIT = 300.0
_NEVER = 1.3 * LIMIT  # where the picture puts those that did not arrive


def rates(n: int) -> list[tuple[float, float]]:
    """Learning rates and the master's rates that are tried: a mean of n updates, and more."""
    pairs = [(0.01, 1 / n), (0.005, 1 / n)]
    return [*pairs, (0.005, 1 / math.sqrt(n))] if n > 1 else pairs


def make(runs: Runs, args) -> list[dict]:
    """A row for each n and B, with what was chosen and a result for each seed."""
    cells = [(n, B) for n in args.nodes or NODES for B in LOCAL_STEPS]
    chosen = {cell: choose(runs, *cell, args) for cell in cells}
    results: dict = {cell: [] for cell in cells}
    for seed in range(args.seeds):  # all cells first: they are even when the command is stopped
        for cell in cells:
            if chosen[cell] is not None:
                found = runs.get(seconds_to_score, {**chosen[cell], "seed": seed})
                results[cell] += [found] if found is not None else []
    rows = [{**chosen[cell], "results": results[cell]} for cell in cells if results[cell]]
    return rows + alone(runs, args)


def alone(runs: Runs, args) -> list[dict]:
    """Rows of one node that exchanges seldom, told apart by their ``limit``."""
    rows = []
    for n_games, n_moves in ALONE_STEPS:
        for learning_rate in ALONE_RATES:
            row = {
                **SETTINGS, "n_games": n_games, "n_moves": n_moves, "n": 1, "B": 16,
                "learning_rate": learning_rate, "most_moves": args.most_moves,
                "limit": ALONE_LIMIT,
            }  # fmt: skip
            found = [runs.get(seconds_to_score, {**row, "seed": s}) for s in range(args.seeds)]
            if None not in found:
                rows.append({**row, "results": found})
    return rows


def choose(runs: Runs, n: int, B: int, args) -> dict | None:
    """Settings of (n, B) with the rates that were the soonest; None if nothing was tried."""
    best = None
    for learning_rate, global_rate in rates(n):
        settings = {
            **SETTINGS, "n": n, "B": B, "learning_rate": learning_rate,
            "global_rate": global_rate, "most_moves": args.most_moves,
        }  # fmt: skip
        tried = [runs.get(seconds_to_score, {**settings, "seed": s}) for s in TUNING_SEEDS]
        if None in tried:
            continue
        mean = statistics.mean(r["seconds"] if r["arrived"] else LIMIT for r in tried)
        if best is None or mean < best[0]:
            best = mean, settings
    return None if best is None else best[1]


def seconds_to_score(settings: dict) -> dict:
    """Seconds of the cluster, moves and exchanges until the score is there, or until the end."""
    most, limit = settings["most_moves"], settings.get("limit", LIMIT)
    agent = paced.agent(
        settings, learning_rate=settings["learning_rate"], gamma=settings["gamma"],
        entropy=settings["entropy"], target=TARGET, n_episodes=EPISODES,
        n_evaluations=max(1, most // BETWEEN),
        callbacks=[lambda entry, agent: entry["seconds"] > limit],
    ).fit(most)  # fmt: skip
    last = agent.history_[-1]
    seen = (e["seconds"] for e in agent.history_ if e["score"] >= ON_THE_WAY)
    return {
        "arrived": last["score"] >= TARGET and last["seconds"] <= limit,
        "seconds": last["seconds"], "moves": last["moves"],
        "exchanges": len(agent.exchanges_["exchanges"]), "on_the_way": next(seen, None),
        "best": max(entry["score"] for entry in agent.history_),
    }  # fmt: skip


def median(row: dict, key: str) -> float:
    """Of all seeds; one that did not arrive counts as infinite."""
    return statistics.median(r[key] if r["arrived"] else math.inf for r in row["results"])


def median_on_the_way(row: dict) -> float:
    """Of the seconds to the lower score."""
    times = (r["on_the_way"] for r in row["results"])
    return statistics.median(math.inf if seconds is None else seconds for seconds in times)


def table(rows: list[dict]) -> list[str]:
    """Lines of Markdown: medians over the seeds, and what was chosen; then one node alone."""
    lines = [
        f"Seconds of the cluster to a mean return of {TARGET:g}, SIMULATED; medians over seeds, of "
        f"which those that did not arrive in {LIMIT:g} s count as infinite.  The master has no "
        "momentum.", "",
        f"| n | B | seeds that arrived | seconds (range) | moves | exchanges | seconds to "
        f"{ON_THE_WAY:g} | learning rate | global rate |",
        "|---|---|---|---:|---:|---:|---:|---:|---:|",
    ]  # fmt: skip
    for row in (row for row in rows if "limit" not in row):
        lines.append(
            f"| {row['n']} | {row['B']} | {_times(row)} | {row['learning_rate']:g} "
            f"| {row['global_rate']:.3g} |"
        )
    lines += [
        "", f"One node alone, for up to {ALONE_LIMIT:g} s.", "",
        f"| games | moves of each | seeds that arrived | seconds (range) | moves | exchanges "
        f"| seconds to {ON_THE_WAY:g} | learning rate |",
        "|---|---|---|---:|---:|---:|---:|---:|",
    ]  # fmt: skip
    for row in (row for row in rows if "limit" in row):
        lines.append(
            f"| {row['n_games']} | {row['n_moves']} | {_times(row)} | {row['learning_rate']:g} |"
        )
    return lines


def _times(row: dict) -> str:
    """Cells of a table."""
    arrived = sorted(r["seconds"] for r in row["results"] if r["arrived"])
    span = f" ({arrived[0]:.1f}-{arrived[-1]:.1f})" if arrived else ""
    cells = [
        f"{len(arrived)} of {len(row['results'])}",
        _number(median(row, "seconds"), ".1f") + span, _number(median(row, "moves"), ",.0f"),
        _number(median(row, "exchanges"), ",.0f"), _number(median_on_the_way(row), ".1f"),
    ]  # fmt: skip
    return " | ".join(cells)


def _number(value: float, form: str) -> str:
    return format(value, form) if math.isfinite(value) else "-"


def draw(rows: list[dict], path: Path) -> None:
    """Seconds over nodes for each B, every seed a dot; and over B for each n."""
    plt, rows = pyplot(), [row for row in rows if "limit" not in row]
    figure, axes = plt.subplots(1, 2, figsize=(11.5, 4.6), sharey=True)
    for axis, x, series, apart in zip(axes, ("n", "B"), ("B", "n"), (1.09, 1.25), strict=True):
        xs = sorted({row[x] for row in rows})
        names = sorted({row[series] for row in rows})
        for number, name in enumerate(names):
            colour, shift = f"C{number}", apart ** (number - (len(names) - 1) / 2)
            mine = sorted((r for r in rows if r[series] == name), key=lambda r: r[x])
            axis.plot(
                [r[x] * shift for r in mine], [median(r, "seconds") for r in mine], "-_",
                color=colour, markersize=12, label=f"{series} = {name}",
            )  # fmt: skip
            for row in mine:
                there = [r["seconds"] for r in row["results"] if r["arrived"]]
                axis.plot([row[x] * shift] * len(there), there, "o", color=colour, markersize=4,
                          alpha=0.7)  # fmt: skip
                if missing := len(row["results"]) - len(there):
                    axis.text(row[x] * shift, _NEVER, missing, color=colour, fontsize=8,
                              ha="center", va="center")  # fmt: skip
        axis.set(xscale="log", yscale="log", xlabel={"n": "nodes", "B": "B, local steps"}[x])
        axis.set_xticks(xs, [str(value) for value in xs])
        ticks = [5, 10, 20, 40, LIMIT]
        axis.set_yticks([*ticks, _NEVER], [*(f"{tick:g}" for tick in ticks), "never"])
        axis.set_ylim(ticks[0], 1.15 * _NEVER)
        axis.minorticks_off()
        axis.grid(alpha=0.3)
        axis.legend(fontsize=8)
    axes[0].set_ylabel(f"seconds to {TARGET:g}")
    figure.suptitle(
        "Figure 6: seconds to a mean return of 475, CartPole, 1 Gbit/s (SIMULATED; lines: medians; "
        "numbers: seeds that did not arrive)", fontsize=11,
    )  # fmt: skip
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)
