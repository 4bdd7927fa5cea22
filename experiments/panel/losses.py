"""Every cell in which one of ours loses, in words.

Ours are read after 30 passes, a peer at the best moment that it ever had, see :mod:`.reading`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from experiments.panel import libraries, reading
from experiments.panel.libraries import is_fixed
from experiments.panel.reading import COLUMNS, Cell

TOLERANCE = 1.01  # of a comparison of ours with ours
COLUMN_NAMES = {"own": "own priors", "fixed": "alpha .1"}
KINDS = {
    "peer": "Worse than a peer with the same kind of priors",
    "best": "Worse than the better of a peer's rows, each with its own priors",
    "unigram": "Worse than counting words, with its own priors",
    "passes": "More passes made it more than 1 % worse",
    "fixed pair": "More than 1 % worse than with the fixed pair of priors",
}


class Loss(NamedTuple):
    """One of ours against something else, in one column of one cell."""

    kind: str  # of KINDS
    corpus: str
    topics: int
    entrant: str
    column: str
    ours: float
    other: float
    against: str
    when: str = ""

    def __str__(self) -> str:
        worse = 100 * (self.ours / self.other - 1)
        column = "fixed pair" if is_fixed(self.entrant) else COLUMN_NAMES[self.column]
        return (
            f"{self.corpus}, K = {self.topics}: {self.entrant}{self.when} {self.ours:,.1f}, "
            f"{self.against} {self.other:,.1f} ({column}), {worse:.1f} % worse"
        )


def find(by_cell: Mapping[tuple[str, int], Cell]) -> list[Loss]:
    """Return all losses, by kind and then by cell.

    Parameters
    ----------
    by_cell : mapping
        As :func:`experiments.panel.reading.by_cell` makes it, without the grid.
    """
    found = [loss for name, cell in by_cell.items() for loss in _of_cell(*name, cell)]
    return sorted(found, key=lambda loss: list(KINDS).index(loss.kind))


def _of_cell(corpus, topics, cell) -> Iterable[Loss]:
    entrants = [entrant for entrant, records in cell.items() if reading.is_ours(records)]
    for entrant in entrants:
        records = cell[entrant]

        def loss(kind, column, *values, name=entrant):
            return Loss(kind, corpus, topics, name, column, *values)

        for column in COLUMNS:
            mine = reading.ours(records, column)
            if mine is None or (column == "fixed" and is_fixed(entrant)):
                continue  # with the fixed pair both columns are the same
            for kind, peer, other in _peers(cell, entrant, column):
                if other < mine:
                    yield loss(kind, column, mine, other, peer)
            pair = "fixed-pair" if entrant == "defaults" else f"{entrant}-fixed-pair"
            other = reading.ours(cell.get(pair), column)
            if other is not None and mine > TOLERANCE * other:
                yield loss("fixed pair", column, mine, other, pair)
        mine, other = reading.ours(records, "own"), reading.unigram(cell)
        if mine is not None and mine > other:
            yield loss("unigram", "own", mine, other, "counting words")
        for mine, passes, other, before in _relapses(records):
            yield loss("passes", "own", mine, other, before, f" after {passes} passes")


def _peers(cell, entrant, column):
    """A peer's lowest perplexity with the same kind of priors, and the lowest of all its rows."""
    for library, rows in reading.libraries_of(cell).items():
        name = libraries.get(library).PACKAGE
        same = [row for row in rows if is_fixed(row) == is_fixed(entrant)]
        other = reading.lowest(reading.best(cell[row], column) for row in same)
        if other is not None:
            kind = "the fixed pair" if is_fixed(entrant) else "its own priors"
            yield "peer", f"{name} with {kind}", other
        if entrant == "defaults" and column == "own":
            every = reading.lowest(reading.best(cell[row], column) for row in rows)
            if every is not None and (other is None or every < other):
                yield "best", f"{name} with the fixed pair", every


def _relapses(records):
    """Numbers of passes that end more than 1 % above the best of fewer."""
    lowest, where = None, None
    for passes in sorted({record["settings"]["passes"] for record in records}):
        now = reading.at_passes(records, passes, "own")
        if now is None:
            continue
        if lowest is not None and now > TOLERANCE * lowest:
            yield now, passes, lowest, f"after {where}"
        if lowest is None or now < lowest:
            lowest, where = now, passes
