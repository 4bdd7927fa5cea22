"""Who is ahead after so many seconds: the defaults, or some row of a peer, whatever its priors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from experiments.panel import cells, reading
from experiments.panel.reading import Cell

_CLOSEST = 3

class Case(NamedTuple):
    """The defaults and the best row of all peers at a mark."""

    corpus: str
    topics: int
    seconds: int
    ours: float | None  # None: the first pass was not over
    other: float
    against: str  # the row

    @property
    def ratio(self) -> float | None:
        """Our perplexity over the other, above 1 where ours is worse."""
        return None if self.ours is None else self.ours / self.other

    def __str__(self) -> str:
        where = f"{self.corpus}, K = {self.topics}, {self.seconds} s: "
        if self.ratio is None:
            return f"{where}no pass, {self.against} {self.other:,.1f}"
        worse, word = 100 * (self.ratio - 1), "worse" if self.ratio > 1 else "better"
        values = f"defaults {self.ours:,.1f}, {self.against} {self.other:,.1f}"
        return f"{where}{values}, {abs(worse):.1f} % {word}"


def find(by_cell: Mapping[tuple[str, int], Cell]) -> list[Case]:
    """Return a case for each cell and mark at which a peer has a perplexity, with its own priors.

    Parameters
    ----------
    by_cell : mapping
        As :func:`experiments.panel.reading.by_cell` makes it, without the grid.
    """
    found = []
    for (corpus, topics), cell in by_cell.items():
        peers = {name: rows for name, rows in cell.items() if not reading.is_ours(rows)}
        if "defaults" not in cell:
            continue
        for seconds in cells.SECONDS:
            scores = {
                name: score
                for name, rows in peers.items()
                if (score := reading.at_seconds(rows, seconds, "own")) is not None
            }
            if scores:
                best = min(scores, key=scores.get)
                mine = reading.at_seconds(cell["defaults"], seconds, "own")
                found.append(Case(corpus, topics, seconds, mine, scores[best], best))
    return found


def as_lines(by_cell: Mapping[tuple[str, int], Cell]) -> list[str]:
    """Lay out a section of the table's page: how many cases each has, and those to look at."""
    cases = find(by_cell)
    if not cases:
        return []
    lines = []
    for seconds in cells.SECONDS:
        ratios = [case.ratio for case in cases if case.seconds == seconds]
        met = [ratio for ratio in ratios if ratio is not None]
        lower = sum(ratio <= 1 for ratio in met)
        counts = seconds, len(ratios), lower, len(met) - lower, len(ratios) - len(met)
        lines.append(f"| {' | '.join(map(str, counts))} |")
    order = sorted((case for case in cases if case.ratio), key=lambda case: -case.ratio)
    shown = order[: sum(case.ratio > 1 for case in order) or _CLOSEST]
    none = [case for case in cases if case.ratio is None]
    return [
        "## After so many seconds", "",
        "`DPSVILDA()` and the row of a peer with the lowest perplexity by then, whatever its "
        "priors; a case is a corpus and a K at which a peer has one.", "",
        "| seconds | cases | dpsvi is lower | a peer is lower | no pass of dpsvi was over |",
        "|---:" * 5 + "|", *lines, "",
        f"All cases in which a peer is lower, or else the {_CLOSEST} closest:", "",
        *(f"* {case}" for case in shown), "",
        *(["No pass of `dpsvi` was over:", ""] if none else []),
        *(f"* {case}" for case in none), "",
    ]  # fmt: skip
