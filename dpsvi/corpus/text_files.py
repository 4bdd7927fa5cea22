"""Texts in files: one a line, or one a row of a table."""

from __future__ import annotations

import csv
import io
from os import PathLike
from pathlib import Path

from dpsvi.corpus.stream import read_lines, read_text
from dpsvi.errors import CorpusFormatError

COLUMN = "text"  # of a table


def read_texts(
    path: str | PathLike, encoding: str = "utf-8", max_bytes: int | None = None
) -> list[str]:
    """The texts of a plain or gzip file: its lines, or those of the column ``text`` of a ``.csv``.

    Parameters
    ----------
    path, encoding, max_bytes
        As in :func:`dpsvi.corpus.stream.read_lines`.  Line 1 of a ``.csv`` names the columns; texts
        in quotes may hold commas and ends of lines.

    Returns
    -------
    list of str
        Empty texts are kept, so that they can be told by their numbers; empty lines of a ``.csv``
        are no rows.

    Raises
    ------
    CorpusFormatError
        ``file:line: reason``: the file is empty, not in this encoding, or no such table.
    """
    if Path(path).name.lower().endswith((".csv", ".csv.gz")):
        texts = _column(path, read_text(path, encoding, max_bytes))
    else:
        texts = read_lines(path, encoding, max_bytes)
        texts = [] if texts == [""] else texts
    if not texts:
        raise CorpusFormatError.at(path, 1, "there is no text")
    return texts


def _column(path, table: str) -> list[str]:
    limit = csv.field_size_limit(max(len(table), csv.field_size_limit()))  # of one text
    rows = csv.reader(io.StringIO(table, newline=""), strict=True)
    try:
        header = next(rows, [])
        if header.count(COLUMN) != 1:
            raise ValueError(
                f"one column of a .csv must be called {COLUMN!r}, the first line is {header}; "
                "of a file with another name each line is a text"
            )
        place, texts = header.index(COLUMN), []
        for row in rows:
            if row and len(row) != len(header):
                raise ValueError(f"{len(row)} fields, line 1 has {len(header)} names")
            texts += row[place : place + 1]
    except (ValueError, csv.Error) as error:
        raise CorpusFormatError.at(path, max(1, rows.line_num), error) from error
    finally:
        csv.field_size_limit(limit)
    return texts
