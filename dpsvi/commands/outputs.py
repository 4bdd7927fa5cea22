"""What commands write: results on stdout, arrays in files, and how to go on with a run."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from dpsvi.errors import UsageError


def emit(args, result: dict, text: str) -> None:
    """Print a result on stdout: as JSON if asked for, else as text."""
    if args.json:
        json.dump(result, sys.stdout, ensure_ascii=False)
        sys.stdout.write("\n")
    else:
        print(text)


def check_out(path) -> None:
    """Raise UsageError unless a file can be made at `path`."""
    path = Path(path)
    if path.is_dir() or not path.parent.is_dir():
        raise UsageError(f"--out must be a file in a folder that there is, got {str(path)!r}")


def check_array_out(path: str) -> None:
    """Raise UsageError unless :func:`write_array` can make a file at `path`."""
    if not path.endswith((".npy", ".csv")):
        raise UsageError(f"--out must end in .npy or .csv, got {path!r}")
    check_out(path)


def write_array(path: str, array, name: str) -> None:
    """Write an array of one or two dimensions, .npy or .csv with a header; whole or not at all.

    :func:`check_array_out` says beforehand whether it can.
    """
    import numpy as np

    from dpsvi.files.io import atomic_path

    with atomic_path(path) as temporary, open(temporary, "wb") as file:
        if path.endswith(".npy"):
            np.save(file, array)
            return
        columns = 1 if array.ndim == 1 else array.shape[1]
        header = name if array.ndim == 1 else ",".join(f"{name}{k}" for k in range(columns))
        form = "%s" if array.dtype.kind in "iuUS" else "%.6g"
        np.savetxt(file, array, delimiter=",", fmt=form, header=header, comments="")


def way_to_go_on(out) -> str:
    """What can be done with a run folder whose fit has ended too early; empty where nothing can."""
    there = (Path(out) / "checkpoints").is_dir()
    return f"`dpsvi resume {out}` goes on from the last checkpoint" if there else ""
