"""Figures from kept results alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from experiments.figures.outcome import MEASURES, curve, curves
from experiments.figures.plan import TOLERANCE, Plan
from experiments.figures.store import Store

TITLES = {
    "fig1": ("Figure 1: workers, one thread each", "workers n"),
    "fig2": ("Figure 2: threads of one worker", "threads p"),
    "fig3": ("Figure 3: n workers of n threads", "n = p"),
    "beyond": ("Beyond the paper", "threads of all workers"),
}
MOST_LINEAR = 24  # threads or workers, up to which an axis is linear
GONE = "x: TSP, not there; documents per second, perplexity at the end not within 2 %"


def speedup_figure(rows: list[dict], figure: str, path: Path, models: dict) -> None:
    """TSP (12), documents per second and perplexity; a column for each cluster.

    Parameters
    ----------
    rows : list of dict
        From :func:`experiments.figures.outcome.speedups`.
    models : dict
        Curves (x, serialised, overlapping) of the paper's models, by panel and series.
    """
    plt = pyplot()
    panels = list(dict.fromkeys(row["panel"] for row in rows))
    shown = [*MEASURES, "perplexity"]
    n_rows, n_columns = (1, len(shown)) if len(panels) == 1 else (len(shown), len(panels))
    figure_, axes = plt.subplots(n_rows, n_columns, figsize=(4.9 * n_columns, 3.9 * n_rows))
    title, label = TITLES[figure]
    wide = figure in ("fig3", "beyond")  # n p is far above what is reached
    places = [(measure, panel) for measure in shown for panel in panels]
    colours, explained = _colours(rows), set()  # series in legends, by measure
    for axis, (measure, panel) in zip(axes.flat, places, strict=True):
        mine = [row for row in rows if row["panel"] == panel]
        xs = sorted({row["x"] for row in mine})
        if max(xs) > MOST_LINEAR:
            axis.set_xscale("log")
        axis.set_xticks(xs, [str(x) for x in xs])
        axis.minorticks_off()
        axis.set_xlabel(label)
        axis.set_ylabel(MEASURES.get(measure), fontsize=9)
        axis.set_title(panel, fontsize=9)
        axis.grid(alpha=0.3)
        if measure == "perplexity":
            _quality(axis, mine, colours)
            continue
        products = {row["x"]: row["run"].n * row["run"].p for row in mine}
        axis.plot(xs, [products[x] for x in xs], color="0.7", zorder=0, label="n p")
        highest = [row[f"{measure}_range"][1] for row in mine]
        if wide:
            _logarithmic(axis)
        else:
            axis.set_ylim(0, 1.35 * max(highest) or 1)
        _panel(axis, mine, measure, models if measure == "speed" else {}, colours)
        if new := {(measure, row["series"]) for row in mine} - explained:
            axis.legend(fontsize=7, loc="upper left", framealpha=0.7)
            explained |= new
    figure_.suptitle(f"{title} (SIMULATED; {GONE})", fontsize=10)
    save(figure_, path)


def _logarithmic(axis) -> None:
    """A logarithmic vertical axis with plain numbers."""
    from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

    axis.set_yscale("log")
    axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.yaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    axis.yaxis.set_minor_locator(NullLocator())


def _colours(rows: list[dict]) -> dict[str, str]:
    """One colour a series, the same in all panels."""
    names = dict.fromkeys(row["series"] for row in rows)
    return {name: f"C{number}" for number, name in enumerate(names)}


def _panel(axis, rows, measure, models, colours) -> None:
    """The series of one panel: medians, ranges, models; crosses where a point does not count."""
    names = list(dict.fromkeys(row["series"] for row in rows))
    for number, name in enumerate(names):
        colour = colours[name]
        mine = [row for row in rows if row["series"] == name]
        points = [row for row in mine if row[measure] is not None]
        axis.errorbar(
            [r["x"] for r in points], [r[measure] for r in points],
            _bars(points, measure, f"{measure}_range"), fmt="-", color=colour, capsize=2,
        )  # fmt: skip
        good = [r for r in points if measure == "tsp" or r["ended"]]
        axis.plot(
            [r["x"] for r in good], [r[measure] for r in good], "o", color=colour, markersize=4,
            label=name,
        )  # fmt: skip
        if measure == "tsp":
            gone = [r["x"] for r in mine if r["tsp"] is None]
            axis.plot(
                gone, [0.02 + 0.03 * number] * len(gone), "x", color=colour,
                transform=axis.get_xaxis_transform(),
            )  # fmt: skip
        else:
            high = [r for r in points if not r["ended"]]
            axis.plot([r["x"] for r in high], [r[measure] for r in high], "x", color=colour)
        if (mine[0]["panel"], name) in models:
            x, serialised, overlapping = models[mine[0]["panel"], name]
            faint = {"color": colour, "alpha": 0.6, "linewidth": 1}
            last = name == names[-1]
            axis.plot(x, serialised, ":", **faint, label="model: in turn" if last else None)
            axis.plot(x, overlapping, "--", **faint, label="model: at once" if last else None)


def _quality(axis, rows, colours) -> None:
    """Perplexity at the end of every series of a panel; dotted: what counts."""
    for name in dict.fromkeys(row["series"] for row in rows):
        mine = [row for row in rows if row["series"] == name]
        axis.errorbar(
            [r["x"] for r in mine], [r["perplexity"] for r in mine],
            _bars(mine, "perplexity", "perplexity_range"), fmt="-o", color=colours[name],
            markersize=4, capsize=2, label=name,
        )  # fmt: skip
    axis.axhline(TOLERANCE, color="0.6", linewidth=1, linestyle=":")
    highest = max(row["perplexity_range"][1] for row in rows)
    axis.set_ylim(0.96, min(1.25, max(1.05, 1.01 * highest)))
    axis.set_ylabel("perplexity at the end / serial SVI's", fontsize=9)


def _bars(rows: list[dict], value: str, ends: str) -> np.ndarray:
    """How far the ranges reach below and above the values, (2, n)."""
    ys = np.array([row[value] for row in rows], dtype=float)
    return np.abs(np.reshape([row[ends] for row in rows], (-1, 2)).T - ys)


def steered_figure(rows: list[dict], path: Path) -> None:
    """Both measures over B: fixed, and as it was steered on average."""
    plt = pyplot()
    panels = list(dict.fromkeys(row["panel"] for row in rows))
    figure, axes = plt.subplots(1, len(panels), figsize=(5.6 * len(panels), 4.4), squeeze=False)
    for axis, panel in zip(axes[0], panels, strict=True):
        for measure, colour in zip(MEASURES, ("C0", "C1"), strict=True):
            for kind, form in (("fixed B", "-o"), ("steered B", "*")):
                mine = [
                    row for row in rows
                    if row["panel"] == panel and row["series"] == kind and row[measure] is not None
                ]  # fmt: skip
                axis.plot(
                    [r["steps"] for r in mine], [r[measure] for r in mine], form, color=colour,
                    markersize=5 if form == "-o" else 11, label=f"{kind}: {MEASURES[measure]}",
                )  # fmt: skip
        axis.set(xscale="log", xlabel="local steps between exchanges, mean", ylabel="TSP")
        axis.set_ylim(bottom=0)
        axis.set_title(panel, fontsize=9)
        axis.grid(alpha=0.3)
    axes[0][0].legend(fontsize=7)
    n = rows[0]["run"].n
    figure.suptitle(f"B steered by waiting against fixed B, {n} workers (SIMULATED)", fontsize=10)
    save(figure, path)


def convergence_figure(plan: Plan, store: Store, path: Path) -> None:
    """Perplexity of training and of held-out documents over time, a row for each cluster."""
    plt = pyplot()
    panels = curves(plan, store)
    figure, axes = plt.subplots(len(panels), 2, figsize=(11.2, 4.4 * len(panels)), squeeze=False)
    for (training, held_out), (panel, lines) in zip(axes, panels.items(), strict=True):
        found = {name: curve(runs, store, panel) for name, runs in lines.items()}
        first = min(curve[0][1] for curve in found.values())
        for name, (seconds, *perplexities) in found.items():
            for axis, values in zip((held_out, training), perplexities, strict=True):
                axis.plot(
                    seconds, values, "-o" if lines[name][0].n else "-k", markersize=3, label=name
                )
        for axis, label in ((training, "training perplexity"), (held_out, "held-out perplexity")):
            axis.set_xscale("symlog", linthresh=first)  # from 0 on
            axis.set_title(panel, fontsize=9)
            axis.set(xlabel="virtual seconds", ylabel=label, xlim=(0, None))
            _logarithmic(axis)
            axis.grid(alpha=0.3)
        held_out.axhline(plan.target(store), color="0.6", linewidth=1, linestyle=":")
    axes[0][0].legend(fontsize=8)
    figure.suptitle(
        f"Figure 4: DPSVI-n, n workers of n threads, B = {plan.B_of_curves}; dotted: serial SVI "
        "+ 2 % (SIMULATED)", fontsize=10,
    )  # fmt: skip
    save(figure, path)


def pyplot():
    """Matplotlib without a screen."""
    import matplotlib

    matplotlib.use("agg")
    matplotlib.rcParams["svg.hashsalt"] = "dpsvi"  # the same figure, the same file
    from matplotlib import pyplot as plt

    return plt


def save(figure, path: Path) -> None:
    """Write PNG and SVG."""
    figure.tight_layout()
    for end in (".png", ".svg"):
        # No date, for the same reason as the salt.
        plain = dict.fromkeys(("Creator", "Date", "Format", "Type")) if end == ".svg" else None
        figure.savefig(path.with_suffix(end), dpi=120, metadata=plain)
    pyplot().close(figure)
