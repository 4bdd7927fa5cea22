"""Where numba keeps compiled code, so that one process compiles it and all later ones load it.

That is the first of these folders that can be written: the one that ``NUMBA_CACHE_DIR`` names,
``__pycache__`` beside the sources, the user's cache folder.
"""

from __future__ import annotations

import logging
from functools import cache
from pathlib import Path

import numba

log = logging.getLogger(__name__)

IN_TREE = "__pycache__"
NOWHERE = (
    "neither the folder of dpsvi nor the user's cache folder can be written; "
    "NUMBA_CACHE_DIR names another one"
)


def _probe():
    """A function to ask numba about; it is never compiled."""


@cache
def folder() -> Path | None:
    """The folder that holds all compiled code of dpsvi; None where none can be written.

    Code beside the sources lies in many folders: then it is the one of the package, above them.
    """
    try:
        found = Path(numba.njit(cache=True)(_probe).stats.cache_path)
    except RuntimeError:
        return None  # numba says this of a function that it cannot keep
    return Path(__file__).parents[1] if found.name == IN_TREE else found.parent


@cache
def can_be_kept() -> bool:
    """Whether numba is to keep what it compiles; says so once where it cannot."""
    if folder() is None:
        log.warning("compiled code cannot be kept, so every process compiles it: %s", NOWHERE)
    return folder() is not None
