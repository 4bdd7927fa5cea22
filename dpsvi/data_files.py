"""Data of the models that are no topic models, from files: .npy, .npz, .csv and .mtx.

Nothing is unpickled.  Names are those of the estimators' `fit`: X, y, groups, lengths.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from dpsvi.errors import DataFormatError

NAMES = ("X", "y", "groups", "lengths")
SUFFIXES = (".npy", ".npz", ".csv", ".csv.gz", ".mtx", ".mtx.gz")


def read_data(path, *, y=None, groups=None, sequence=None) -> dict:
    """Read what a file holds as keyword arguments of `fit`.

    Parameters
    ----------
    path : path
        ``.npy``: X.  ``.npz``: a sparse matrix of scipy, or arrays with the names above.  ``.mtx``:
        a Matrix Market file, X sparse.  ``.csv``: a header, then numbers.
    y, groups, sequence : str or None
        Columns of a ``.csv`` that are not features: the target, the group of a row, the sequence
        it belongs to (rows of one sequence follow each other).

    Returns
    -------
    dict
        ``"X"`` and whatever else there is.

    Raises
    ------
    FileNotFoundError
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
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file")
    try:
        if suffix == ".npy":
            return {"X": np.load(path, mmap_mode="r", allow_pickle=False)}
        if suffix == ".npz":
            return _read_npz(path)
        if suffix.startswith(".mtx"):
            from scipy.io import mmread

            return {"X": mmread(path).tocsr()}
        return _read_csv(path, columns)
    except DataFormatError:
        raise
    except (ValueError, EOFError, OSError, KeyError, zipfile.BadZipFile) as error:
        raise DataFormatError(f"{path}: {error}") from error


def _read_npz(path):
    with np.load(path, allow_pickle=False) as file:
        if "format" in file.files and "data" in file.files:
            from scipy.sparse import load_npz

            return {"X": load_npz(path).tocsr()}
        unknown = sorted(set(file.files) - set(NAMES))
        if unknown or "X" not in file.files:
            raise ValueError(f"holds the arrays {file.files}, expected X and of {NAMES[1:]} some")
        return {name: file[name] for name in file.files}


def _read_csv(path, columns):
    # The names as the user sees them; csv fields may be quoted.
    import csv
    import gzip

    opened = gzip.open if path.name.endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8", newline="") as file:
        header = next(csv.reader(file), [])
    for role, column in columns.items():
        if header.count(column) != 1:
            raise ValueError(f"line 1: has no column {column!r} for {role}, it has {header}")
    places = {role: header.index(column) for role, column in columns.items()}
    features = [i for i in range(len(header)) if i not in places.values()]
    if not features:
        raise ValueError("line 1: no column is left for X")

    def load(which, kind):
        return np.loadtxt(
            path, kind, delimiter=",", skiprows=1, usecols=which, ndmin=2, quotechar='"',
            comments=None, encoding="utf-8",
        )  # fmt: skip

    found = {"X": load(features, np.float64)}
    for role, place in places.items():
        values = load([place], str)[:, 0]
        if role == "sequence":
            starts = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))
            found["lengths"] = np.diff(np.concatenate([starts, [len(values)]]))
        else:
            found[role] = _as_numbers(values) if role == "y" else values
    return found


def _as_numbers(values):
    """Numbers, if all are some: targets; else labels."""
    try:
        return values.astype(np.float64)
    except ValueError:
        return values
