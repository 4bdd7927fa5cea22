"""The page of an actor-critic: its learning curve, and an episode that one can watch.

One file that needs no network: the curve is drawn here, the episode is a list of shapes for each
state, drawn on a canvas by a few lines of JavaScript.  An environment without ``draw`` has no
episode on its page.
"""

from __future__ import annotations

import html
import json
import math
from importlib.resources import files
from string import Template

from dpsvi.files.io import write_text

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 640, 300, 72, 56, 16
_MOST = 1500  # states of a replay


def write_page(path, agent, result: dict) -> None:
    """Write the page of a fitted :class:`dpsvi.rl.ActorCritic`.

    Parameters
    ----------
    path : path
        Of an HTML file.
    agent : ActorCritic
    result : dict
        What is told of the run: ``environment``, ``algorithm``, ``moves``, ``seconds``, ``score``,
        ``simulated``.
    """
    draw = getattr(agent._environment(), "draw", None)
    states = [] if draw is None else agent.watch()
    frames = [_rounded(draw(state)) for state in states[:_MOST]]
    template = Template((files("dpsvi.rl") / "page.html").read_text(encoding="utf-8"))
    write_text(
        path,
        template.substitute(
            environment=html.escape(str(result["environment"]).replace("_", " ")),
            algorithm=html.escape(result["algorithm"]),
            moves=f"{result['moves']:,}",
            seconds=f"{result['seconds']:.1f}{' simulated' * result['simulated']}",
            score=f"{result['score']:.4g}",
            curve=curve(agent.history_),
            shown=f"{len(frames):,} of {len(states):,}", hidden="hidden" * (draw is None),
            frames=json.dumps(frames, separators=(",", ":")),
        ),
    )


def curve(history: list[dict]) -> str:
    """The score over moves, as SVG."""
    if not history:
        return "<p>No evaluation was made.</p>"
    moves = [entry["moves"] for entry in history]
    scores = [entry["score"] for entry in history]
    rows, columns = _ticks(min(0.0, *scores), max(0.0, *scores)), _ticks(0.0, moves[-1])
    low, high = rows[0], rows[-1]
    right, bottom = _WIDTH - 24, _HEIGHT - _BOTTOM

    def x(value):
        return _LEFT + (right - _LEFT) * value / moves[-1]

    def y(value):
        return bottom - (bottom - _TOP) * (value - low) / (high - low)

    points = " ".join(f"{x(m):.1f},{y(s):.1f}" for m, s in zip(moves, scores, strict=True))
    lines = [
        f'<line class="grid" x1="{_LEFT}" x2="{right}" y1="{y(value):.1f}" y2="{y(value):.1f}"/>'
        f'<text x="{_LEFT - 8}" y="{y(value):.1f}" dy=".35em" text-anchor="end">{value:.4g}</text>'
        for value in rows
    ]
    lines += [
        f'<text x="{x(value):.1f}" y="{bottom + 22}" text-anchor="middle">{_short(value)}</text>'
        for value in columns
        if value <= moves[-1]
    ]
    dots = "".join(
        f'<circle cx="{x(m):.1f}" cy="{y(s):.1f}" r="3"><title>{m:,} moves: {s:.4g}</title>'
        "</circle>"
        for m, s in zip(moves, scores, strict=True)
    )
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="mean return of greedy episodes over moves">{"".join(lines)}'
        f'<polyline points="{points}"/>{dots}'
        f'<text x="{(_LEFT + right) / 2}" y="{_HEIGHT - 8}" text-anchor="middle">moves</text></svg>'
    )


def _ticks(low: float, high: float) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten, about five of them, that enclose an interval."""
    wide = (high - low or 1.0) / 5
    power = 10.0 ** math.floor(math.log10(wide))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= wide * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [number * step for number in range(first, max(last, first + 1) + 1)]


def _short(number: float) -> str:
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{letter}"
    return f"{number:.3g}"


def _rounded(shapes) -> list:
    return [[round(v, 4) if isinstance(v, float) else v for v in shape] for shape in shapes]
