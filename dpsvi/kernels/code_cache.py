"""Where numba keeps compiled code, so that one process compiles it and all later ones load it.

That is the first of these folders that can be written: the one that ``NUMBA_CACHE_DIR`` names,
``__pycache__`` beside the sources, the user's cache folder.

Numba takes a kernel from there if the kernel's own file is as it was, and does not look at the
files of those that it calls; and what another version has left it may be unable to read.  So all
is dropped that was compiled from other sources of dpsvi.
"""

from __future__ import annotations

import hashlib
import logging
import os
from functools import cache
from pathlib import Path

import numba
from numba.core.caching import UserProvidedCacheLocator

log = logging.getLogger(__name__)

IN_TREE = "__pycache__"
PACKAGE = Path(__file__).parents[1]
MARK = "dpsvi-sources"  # a file: what the compiled code beside it was compiled from
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
    return PACKAGE if found.name == IN_TREE else found.parent


@cache
def can_be_kept() -> bool:
    """Whether numba is to keep what it compiles; says so once where it cannot.

    What was compiled from other sources is dropped.
    """
    if folder() is None:
        log.warning("compiled code cannot be kept, so every process compiles it: %s", NOWHERE)
        return False
    try:
        _drop_stale()
    except OSError as error:
        log.warning("compiled code of other sources may be used: it cannot be dropped: %s", error)
    return True


def _drop_stale() -> None:
    """Remove what numba would find that was compiled from other sources than those there are."""
    sources = sorted(PACKAGE.rglob("*.py"))
    mark, now = _place_of(PACKAGE) / MARK, _state_of(sources)
    try:
        if mark.read_text(encoding="utf-8") == now:
            return
    except FileNotFoundError:
        pass
    for place in {_place_of(path.parent) for path in sources}:
        for index in place.glob("*.nbi"):  # without it nothing is found
            index.unlink(missing_ok=True)
    mark.parent.mkdir(parents=True, exist_ok=True)
    new = mark.with_name(f"{MARK}-{os.getpid()}")
    new.write_text(now, encoding="utf-8")
    new.replace(mark)


def _place_of(package: Path) -> Path:
    """Where numba keeps the code of the modules in a folder."""
    if folder() == PACKAGE:
        return package / IN_TREE
    return folder() / UserProvidedCacheLocator.get_suitable_cache_subpath(str(package / "x.py"))


def _state_of(sources: list[Path]) -> str:
    """By size and time of change, as numba has it for a single file."""
    found = hashlib.sha256()
    for path in sources:
        stat = path.stat()
        found.update(f"{path.relative_to(PACKAGE)} {stat.st_size} {stat.st_mtime_ns}\n".encode())
    return found.hexdigest()
