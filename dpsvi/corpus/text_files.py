"""Texts in files: one a line, or a column of a table."""

from __future__ import annotations

import csv
import io
from os import PathLike
from pathlib import Path

from dpsvi.corpus.stream import lines_of, read_text
from dpsvi.errors import CorpusFormatError

COLUMN = "text"  # of a table
_BETWEEN = {".csv": ",", ".tsv": "\t"}  # what stands between two fields


def separator(path: str | PathLike) -> str | None:
    """What stands between two fields of a file that is a table by its name, else None."""
    suffixes = Path(path).name.lower().removesuffix(".gz")
    return _BETWEEN.get(Path(suffixes).suffix)


def read_texts(
    path: str | PathLike, encoding: str = "utf-8", max_bytes: int | None = None,
    text_column: str | None = None,
) -> list[str]:  # fmt: skip
    """The texts of a plain or gzip file: its lines, or those of a column of a ``.csv`` or ``.tsv``.

    Parameters
    ----------
    path, encoding, max_bytes
        As in :func:`dpsvi.corpus.stream.read_text`.  Line 1 of a table names the columns; texts
        in quotes may hold commas, tabs and ends of lines.
    text_column : str or None
        Name of the column; ``text`` where it is None.

    Returns
    -------
    list of str
        Empty texts are kept, so that they can be told by their numbers; empty lines of a table
        are no rows.

    Raises
    ------
    CorpusFormatError
        ``file:line: reason``: the file is empty, not in this encoding, or no such table.
    """
    if between := separator(path):
        table = read_text(path, encoding, max_bytes)
        texts = _column(path, table, text_column or COLUMN, between)
    elif text_column is not None:
        raise CorpusFormatError(
            f"{path}: text_column is for tables, .csv and .tsv, got {text_column!r}; of other "
            "files each line is a text"
        )
    else:
        whole = read_text(path, encoding, max_bytes)
        texts = lines_of(whole) if whole else []
    if not texts:
        raise CorpusFormatError.at(path, 1, "there is no text")
    return texts


def _column(path, table: str, name: str, between: str) -> list[str]:
    limit = csv.field_size_limit(max(len(table), csv.field_size_limit()))  # of one text
    rows = csv.reader(io.StringIO(table, newline=""), delimiter=between, strict=True)
    try:
        header = next(rows, [])
        if name not in header:
            names = "which the first line names" if header else "for the first line is empty"
            raise ValueError(f"text_column must be one of {header}, {names}, got {name!r}")
        if header.count(name) > 1:
            raise ValueError(f"text_column must name one column, several are called {name!r}")
        place, texts = header.index(name), []
        for row in rows:
            if row and len(row) != len(header):
                raise ValueError(f"{len(row)} fields, line 1 has {len(header)} names")
            texts += row[place : place + 1]
    except (ValueError, csv.Error) as error:
        raise CorpusFormatError.at(path, max(1, rows.line_num), error) from error
    finally:
        csv.field_size_limit(limit)
    return texts
