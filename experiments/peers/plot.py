"""The figure: held-out perplexity over seconds of training, one line for each competitor."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot as plt  # noqa: E402
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator  # noqa: E402

from experiments.peers.libraries import OURS  # noqa: E402

# Okabe and Ito (2008): told apart with any colour vision.  A library has a colour, its competitors
# have a dash each, so that the figure also survives a grey printer.
_COLOURS = {OURS: "#0072B2", "sklearn": "#D55E00", "gensim": "#009E73", "tomotopy": "#000000"}
_DASHES = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))
_GAP = 0.042  # between labels, of the height of the axes
_ROUND = (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8)  # tick labels, times a power of ten


def plot(records: Sequence[dict], title: str, path: Path) -> None:
    """Draw median curves over thin lines of the single repeats.

    Parameters
    ----------
    records : sequence of dict
        As :func:`experiments.peers.run_one.run` returns them, all with the same thread count.
    title : str
    path : Path
        PNG file, overwritten.
    """
    groups: dict[str, list[dict]] = {}
    for record in records:
        groups.setdefault(record["competitor"], []).append(record)
    figure, axes = plt.subplots(figsize=(9, 5.4), layout="constrained")
    drawn: dict[str, int] = {}
    ends = []
    for name, group in groups.items():
        library = group[0]["library"]
        number = drawn[library] = drawn.get(library, -1) + 1
        colour = _COLOURS.get(library, "#CC79A7")
        width = 2.4 if library == OURS else 1.5
        for record in group:
            axes.plot(*_curve(record), color=colour, linewidth=0.5, alpha=0.35)
        seconds, perplexity = median_curve(group)
        dashes = _DASHES[number % len(_DASHES)]
        axes.plot(seconds, perplexity, color=colour, linewidth=width, linestyle=dashes)
        axes.plot(seconds[-1], perplexity[-1], "o", color=colour, markersize=2 + width)
        ends.append((seconds[-1], perplexity[-1], name, colour))
    unigram = records[0]["unigram_perplexity"]
    axes.axhline(unigram, color="#808080", linewidth=0.8)
    _scale(axes)
    _label(axes, [*ends, (axes.get_xlim()[1], unigram, "unigram", "#808080")])
    axes.set_title(title, loc="left", fontsize=11)
    axes.set_xlabel("seconds of training (evaluation, loading and compiling not counted)")
    axes.set_ylabel("held-out perplexity (lower is better)")
    figure.savefig(path, dpi=160)
    plt.close(figure)


def median_curve(group: Sequence[dict]) -> tuple[np.ndarray, np.ndarray]:
    """Median of several curves over the time that all of them cover.

    Each is read off, straight over log time, at the times of the first one.
    """
    curves = [_curve(record) for record in group]
    low, high = max(c[0][0] for c in curves), min(c[0][-1] for c in curves)
    inner = curves[0][0][(curves[0][0] > low) & (curves[0][0] < high)]
    seconds = np.unique(np.concatenate([[low], inner, [high]]))
    values = [np.interp(np.log(seconds), np.log(s), p) for s, p in curves]
    return seconds, np.median(values, axis=0)


def _curve(record):
    points = record["points"]
    return tuple(np.array([point[key] for point in points]) for key in ("seconds", "perplexity"))


def _scale(axes):
    axes.set_xscale("log")
    axes.set_yscale("log")
    plain = FuncFormatter(lambda value, _: f"{value:,g}")
    for axis, steps in ((axes.xaxis, (1, 2, 5)), (axes.yaxis, _ROUND)):
        ticks = [step * 10.0**power for power in range(-3, 7) for step in steps]
        axis.set_major_locator(FixedLocator(ticks))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(plain)
    axes.grid(color="#E5E5E5", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _label(axes, ends):
    """Write each name beside the end of its line, moved up where it would cover another."""
    low, high = np.log(axes.get_ylim())
    ends = sorted(ends, key=lambda end: end[1])
    below = -np.inf
    for seconds, perplexity, name, colour in ends:
        height = (np.log(perplexity) - low) / (high - low)
        place = max(height, below + _GAP)
        axes.annotate(
            f"{name} {perplexity:,.0f}",
            xy=(seconds, perplexity),
            xytext=(1.02, place),
            textcoords="axes fraction",
            color=colour,
            fontsize=9,
            va="center",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.5, "shrinkB": 2},
        )
        below = place
