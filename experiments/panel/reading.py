"""What the records of a cell say: medians over seeds at a mark, and the best of a peer.

A perplexity is read off in a column: ``"own"``, with the model's own alpha, or ``"fixed"``, with
alpha 0.1.  None stands for "not measured".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from experiments.panel import cells, libraries
from experiments.panel.settings import OURS

COLUMNS = ("own", "fixed")
LATE = 1.1  # a copy of a peer's topics counts for a mark if it is at most a tenth behind it

Cell = Mapping[str, list[dict]]  # entrant -> records


def by_cell(records: Iterable[dict]) -> dict[tuple[str, int], Cell]:
    """Sort records by (corpus, K) and then by entrant."""
    found: dict[tuple[str, int], dict[str, list[dict]]] = {}
    for record in records:
        settings = record["settings"]
        cell = found.setdefault((settings["corpus"], settings["topics"]), {})
        cell.setdefault(settings["entrant"], []).append(record)
    return dict(sorted(found.items()))


def is_ours(records: Sequence[dict]) -> bool:
    """Whether these are fits of dpsvi."""
    return records[0]["settings"]["library"] == OURS


def at_passes(records: Sequence[dict], passes: int, column: str) -> float | None:
    """Median perplexity after so many passes; of runs over just as many if only ends are seen."""
    if not _is_watched(records):
        values = [record["points"][-1][column] for record in _whole(records, passes)]
    else:
        values = [
            point[column]
            for record in records
            for point in record["points"]
            if abs(point["passes"] - passes) < 1e-6
        ]
    return median(values) if values else None


def at_seconds(records: Sequence[dict], seconds: float, column: str) -> float | None:
    """Perplexity of who has so many seconds.

    Where only ends are seen, as with ours, that of the longest run that ends within them.  A run
    that was cut earlier says nothing.
    """
    if not _is_watched(records):
        longest = [
            passes
            for passes in {record["settings"]["passes"] for record in records}
            if (whole := _whole(records, passes))
            and median(record["seconds"] for record in whole) <= seconds
        ]
        return at_passes(records, max(longest), column) if longest else None
    values = []
    for record in records:
        if record["cut"] and LATE * record["seconds"] < seconds:
            continue
        before = [p[column] for p in record["points"] if p["seconds"] <= LATE * seconds]
        values += before[-1:]
    return median(values) if values else None


def read_at(records: Sequence[dict]) -> int | None:
    """Passes at which the table reads our fits: 30, or the most below that ended in time."""
    ended = [r["settings"]["passes"] for r in records if not r["cut"]]
    return max((passes for passes in ended if passes <= cells.READ_AT), default=None)


def ours(records: Sequence[dict] | None, column: str) -> float | None:
    """Our perplexity in the table."""
    passes = read_at(records) if records else None
    return at_passes(records, passes, column) if passes else None


def best(records: Sequence[dict] | None, column: str) -> float | None:
    """Lowest perplexity that a peer ever had."""
    return min(
        (point[column] for record in records or () for point in record["points"]), default=None
    )


def lowest(values: Iterable[float | None]) -> float | None:
    """The lowest of the values that were measured."""
    return min((value for value in values if value is not None), default=None)


def unigram(cell: Cell) -> float:
    """Perplexity of counting words."""
    return next(iter(cell.values()))[0]["unigram_perplexity"]


def libraries_of(cell: Cell) -> dict[str, list[str]]:
    """The peers of a cell and the entrants of each."""
    found: dict[str, list[str]] = {}
    for entrant, records in cell.items():
        if not is_ours(records):
            found.setdefault(records[0]["settings"]["library"], []).append(entrant)
    return found


def _is_watched(records):
    return libraries.is_watched(records[0]["settings"]["library"])


def _whole(records, passes):
    return [r for r in records if r["settings"]["passes"] == passes and not r["cut"]]
