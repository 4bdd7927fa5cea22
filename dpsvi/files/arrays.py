"""Data of the models that are no topic models, from files: .npy, .npz, .csv and .mtx.

Nothing is unpickled.  Names are those of the estimators' `fit`: X, y, groups, lengths.
"""

from __future__ import annotations

import csv
import gzip
import logging
import math
import zipfile
import zlib
from array import array
from pathlib import Path

import numpy as np

from dpsvi.errors import DataFormatError, shortened

log = logging.getLogger(__name__)

NAMES = ("X", "y", "groups", "lengths")
MISSING = ("", "NA")  # cells of a .csv that hold no number, as spreadsheets and R write them
SUFFIXES = (".npy", ".npz", ".csv", ".csv.gz", ".mtx", ".mtx.gz")


def read_data(path, *, y=None, groups=None, sequence=None, features=None) -> dict:
    """Read what a file holds as keyword arguments of `fit`.

    Parameters
    ----------
    path : path
        ``.npy``: X.  ``.npz``: a sparse matrix of scipy, or arrays with the names above.  ``.mtx``:
        a Matrix Market file, X sparse or dense as it is there.  ``.csv``: a line of names, then
        numbers; a cell that is empty or ``NA`` is NaN, a missing value.
    y, groups, sequence : str or None
        Columns of a ``.csv`` that are not features: the target, the group of a row, the sequence
        it belongs to (rows of one sequence follow each other).
    features : sequence of str or None
        Columns of a ``.csv`` that X is to have, in this order; None: all that have no role.

    Returns
    -------
    dict
        ``"X"`` and whatever else there is; of a ``.csv`` also ``"features"``, the names of X's
        columns.

    Raises
    ------
    FileNotFoundError, IsADirectoryError, PermissionError
        The file cannot be opened.
    ValueError
        The suffix is unknown, or columns are named for another format than ``.csv``.
    DataFormatError
        The file is damaged or does not hold this.
    """
    path = Path(path)
    name = path.name.lower()
    suffix = next((s for s in SUFFIXES if name.endswith(s)), None)
    if suffix is None:
        raise ValueError(f"{path}: must end in one of {', '.join(SUFFIXES)}")
    columns = {"y": y, "groups": groups, "sequence": sequence}
    columns = {role: column for role, column in columns.items() if column is not None}
    if columns and not suffix.startswith(".csv"):
        raise ValueError(f"{path}: columns are named of .csv files only, got {columns}")
    path.stat()  # names a file that is not there, as not all readers do
    try:
        if suffix.startswith(".csv"):
            return _read_csv(path, columns, features)
        read = {".npy": _read_npy, ".npz": _read_npz}.get(suffix, _read_mtx)
        return _checked(read(path))
    except (DataFormatError, FileNotFoundError, IsADirectoryError, PermissionError):
        raise
    except (ValueError, EOFError, OSError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        # Of what is pickled numpy says how to unpickle it.
        reason = "holds Python objects, not numbers" if "allow_pickle" in str(error) else error
        raise DataFormatError(f"{path}: {reason}") from error


def _read_npy(path):
    # Unlike np.load it has no other format to fall back on, pickles least of all.
    return {"X": np.lib.format.open_memmap(path, mode="r")}


def _read_npz(path):
    if not zipfile.is_zipfile(path):
        raise ValueError("is no .npz archive, or was cut")
    with np.load(path, allow_pickle=False) as file:
        if "format" in file.files and "data" in file.files:
            from scipy.sparse import load_npz

            return {"X": load_npz(path).tocsr()}
        unknown = sorted(set(file.files) - set(NAMES))
        if unknown or "X" not in file.files:
            raise ValueError(f"holds the arrays {file.files}, expected X and of {NAMES[1:]} some")
        return {name: np.asarray(file[name]) for name in file.files}


def _read_mtx(path):
    from scipy.io import mmread

    X = mmread(path)
    return {"X": X if isinstance(X, np.ndarray) else X.tocsr()}


def _checked(found):
    X = found["X"]
    if X.ndim != 2 or X.dtype.kind not in "buif":
        raise ValueError(
            f"X must be real numbers in two dimensions, got {X.dtype} of shape {X.shape}"
        )
    return found


def _read_csv(path, columns, wanted):
    opened = gzip.open if path.name.lower().endswith(".gz") else open
    # utf-8-sig: spreadsheets write a byte order mark, which is no part of the first name.
    with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
        lines = csv.reader(file, strict=True)
        try:
            header = next(lines, [])
            places = _places(header, columns)
            features = _features(header, places, wanted)
            numbers, labels, gap = array("d"), {role: [] for role in places}, None
            for row in lines:
                if not row:
                    continue  # an empty line
                if len(row) != len(header):
                    raise ValueError(f"{len(row)} fields, line 1 has {len(header)} names")
                numbers.extend([_number(header[i], row[i]) for i in features])
                if gap is None and any(map(math.isnan, numbers[-len(features) :])):
                    gap = lines.line_num
                for role, place in places.items():
                    if role != "y" and not row[place].strip():
                        raise ValueError(f"column {header[place]!r}, of {role}, is empty")
                    labels[role].append(row[place])
            if not numbers:
                raise ValueError("there is no row below the names")
        except UnicodeDecodeError:
            raise  # text is decoded ahead of the lines
        except (ValueError, csv.Error) as error:
            raise DataFormatError.at(path, max(1, lines.line_num), error) from error
    # Every column without a role is a feature; whoever forgot that the file has ids sees it here.
    names = [header[i] for i in features]
    log.info(
        "%s: features are the columns %s", path.name, shortened(", ".join(map(repr, names)), 200)
    )
    X = np.frombuffer(numbers).reshape(-1, len(features))
    if gap is not None:
        n = np.count_nonzero(np.isnan(X))
        log.info("%s:%d: a number is missing, the first of %d", path.name, gap, n)
    found = {"X": X, "features": names}
    if "y" in labels:
        found["y"] = _targets(labels["y"])
    if "groups" in labels:
        found["groups"] = _labels(labels["groups"])
    if "sequence" in labels:
        names = np.array(labels["sequence"])
        starts = np.flatnonzero(np.concatenate([[True], names[1:] != names[:-1]]))
        found["lengths"] = np.diff(np.concatenate([starts, [len(names)]]))
    return found


def _places(header, columns):
    """Numbers of the columns that have a role; raises ValueError if line 1 holds no such names."""
    if header and all(map(_is_number, header)):
        raise ValueError(f"the first line must name the columns, it looks like data: {header}")
    for role, column in columns.items():
        if header.count(column) != 1:
            raise ValueError(f"{_how_many(header, column)} for {role}, it has {header}")
    return {role: header.index(column) for role, column in columns.items()}


def _features(header, places, wanted) -> list[int]:
    """Numbers of the columns that make X; ValueError if one of those `wanted` is not there."""
    if wanted is None:
        found = [i for i in range(len(header)) if i not in places.values()]
        if not found:
            raise ValueError("no column is left for X")
        names = [header[i] for i in found]
        if len({*names}) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"{_how_many(header, twice)}: each must have a name of its own")
        return found
    for name in wanted:
        if header.count(name) != 1:
            raise ValueError(
                f"{_how_many(header, name)}, which the model knows; it has {header}"
            )
    return [header.index(name) for name in wanted]


def _how_many(header, name) -> str:
    if name in header:
        return f"has {header.count(name)} columns {name!r}"
    return f"has no column {name!r}"


def _number(name, text) -> float:
    try:
        return np.nan if text.strip() in MISSING else float(text)
    except ValueError:
        raise ValueError(f"column {name!r} must be a number, got {shortened(text, 40)!r}") from None


def _is_number(text) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _targets(texts):
    """Numbers, if all are some; else labels."""
    return np.array(texts, dtype=np.float64 if all(map(_is_number, texts)) else str)


def _labels(texts):
    """Numbers, if they are written again as they were: 7 and 07 are two labels."""
    for kind in (np.int64, np.float64):
        try:
            numbers = np.array(texts).astype(kind)
        except (ValueError, OverflowError):
            continue
        if numbers.astype(str).tolist() == texts:
            return numbers
    return np.array(texts)
