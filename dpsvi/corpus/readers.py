"""Readers of the text formats; all refuse a file that is not whole.

References
----------
.. [1] UCI bag of words: D. Newman, https://archive.ics.uci.edu/dataset/164/bag+of+words
.. [2] Matrix Market: Boisvert, Pozo and Remington, "The Matrix Market Exchange Formats: Initial
   Design", NISTIR 5935, 1996, https://math.nist.gov/MatrixMarket/formats.html
.. [3] LDA-C: D. Blei, readme of lda-c, https://github.com/blei-lab/lda-c
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dpsvi.corpus.container import Corpus
from dpsvi.corpus.entries import Entries
from dpsvi.corpus.stream import LineReader, text_limit
from dpsvi.errors import CorpusFormatError, shortened

MIN_ENTRY_BYTES = 6  # "1 1 1" and the end of its line
# Rows and columns may be empty: up to this number of them needs no entries as evidence.
FREE_SIZE = 1 << 20
_MAX_INT32 = 2**31 - 1
_NO_LIMIT = 2**63 - 1


class ReadOptions(NamedTuple):
    """What the caller knows about a file.

    Parameters
    ----------
    index_base : {None, 0, 1}
        First number of words and documents in a text file; None for the rule of the format.
    allow_fractional : bool
        Take counts that are not whole.
    max_bytes : int or None
        Largest inflated size, in bytes.
    n_features : int or None
        Number of columns, where known from elsewhere.
    """

    index_base: int | None = None
    allow_fractional: bool = False
    max_bytes: int | None = None
    n_features: int | None = None


def read_uci(path: str | PathLike, options: ReadOptions) -> Corpus:
    """Read a UCI docword file: lines D, W, NNZ, then ``document word count`` ([1]_)."""
    lines = LineReader(path, options.max_bytes)
    sizes = [_header(lines, lines.readline(), (name,), options)[0] for name in ("D", "W", "NNZ")]
    return _read_triples(lines, sizes, options)


def read_matrix_market(path: str | PathLike, options: ReadOptions) -> Corpus:
    """Read a Matrix Market coordinate file with one row for each document ([2]_)."""
    lines = LineReader(path, options.max_bytes)
    banner = lines.readline().decode("ascii", "replace").lower().split()
    kinds = (["integer", "general"], ["real", "general"])
    if banner[:3] != ["%%matrixmarket", "matrix", "coordinate"] or banner[3:] not in kinds:
        raise _error(
            lines,
            "expected '%%MatrixMarket matrix coordinate', 'integer' or 'real', and 'general', "
            f"got {' '.join(banner)[:80]!r}",
        )
    line = lines.readline()
    while line.startswith(b"%"):
        line = lines.readline()
    return _read_triples(lines, _header(lines, line, ("D", "W", "NNZ"), options), options)


def read_ldac(path: str | PathLike, options: ReadOptions) -> Corpus:
    """Read an LDA-C file: a line ``n word:count ...`` for each document ([3]_).

    The format states no totals: a plain file cut exactly at the end of a line cannot be told
    from a shorter one. A gzip file can, by its checksum.
    """
    from dpsvi.corpus import parse

    lines = LineReader(path, options.max_bytes)
    limits = _limits(_MAX_INT32, options.n_features or _MAX_INT32, _NO_LIMIT, 0, options)
    entries, state = _parse(parse.parse_documents, lines, limits)
    check_not_empty(state[parse.N_KEPT], path)
    n_columns = options.n_features
    if n_columns is None:
        n_columns = int(entries.columns[: state[parse.N_KEPT]].max()) + 1
        check_columns(path, n_columns, path, options)
    return _finish(entries, state, (int(state[parse.N_DOCUMENTS]), n_columns), path)


def check_columns(place, n_columns: int, path: str | PathLike, options: ReadOptions) -> None:
    """Refuse a number of columns that contradicts what is known, or that nothing speaks for.

    A model allocates memory for every column, so that one damaged word id could ask for
    terabytes. The vocabulary is evidence, and so is a file of matching size.
    """
    expected = options.n_features
    allowed = _MAX_INT32
    if expected is None:
        allowed = _allowed_size(path, options)
    elif n_columns != expected:
        raise CorpusFormatError(
            f"{place}: {n_columns} words, but the vocabulary (or n_features) says {expected}"
        )
    if not 0 < n_columns <= allowed:
        raise CorpusFormatError(
            f"{place}: {n_columns} words, allowed 1..{allowed} for a file of this size "
            "without a vocabulary or n_features"
        )


def check_not_empty(n_entries: int, path: str | PathLike) -> None:
    """Refuse a file without any entry above zero: nothing can be learned from it."""
    if n_entries == 0:
        raise CorpusFormatError(f"{path}: empty corpus, no document holds a word")


def _capacity(path, options):
    """Most entries that the file can hold; the last line may lack its end."""
    return (text_limit(path, options.max_bytes) + 1) // MIN_ENTRY_BYTES


def _allowed_size(path, options):
    return min(max(FREE_SIZE, _capacity(path, options)), _MAX_INT32)


def _header(lines, text, names, options):
    """Read the sizes on one line and check each before anything is allocated for it."""
    fields = text.split()
    if len(fields) != len(names) or not all(field.isdigit() for field in fields):
        what = f"expected the header {' '.join(names)}, with which a file of counts begins"
        raise _error(lines, f"{what}, got {_shown(text)}")
    allowed = {
        "D": _allowed_size(lines.path, options),
        "NNZ": _capacity(lines.path, options),
    }
    # Twenty digits are too many already; int() itself gives up on thousands of them.
    sizes = dict(zip(names, (int(field[:20]) for field in fields), strict=True))
    for name, size in sizes.items():
        if name == "W":
            check_columns(f"{lines.path}:{lines.line}: header W", size, lines.path, options)
        elif not 0 < size <= allowed[name]:
            raise _error(
                lines, f"header {name} = {size}, a file of this size allows 1..{allowed[name]}"
            )
    return list(sizes.values())


def _read_triples(lines, sizes, options):
    from dpsvi.corpus import parse

    n_rows, n_columns, nnz = sizes
    limits = _limits(n_rows, n_columns, nnz, 1, options)
    entries, state = _parse(parse.parse_triples, lines, limits)
    if state[parse.N_READ] < nnz:
        raise _error(lines, f"the file ends after {state[parse.N_READ]} of {nnz} entries")
    check_not_empty(state[parse.N_KEPT], lines.path)
    return _finish(entries, state, (n_rows, n_columns), lines.path)


def _limits(n_rows, n_columns, nnz, default_base, options):
    from dpsvi.corpus import parse

    limits = np.zeros(parse.N_LIMITS, np.int64)
    limits[parse.N_ROWS] = n_rows
    limits[parse.N_COLUMNS] = n_columns
    limits[parse.NNZ] = nnz
    base = default_base if options.index_base is None else options.index_base
    limits[parse.INDEX_BASE] = base
    limits[parse.ALLOW_FRACTIONAL] = options.allow_fractional
    return limits


def _parse(kernel, lines, limits):
    """Run a parser over all blocks; return the entries and the last state."""
    from dpsvi.corpus import parse

    entries, state = Entries(), parse.new_state(lines.line)
    for block in lines.blocks():
        text = np.frombuffer(block, np.uint8)
        arrays = entries.reserve(int(state[parse.N_KEPT]), len(block))
        code = kernel(text, limits, state, *arrays)
        lines.line = int(state[parse.LINE])
        if code != parse.OK:
            start = state[parse.START]
            line = block[start : block.index(b"\n", start)]
            raise _error(lines, f"{parse.explain(code, limits)}, got {_shown(line)}")
    return entries, state


def _finish(entries, state, shape, path):
    from dpsvi.corpus import parse

    n = int(state[parse.N_KEPT])
    in_order, canonical = bool(state[parse.ROWS_IN_ORDER]), bool(state[parse.CANONICAL])
    return entries.to_corpus(n, shape, in_order, canonical, path)


def _error(lines, reason):
    return CorpusFormatError.at(lines.path, lines.line, reason)


def _shown(text):
    """Quote a line, shortened."""
    text = text.decode("ascii", "backslashreplace").strip()
    return repr(shortened(text))


_SUFFIXES = {
    ".mtx": "mm",
    ".mm": "mm",
    ".dat": "ldac",
    ".ldac": "ldac",
    ".blei": "ldac",
    ".npz": "npz",
}


def detect_format(path: str | PathLike, max_bytes: int | None = None) -> str:
    """Return ``uci``, ``mm``, ``ldac`` or ``npz``, from the suffix, else from the first line."""
    suffix = Path(str(path).lower().removesuffix(".gz")).suffix
    if suffix in _SUFFIXES:
        return _SUFFIXES[suffix]
    if suffix == ".npy":
        raise CorpusFormatError(f"{path}: is an array; save counts by scipy.sparse.save_npz")
    first = LineReader(path, max_bytes).readline()
    if first.startswith(b"%%MatrixMarket"):
        return "mm"
    return "ldac" if b":" in first else "uci"
