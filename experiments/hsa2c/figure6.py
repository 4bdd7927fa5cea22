"""Figure 6: seconds to a score over nodes and B, on the paced cluster.

The score is a mean return of greedy episodes with the master's parameters.  Each (n, B) chooses
its learning rate, the master's rate and how long they fall from the same few, by the mean seconds
of fits with other seeds, in which one that does not arrive counts as the limit.  Local steps are
small, since the moves of many workers come together at the master.  It merges each update when it
comes (M = 1) or, for some B, n of them at once (M = n), for which no worker waits.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from experiments.figures.draw import pyplot
from experiments.hsa2c import paced
from experiments.hsa2c.runs import Runs

EPISODES = 20


class Problem(NamedTuple):
    """What is learned, on which clusters, and when it counts as learned.

    Parameters
    ----------
    settings : dict
        Of all fits, as :func:`experiments.hsa2c.paced.agent` takes them.
    target, on_the_way : float
        The score, and a lower one whose times are told beside.
    nodes, local_steps, at_once : tuple of int
        n and B, and those B that have M = n, too.
    rates : callable(n) -> list of (float, float, int)
        Learning rates, the master's rates, and the moves over which they fall to nothing, at which
        a fit ends, that are tried.
    tuning_seeds : tuple of int
    between : int
        Moves between two looks.
    limit : float
        Seconds of the cluster, after which a fit is cut.
    alone_steps : tuple of (int, int)
        Games and moves of each, of one node alone that has more time, `alone_limit`, more rates,
        `alone_rates`, and larger steps: what it could do at its best.
    """

    settings: dict
    target: float
    on_the_way: float
    nodes: tuple[int, ...]
    local_steps: tuple[int, ...]
    at_once: tuple[int, ...]
    rates: Callable[[int], list[tuple[float, float, int]]]
    tuning_seeds: tuple[int, ...]
    between: int
    limit: float
    alone_steps: tuple[tuple[int, int], ...]
    alone_rates: tuple[float, ...]
    alone_limit: float

    @property
    def never(self) -> float:
        """Where the picture puts those that did not arrive."""
        return 1.3 * self.limit


def _cartpole_rates(n: int) -> list[tuple[float, float, int]]:
    """A mean of n updates, and more."""
    found = [(0.01, 1 / n, 600_000), (0.005, 1 / n, 600_000)]
    return [*found, (0.005, 1 / math.sqrt(n), 600_000)] if n > 1 else found


def _breakout_rates(n: int) -> list[tuple[float, float, int]]:
    """A mean of n updates."""
    return [(0.01, 1 / n, 600_000), (0.005, 1 / n, 600_000)]


PROBLEMS = {
    "cartpole": Problem(
        {
            "environment": "cartpole", "hidden": [64, 64], "n_games": 2, "n_moves": 16,
            "gamma": 0.995, "entropy": 0.0, "link": "1 Gbit/s",
        },
        target=475.0, on_the_way=350.0, nodes=(1, 2, 4, 8, 16), local_steps=(1, 4, 16, 64, 256),
        at_once=(4, 16, 64), rates=_cartpole_rates, tuning_seeds=(100, 101), between=5_000,
        limit=75.0,
        alone_steps=((2, 16), (8, 8)), alone_rates=(0.01, 0.005, 0.002), alone_limit=300.0,
    ),
    "breakout": Problem(
        {
            "environment": "breakout", "hidden": [128], "n_games": 2, "n_moves": 16,
            "gamma": 0.99, "entropy": 0.01, "sticky": 0.1, "link": "1 Gbit/s",
        },
        target=5.0, on_the_way=3.5, nodes=(1, 4, 8, 16), local_steps=(1, 4, 16, 64),
        at_once=(4, 16, 64), rates=_breakout_rates, tuning_seeds=(100,), between=10_000,
        limit=200.0,
        alone_steps=((8, 8),), alone_rates=(0.01, 0.005), alone_limit=300.0,
    ),
}  # fmt: skip


def make(runs: Runs, args) -> list[dict]:
    """A row for each problem, n, B and M, with what was chosen and a result for each seed."""
    names = [name for name in args.environments.split(",") if name in PROBLEMS]
    return [row for name in names for row in rows_of(PROBLEMS[name], runs, args)]


def rows_of(problem: Problem, runs: Runs, args) -> list[dict]:
    """Those of a problem."""
    nodes = args.nodes or problem.nodes
    cells = [(n, B, 1) for n in nodes for B in problem.local_steps]
    cells += [(n, B, n) for n in nodes if n > 1 for B in problem.at_once]
    chosen = {cell: choose(problem, runs, *cell) for cell in cells}
    results: dict = {cell: [] for cell in cells}
    for seed in range(args.seeds):  # all cells first: they are even when the command is stopped
        for cell in cells:
            if chosen[cell] is not None:
                found = runs.get(seconds_to_score, {**chosen[cell], "seed": seed})
                results[cell] += [found] if found is not None else []
    rows = [{**chosen[cell], "results": results[cell]} for cell in cells if results[cell]]
    return rows + alone(problem, runs, args)


def alone(problem: Problem, runs: Runs, args) -> list[dict]:
    """Rows of one node that exchanges seldom, told apart by their ``limit``."""
    rows = []
    for n_games, n_moves in problem.alone_steps:
        for learning_rate in problem.alone_rates:
            row = {
                **problem.settings, "n_games": n_games, "n_moves": n_moves, "n": 1, "B": 16,
                "learning_rate": learning_rate, "most_moves": problem.rates(1)[0][2],
                "limit": problem.alone_limit,
            }  # fmt: skip
            found = [runs.get(seconds_to_score, {**row, "seed": s}) for s in range(args.seeds)]
            rows.append({**row, "results": [one for one in found if one is not None]})
    return [row for row in rows if row["results"]]


def choose(problem: Problem, runs: Runs, n: int, B: int, M: int) -> dict | None:
    """Settings of (n, B, M) with the rates that were the soonest; None if nothing was tried."""
    best = None
    for learning_rate, global_rate, most_moves in problem.rates(n):
        settings = {
            **problem.settings, "n": n, "B": B, "learning_rate": learning_rate,
            "global_rate": global_rate, "most_moves": most_moves, **({"M": M} if M > 1 else {}),
        }  # fmt: skip
        tried = [runs.get(seconds_to_score, {**settings, "seed": s}) for s in problem.tuning_seeds]
        if None in tried:
            continue
        mean = statistics.mean(r["seconds"] if r["arrived"] else problem.limit for r in tried)
        if best is None or mean < best[0]:
            best = mean, settings
    return None if best is None else best[1]


def seconds_to_score(settings: dict) -> dict:
    """Seconds of the cluster, moves and exchanges until the score is there, or until the end."""
    problem, most = PROBLEMS[settings["environment"]], settings["most_moves"]
    limit = settings.get("limit", problem.limit)
    agent = paced.agent(
        settings, learning_rate=settings["learning_rate"], gamma=settings["gamma"],
        entropy=settings["entropy"], sticky=settings.get("sticky", 0.0), target=problem.target,
        n_episodes=EPISODES,
        n_evaluations=max(1, most // problem.between),
        callbacks=[lambda entry, agent: entry["seconds"] > limit],
    ).fit(most)  # fmt: skip
    last = agent.history_[-1]
    seen = (e["seconds"] for e in agent.history_ if e["score"] >= problem.on_the_way)
    return {
        "arrived": last["score"] >= problem.target and last["seconds"] <= limit,
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
    """Lines of Markdown, for each environment."""
    environments = dict.fromkeys(row["environment"] for row in rows)
    return [line for name in environments for line in _table(PROBLEMS[name], _of(rows, name))]


def _of(rows: list[dict], environment: str) -> list[dict]:
    return [row for row in rows if row["environment"] == environment]


def _table(problem: Problem, rows: list[dict]) -> list[str]:
    """Medians over the seeds, and what was chosen; then one node alone."""
    games, moves = problem.settings["n_games"], problem.settings["n_moves"]
    lines = [
        f"Seconds of the cluster to a mean return of {problem.target:g} on "
        f"{problem.settings['environment']}, SIMULATED; steps of {games} games by {moves} moves.  "
        f"Medians over seeds, of which those that did not arrive in {problem.limit:g} s count as "
        "infinite.  The master has no momentum; a fall is of both rates, in moves.", "",
        f"| n | B | M | seeds that arrived | seconds (range) | moves | exchanges | seconds to "
        f"{problem.on_the_way:g} | learning rate | global rate | fall |",
        "|---|---|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]  # fmt: skip
    for row in (row for row in rows if "limit" not in row):
        lines.append(
            f"| {row['n']} | {row['B']} | {row.get('M', 1)} | {_times(row)} "
            f"| {row['learning_rate']:g} | {row['global_rate']:.3g} | {row['most_moves']:,} |"
        )
    lines += [
        "", f"One node alone, for up to {problem.alone_limit:g} s.", "",
        f"| games | moves of each | seeds that arrived | seconds (range) | moves | exchanges "
        f"| seconds to {problem.on_the_way:g} | learning rate |",
        "|---|---|---|---:|---:|---:|---:|---:|",
    ]  # fmt: skip
    for row in (row for row in rows if "limit" in row):
        lines.append(
            f"| {row['n_games']} | {row['n_moves']} | {_times(row)} | {row['learning_rate']:g} |"
        )
    return [*lines, ""]


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
    """For each environment: seconds over nodes for each B, every seed a point; and over B."""
    plt, rows = pyplot(), [row for row in rows if "limit" not in row]
    names = list(dict.fromkeys(row["environment"] for row in rows))
    figure, axes = plt.subplots(len(names), 2, figsize=(11.5, 4.3 * len(names)), squeeze=False)
    for name, pair in zip(names, axes, strict=True):
        for axis, x, series in zip(pair, ("n", "B"), ("B", "n"), strict=True):
            _panel(axis, PROBLEMS[name], _of(rows, name), x, series)
        pair[0].set_ylabel(f"{name}: seconds to {PROBLEMS[name].target:g}")
    figure.suptitle(
        "Figure 6: seconds to a score, 1 Gbit/s (SIMULATED; lines: medians, dashed: M = n; "
        "numbers: seeds that did not arrive)", fontsize=11,
    )  # fmt: skip
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _curve(rows: list[dict], series: str, name: int, many: bool) -> list[dict]:
    """Rows of one n or B, of a master with M = n or with M = 1."""
    return [row for row in rows if row[series] == name and ("M" in row) == many]


def _panel(axis, problem: Problem, rows: list[dict], x: str, series: str) -> None:
    """Seconds over n for each B, or over B for each n; dashed where the master has M = n."""
    xs = sorted({row[x] for row in rows})
    names = sorted({row[series] for row in rows})
    curves = [(name, many) for name in names for many in (False, True)]
    curves = [(k, many, mine) for k, many in curves if (mine := _curve(rows, series, k, many))]
    for number, (name, many, mine) in enumerate(curves):
        apart = 1.09 if x == "n" else 1.2
        colour, shift = f"C{names.index(name)}", apart ** (number - (len(curves) - 1) / 2)
        mine.sort(key=lambda row: row[x])
        axis.plot(
            [r[x] * shift for r in mine], [median(r, "seconds") for r in mine],
            ls="--" if many else "-", marker="_", color=colour, markersize=12,
            label=f"{series} = {name}" + ", M = n" * many,
        )  # fmt: skip
        for row in mine:
            there = [r["seconds"] for r in row["results"] if r["arrived"]]
            axis.plot(
                [row[x] * shift] * len(there), there, "s" if many else "o", color=colour,
                markersize=4, alpha=0.7,
            )  # fmt: skip
            if missing := len(row["results"]) - len(there):
                axis.text(
                    row[x] * shift, problem.never * (1.12 if many else 1.0), missing, color=colour,
                    fontsize=8, ha="center", va="center",
                )  # fmt: skip
    axis.set(xscale="log", yscale="log", xlabel={"n": "nodes", "B": "B, local steps"}[x])
    axis.set_xticks(xs, [str(value) for value in xs])
    ticks = [problem.limit / 2**k for k in range(4, -1, -1)]
    axis.set_yticks([*ticks, problem.never], [*(f"{tick:.3g}" for tick in ticks), "never"])
    axis.set_xlim(xs[0] / 2, xs[-1] * 2)
    axis.set_ylim(ticks[0], 1.25 * problem.never)
    axis.minorticks_off()
    axis.grid(alpha=0.3)
    axis.legend(fontsize=8, loc="lower left")
