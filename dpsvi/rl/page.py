"""The page of an actor-critic: its learning curve, and an episode that one can watch.

One file that needs no network: the curve is drawn here, the episode is a list of shapes for each
state, drawn on a canvas by a few lines of JavaScript.  An environment without ``draw`` has no
episode on its page.
"""

from __future__ import annotations

import html
import json
from importlib.resources import files
from string import Template

from dpsvi.files.io import write_text

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 640, 260, 56, 40, 12
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
    low, high = min(0.0, *scores), max(0.0, *scores)
    high += (high == low) * 1.0
    right, bottom = _WIDTH - 24, _HEIGHT - _BOTTOM

    def x(value):
        return _LEFT + (right - _LEFT) * value / moves[-1]

    def y(value):
        return bottom - (bottom - _TOP) * (value - low) / (high - low)

    points = " ".join(f"{x(m):.1f},{y(s):.1f}" for m, s in zip(moves, scores, strict=True))
    lines = []
    for share in (0, 0.25, 0.5, 0.75, 1):
        value, at = low + share * (high - low), y(low + share * (high - low))
        lines.append(
            f'<line class="grid" x1="{_LEFT}" x2="{right}" y1="{at:.1f}" y2="{at:.1f}"/>'
            f'<text x="{_LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{value:.4g}</text>'
        )
        lines.append(
            f'<text x="{x(share * moves[-1]):.1f}" y="{bottom + 18}" '
            f'text-anchor="middle">{_short(share * moves[-1])}</text>'
        )
    dots = "".join(
        f'<circle cx="{x(m):.1f}" cy="{y(s):.1f}" r="3"><title>{m:,} moves: {s:.4g}</title>'
        "</circle>"
        for m, s in zip(moves, scores, strict=True)
    )
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="mean return of greedy episodes over moves">{"".join(lines)}'
        f'<polyline points="{points}"/>{dots}'
        f'<text x="{(_LEFT + right) / 2}" y="{_HEIGHT - 4}" text-anchor="middle">moves</text></svg>'
    )


def _short(number: float) -> str:
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{letter}"
    return f"{number:.3g}"


def _rounded(shapes) -> list:
    return [[round(v, 4) if isinstance(v, float) else v for v in shape] for shape in shapes]
