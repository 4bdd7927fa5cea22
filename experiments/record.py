"""Results that are kept in a file, so that their table can be drawn again without new runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path


def kept(path: Path, source: Mapping, measure: Callable[[], list[dict]] | None) -> dict:
    """Return what `path` holds, after it was measured anew.

    Parameters
    ----------
    path : Path
        A JSON file; its folder is made if need be.
    source : mapping
        Where the measurement comes from, as :func:`experiments.provenance.provenance` says it.
    measure : callable or None
        Makes the rows; None leaves the file as it is.

    Returns
    -------
    dict
        `source`, and the rows under ``rows``.

    Raises
    ------
    FileNotFoundError
        Nothing is kept, and nothing was measured.
    """
    if measure is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({**source, "rows": measure()}, indent=1) + "\n")
    return json.loads(path.read_text())
