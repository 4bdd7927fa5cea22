"""One picture for each question from kept results, with a panel for each problem."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import numpy as np
from sklearn.isotonic import isotonic_regression

from experiments.strategies.measures import NATS
from experiments.strategies.problems import GROUPS, PROBLEMS
from experiments.strategies.table import measure_of, median, middle_of

_LABEL = "loss, hundredths of a nat"
_LINE = 0.028  # of a name, as a share of the height of a panel


def draw(out: Path) -> None:
    """Draw all questions from the results in `out`, if there are some in nats."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    records = {
        name: json.loads(path.read_text())
        for name in PROBLEMS
        if (path := out / f"{name}.json").exists()
    }
    # Losses of returns are on another scale.
    records = {name: record for name, record in records.items() if measure_of(record) is NATS}
    if not records:
        return
    for question, panel in (
        ("workers", _workers), ("groups", _groups), ("bytes", _bytes), ("slow", _slow),
        ("killed", _killed),
    ):  # fmt: skip
        n_rows = -(-len(records) // 2)
        figure, axes = plt.subplots(n_rows, 2, figsize=(10.4, 5.6 * n_rows), squeeze=False)
        for axis in axes.flat[len(records) :]:
            axis.remove()
        for axis, (name, record) in zip(axes.flat, records.items(), strict=False):
            axis.set_title(f"{name}, simulated, medians of {len(record['serial'])} seeds", size=9)
            axis.grid(alpha=0.3)
            panel(axis, record)
        figure.tight_layout()
        figure.savefig(out / f"{question}.png", dpi=110, metadata={"Software": None})
        plt.close(figure)


def _losses(record, condition) -> dict[str, float]:
    """Hundredths of a nat below serial SVI, of the strategies that have a score."""
    base = statistics.median(found["score"] for found in record["serial"])
    scores = {name: median(row["seeds"], condition, "score") for name, row in _rows(record)}
    return {name: 100 * (base - score) for name, score in scores.items() if score is not None}


def _rows(record):
    return record["rows"].items()


def _dots(axis, series: dict[str, dict[str, float]]) -> None:
    """Values by strategy, those of the last series in rising order; strategies without one last."""
    *_, last = series.values()
    names = list(dict.fromkeys(name for values in series.values() for name in values))
    names.sort(key=lambda name: last.get(name, float("inf")), reverse=True)
    for i, (label, values) in enumerate(series.items()):
        places = [names.index(name) for name in values]
        axis.plot(
            list(values.values()), places, "os^D"[i], ms=5, label=label, color=f"C{i}",
            clip_on=False,
        )  # fmt: skip
    axis.set_yticks(range(len(names)), names, fontsize=8)
    if len(series) > 1:
        axis.legend(fontsize=8)


def _workers(axis, record) -> None:
    """Loss with few and with many workers."""
    _dots(axis, {f"n = {n}": _losses(record, f"n = {n}") for n in record["workers"]})
    _loss_axis(axis.xaxis, axis)


def _groups(axis, record) -> None:
    """Loss where workers have data of their own kind, and where they have not."""
    many = middle_of(record)
    own = f"{GROUPS} workers, one group each"
    _dots(axis, {many: _losses(record, many), own: _losses(record, "one group each")})
    _loss_axis(axis.xaxis, axis)


def _bytes(axis, record) -> None:
    """Loss and bytes with the most workers."""
    condition = f"n = {record['workers'][-1]}"
    losses = _losses(record, condition)
    sizes = {name: median(row["seeds"], condition, "bytes") for name, row in _rows(record)}
    axis.set_xscale("log")
    axis.set_xlabel(f"bytes an item, {condition}")
    _loss_axis(axis.yaxis, axis, "y")
    names = sorted(losses, key=losses.get)
    places = np.array([(sizes[name], losses[name]) for name in names])
    axis.scatter(*places.T, s=25, color=[f"C{i % 10}" for i in range(len(names))], zorder=3)
    axis.margins(0.08)
    axis.autoscale_view()
    heights = axis.transAxes.inverted().transform(axis.transData.transform(places))[:, 1]
    for name, place, height in zip(names, places, _spread(heights), strict=True):
        axis.annotate(
            name, place, xytext=(1.04, height), textcoords=axis.transAxes, size=7, va="center",
            arrowprops={"arrowstyle": "-", "color": "0.6", "lw": 0.5, "shrinkA": 0, "shrinkB": 2},
        )  # fmt: skip


def _spread(heights: np.ndarray) -> np.ndarray:
    """Where names of rising `heights`, shares of the panel, stand, as near and none on another."""
    steps = _LINE * np.arange(len(heights))
    return isotonic_regression(heights - steps, y_min=0.0, y_max=1.0 - steps[-1]) + steps


def _slow(axis, record) -> None:
    """Time that a slow worker costs all."""
    ratios, many = {}, middle_of(record)
    for name, row in _rows(record):
        slow, none = (median(row["seeds"], key, "seconds") for key in ("one slow", many))
        if slow is not None and none is not None:
            ratios[name] = slow / none
    _dots(axis, {"one slow": ratios})
    axis.set_xlabel(f"times as long a fit, {many}, with one 10 times slower")
    axis.set_xlim(left=0)


def _killed(axis, record) -> None:
    """Loss with a worker killed on the way, and without."""
    many = middle_of(record)
    killed = {f"{many}, one killed": _losses(record, "one killed")}
    _dots(axis, {many: _losses(record, many), **killed})
    _loss_axis(axis.xaxis, axis)


def _loss_axis(which, axis, side="x") -> None:
    """Linear near serial SVI, logarithmic far from it."""
    getattr(axis, f"set_{side}scale")("symlog", linthresh=3.0)
    which.set_label_text(_LABEL)
    (axis.axvline if side == "x" else axis.axhline)(0, color="0.5", lw=1, zorder=0)
