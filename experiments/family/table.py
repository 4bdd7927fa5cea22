"""A comparison as a table and as a figure, from its points alone."""

from __future__ import annotations

from pathlib import Path
from statistics import median

import numpy as np

from experiments.family.recorder import TOOL

CLOSE = 0.01  # nats
# Okabe and Ito (2008): told apart with any colour vision.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#000000", "#CC79A7", "#E69F00")


def seconds_to(curve: list[dict], target: float) -> float | None:
    """Seconds of the first point that reaches `target`; None if none does."""
    return next((p["seconds"] for p in curve if p["score"] >= target), None)


def curves(points: list[dict]) -> dict:
    """Points by problem, then tool, ours first, then seed; by ascending seconds."""
    found: dict = {}
    for p in sorted(points, key=lambda p: (p["tool"] != TOOL, p["seconds"])):
        tool = f"{p['tool']}, {p['settings']}"
        found.setdefault(p["problem"], {}).setdefault(tool, {}).setdefault(p["seed"], []).append(p)
    return found


def table(points: list[dict], title: str, source: str) -> str:
    """Each tool's last score and seconds, and when ours had that score.

    A peer that has long stopped improving is not the slower for it: so the time at which it came
    close to its last score is there, too, as well as it is known: after the last point that was not
    close, and not after the first that was.
    """
    lines = [title, "", source, ""]
    for problem, tools in curves(points).items():
        lines += [
            f"## {problem}", "",
            f"| tool | held-out score | seconds | within {CLOSE} of it after | dpsvi reaches it |",
            "|---" * 5 + "|",
        ]  # fmt: skip
        ours = {name: seeds for name, seeds in tools.items() if name.startswith(TOOL)}
        for name, seeds in tools.items():
            last = [curve[-1] for curve in seeds.values()]
            cells = [
                name, _spread([p["score"] for p in last], "{:.5g}"),
                _spread([p["seconds"] for p in last], "{:.3g}"),
                _between([_close(curve) for curve in seeds.values()]),
                "" if name in ours else _reached(ours, seeds),
            ]  # fmt: skip
            lines.append("| " + " | ".join(cells) + " |")
        lines.append("")
    return "\n".join(lines)


def _reached(ours, seeds):
    """When the first of ours had the last score of a tool, by seed.

    Where the score is not reached it takes for ever, and counts in the median like that.
    """
    times, at_once = [], False
    for seed, curve in seeds.items():
        mine = [one[seed] for one in ours.values() if seed in one]
        reached = [seconds_to(one, curve[-1]["score"]) for one in mine]
        times.append(min((t for t in reached if t is not None), default=np.inf))
        # Its first point may be past the score already: it was there even sooner.
        at_once |= times[-1] in [one[0]["seconds"] for one in mine]
    n_reached = int(np.isfinite(times).sum())
    if not np.isfinite(median(times)):
        return f"reached by {n_reached} of {len(times)}" if n_reached else "not reached"
    some = f"; {n_reached} of {len(times)} seeds" if n_reached < len(times) else ""
    return ("at most " if at_once else "") + _spread(times, "{:.3g} s") + some


def _close(curve) -> tuple[float, float]:
    """Between which seconds the score came close to the last one."""
    first = next(i for i, p in enumerate(curve) if p["score"] >= curve[-1]["score"] - CLOSE)
    return curve[first - 1]["seconds"] if first else 0.0, curve[first]["seconds"]


def _between(times) -> str:
    low, high = (median(some) for some in zip(*times, strict=True))
    return f"{low:.3g} to {high:.3g} s" if low else f"at most {high:.3g} s"


def _spread(values, form):
    shown = [form.format(v) for v in (median(values), min(values), max(values))]
    middle, low, high = ("never" if "inf" in text else text for text in shown)
    return middle if len(values) == 1 else f"{middle} ({low} to {high})"


def plot(points: list[dict], title: str, path: Path) -> None:
    """Draw the score over seconds: a panel a problem, a colour a tool, a line a way to run it."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import NullFormatter

    problems = curves(points)
    figure, panels = plt.subplots(
        1, len(problems), figsize=(5.2 * len(problems) + 1, 4.2), layout="constrained",
        squeeze=False,
    )  # fmt: skip
    for axes, (problem, tools) in zip(panels[0], problems.items(), strict=True):
        colours: dict = {}
        for seeds in tools.values():
            for curve in seeds.values():
                tool = curve[0]["tool"]
                label = None if tool in colours else tool
                colour = colours.setdefault(tool, _COLOURS[len(colours)])
                axes.plot(
                    [max(p["seconds"], 1e-3) for p in curve], [p["score"] for p in curve], "o-",
                    color=colour, markersize=3, linewidth=1.2, label=label,
                )  # fmt: skip
        # First steps may lie far below: the range is that of what the tools ended at.
        ends = [curve[-1]["score"] for seeds in tools.values() for curve in seeds.values()]
        best = [max(p["score"] for p in c) for seeds in tools.values() for c in seeds.values()]
        low, high = min(filter(np.isfinite, ends)), max(filter(np.isfinite, best))
        margin = 0.15 * (high - low) + 1e-9
        axes.set_ylim(low - margin, high + margin)
        axes.set_xscale("log")
        left, right = axes.get_xlim()
        if right < 10 * left:  # all after the same time: a wider range has readable ticks
            axes.set_xlim(left / 4, right * 4)
        axes.xaxis.set_minor_formatter(NullFormatter())  # labels of less than a decade overlap
        axes.set_title(problem, fontsize=10, loc="left")
        axes.set_xlabel("seconds of training")
        axes.legend(fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(0, -0.14), ncols=2)
    panels[0][0].set_ylabel("held-out score (higher is better)")
    figure.suptitle(title, fontsize=11, x=0.01, ha="left")
    figure.savefig(path, dpi=140)
    plt.close(figure)
