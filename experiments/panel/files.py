"""The files of a summary: table, points, marks and picture, each whole or not there at all."""

from __future__ import annotations

import csv
import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from experiments.panel import cells, reading
from experiments.panel.plot import plot
from experiments.panel.table import as_markdown, is_grid

_RUN = ("corpus", "topics", "entrant", "library", "passes", "threads", "seed")


def write(records: Sequence[dict], out: Path, remarks: Sequence[str] = ()) -> str:
    """Write ``table.md``, ``panel.csv``, ``marks.csv`` and ``panel.png``; return the table.

    ``panel.csv`` holds every point, ``marks.csv`` the perplexity with own priors of each entrant
    after 3, 10, 30 and 100 passes and after 1, 3, 10, 30 and 60 seconds.
    """
    text = as_markdown(records, remarks)
    own = [record for record in records if not is_grid(record)]
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out) as folder:
        whole = Path(folder)
        (whole / "table.md").write_text(text)
        _write(whole / "panel.csv", _points(records))
        _write(whole / "marks.csv", _marks(own))
        if own:
            plot(own, whole / "panel.png")
        for file in whole.iterdir():
            os.replace(file, out / file.name)
    return text


def _points(records) -> Iterable[list]:
    yield [
        *(f"{name}_asked" if name == "passes" else name for name in _RUN), "cut",
        "tokens_per_second", "unigram", "seconds", "passes", "perplexity", "perplexity_alpha_.1",
    ]  # fmt: skip
    for record in records:
        run = [record["settings"][name] for name in _RUN]
        run += [record["cut"], record["tokens_per_second"], record["unigram_perplexity"]]
        for point in record["points"]:
            yield [*run, *(point[key] for key in ("seconds", "passes", "own", "fixed"))]


def _marks(records) -> Iterable[list]:
    yield [
        "corpus", "topics", "entrant", *(f"{passes} passes" for passes in cells.PASSES),
        *(f"{seconds} s" for seconds in cells.SECONDS),
    ]  # fmt: skip
    for (corpus, topics), cell in reading.by_cell(records).items():
        for entrant, found in cell.items():
            values = [reading.at_passes(found, passes, "own") for passes in cells.PASSES]
            values += [reading.at_seconds(found, seconds, "own") for seconds in cells.SECONDS]
            yield [corpus, topics, entrant, *values]


def _write(path, rows):
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
