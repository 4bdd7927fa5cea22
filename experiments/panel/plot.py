"""The picture: held-out perplexity over seconds of training, one panel for each corpus."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot as plt  # noqa: E402
from matplotlib.lines import Line2D  # noqa: E402
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator  # noqa: E402

from experiments.panel import cells, reading  # noqa: E402
from experiments.panel.settings import OURS  # noqa: E402

# Okabe and Ito (2008): told apart with any colour vision.  A library has a colour, its entrants
# have a dash each, so that the picture also survives a grey printer.
_COLOURS = {
    OURS: "#0072B2", "sklearn": "#D55E00", "gensim": "#009E73", "tomotopy": "#000000",
    "topica": "#CC79A7", "pyrmallet": "#E69F00", "artm": "#56B4E9",
}  # fmt: skip
_OTHER = "#808000"
_SOLID, _DASHED, _DOTTED, _MIXED = "-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5))
_DASHES = {
    "defaults": _SOLID, "kept": _DASHED, "mean-field": _DOTTED,
    "sklearn": _SOLID, "sklearn-fixed-pair": _DASHED, "sklearn-online-fixed-pair": _DOTTED,
    "gensim": _SOLID, "gensim-fixed-pair": _DASHED,
    "tomotopy": _SOLID, "tomotopy-fixed-pair": _DASHED,
    # Of topica's eight entrants four: the others are above or beside these.
    "topica-sparse": _SOLID, "topica-sparse-fixed-pair": _DASHED,
    "topica-warp-fixed-pair": _DOTTED, "topica-cvb0-fixed-pair": _MIXED,
    "pyrmallet": _SOLID, "pyrmallet-fixed-pair": _DASHED,
    "bigartm": _SOLID, "bigartm-fixed-pair": _DASHED,
}  # fmt: skip
_COLUMNS = 3
_WORST = 1.25  # times the perplexity of counting words: what is above leaves the picture
_ROUND = (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8)  # tick labels, times a power of ten


def plot(records: Sequence[dict], path: Path) -> None:
    """Draw every corpus at the number of topics that :func:`cells.main_topics` says.

    A point of ours is a fit of its own, over 3, 10, 30 or 100 passes, and so is one of topica's or
    pyrmallet's, over 10 to 1,125; those of other peers are moments of one run.  Where several seeds
    were fitted, the first is drawn.  A corpus without that number of topics is drawn at the nearest
    one.

    Parameters
    ----------
    records : sequence of dict
        Without the grid.
    path : Path
        PNG file, overwritten.
    """
    chosen = _chosen(reading.by_cell(records))
    rows = -(-len(chosen) // _COLUMNS)
    columns = min(_COLUMNS, len(chosen))
    figure, grid = plt.subplots(
        rows, columns, figsize=(1.2 + 4 * columns, 1.3 + 3.1 * rows), squeeze=False,
        layout="constrained",
    )  # fmt: skip
    drawn = {}
    for axes, ((corpus, topics), cell) in zip(grid.flat, chosen.items(), strict=False):
        drawn |= _panel(axes, cell)
        described = next(iter(cell.values()))[0]["corpus"]
        axes.set_title(
            f"{corpus}: {described['documents']:,} documents, K = {topics}", loc="left", fontsize=10
        )
        axes.set_xlabel("seconds of training", fontsize=9)
    for axes in grid[:, 0]:
        axes.set_ylabel("held-out perplexity, own priors", fontsize=9)
    for axes in grid.flat[len(chosen) :]:
        axes.set_visible(False)
    order = [name for name in _DASHES if name in drawn]
    figure.legend(
        [*(drawn[name] for name in order), Line2D([], [], color="#808080", linewidth=0.8)],
        [*(f"dpsvi {n}" if n in ("defaults", "kept", "mean-field") else n for n in order),
         "counting words"],
        loc="outside lower center", ncols=min(6, 1 + columns), frameon=False, fontsize=9,
    )  # fmt: skip
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _chosen(by_cell):
    """One cell a corpus."""
    found = {}
    for (corpus, topics), cell in by_cell.items():
        wanted = cells.main_topics(next(iter(cell.values()))[0]["corpus"])
        distance = abs(np.log(topics / wanted))
        if corpus not in found or distance < found[corpus][0]:
            found[corpus] = distance, topics, cell
    return {(corpus, topics): cell for corpus, (_, topics, cell) in found.items()}


def _panel(axes, cell):
    lines, lowest, highest = {}, np.inf, 0.0
    for entrant, dashes in _DASHES.items():
        if entrant not in cell:
            continue
        seconds, perplexity = _curve(cell[entrant])
        if not len(seconds):
            continue
        ours = reading.is_ours(cell[entrant])
        colour = _COLOURS.get(cell[entrant][0]["settings"]["library"], _OTHER)
        (lines[entrant],) = axes.plot(
            seconds, perplexity, color=colour, linestyle=dashes, marker="o",
            markersize=4 if ours else 2.5, linewidth=2.0 if ours else 1.2, zorder=3 if ours else 2,
        )  # fmt: skip
        lowest, highest = min(lowest, perplexity.min()), max(highest, perplexity.max())
    unigram = reading.unigram(cell)
    axes.axhline(unigram, color="#808080", linewidth=0.8)
    _scale(axes)
    if lines:
        top = min(1.04 * max(highest, unigram), _WORST * unigram)
        axes.set_ylim(min(lowest, unigram) / 1.04, top)
    return lines


def _curve(records):
    """Seconds and perplexities of the first seed: ends of fits, or moments of a peer's run."""
    first = min(record["settings"]["seed"] for record in records)
    points = [
        point
        for record in records
        if record["settings"]["seed"] == first
        for point in ([] if reading.is_ours([record]) and record["cut"] else record["points"])
    ]
    points.sort(key=lambda point: point["seconds"])
    return tuple(np.array([point[key] for point in points]) for key in ("seconds", "own"))


def _scale(axes):
    axes.set_xscale("log")
    axes.set_yscale("log")
    plain = FuncFormatter(lambda value, _: f"{value:,g}")
    for axis, steps in ((axes.xaxis, (1, 2, 5)), (axes.yaxis, _ROUND)):
        ticks = [step * 10.0**power for power in range(-3, 7) for step in steps]
        axis.set_major_locator(FixedLocator(ticks))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(plain)
        axis.set_tick_params(labelsize=8)
    axes.grid(color="#E5E5E5", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
