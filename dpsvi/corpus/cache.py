"""Parsed corpora on disk, as memory-mapped arrays that all processes of a machine share.

An entry is a folder named after the content of the source file and the way it was read, so that
a changed source is a different entry. It is made under a temporary name and renamed when whole;
of several processes that make it at the same time, the first wins and the others use its files.
The hash of each array is checked on opening (about 2 GB/s): a damaged entry is made again.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import tempfile
from os import PathLike
from pathlib import Path

import numpy as np

from dpsvi.corpus.container import Corpus

logger = logging.getLogger(__name__)

SCHEMA = 1  # part of the key: a new layout leaves old entries alone
_ARRAYS = ("offsets", "index", "value")


def cache_folder(cache: bool | str | PathLike) -> Path | None:
    """Return the folder that ``cache`` asks for, or None for no cache.

    True stands for the environment variable ``DPSVI_CACHE_DIR``, or where that is unset, for the
    platform's place for such files.
    """
    if cache is False:
        return None
    if cache is not True:
        return Path(cache)
    if folder := os.environ.get("DPSVI_CACHE_DIR"):
        return Path(folder)
    from platformdirs import user_cache_path

    return user_cache_path("dpsvi", appauthor=False)


def content_key(path: str | PathLike, how: dict) -> str:
    """Return the name of the entry for a file's content read in the way ``how`` (JSON types)."""
    digest = hashlib.sha256(json.dumps([SCHEMA, how], sort_keys=True).encode())
    digest.update(_sha256(path).encode())
    return digest.hexdigest()[:32]


def load(folder: Path, key: str) -> Corpus | None:
    """Open an entry; None where there is none or, with a logged warning, where it is damaged."""
    entry = folder / key
    try:
        meta = json.loads((entry / "meta.json").read_text("utf-8"))
        arrays = []
        for name in _ARRAYS:
            if _sha256(entry / f"{name}.npy") != meta["sha256"][name]:
                raise ValueError(f"{name}.npy does not have the hash it was written with")
            arrays.append(np.load(entry / f"{name}.npy", mmap_mode="r", allow_pickle=False))
        return Corpus(*arrays, n_features=meta["n_features"])
    except FileNotFoundError as error:
        if entry.exists():
            logger.warning("corpus cache entry %s is incomplete (%s)", entry, error)
        return None
    except (KeyError, OSError, TypeError, ValueError) as error:
        logger.warning("corpus cache entry %s is damaged (%s)", entry, error)
        return None


def store(folder: Path, key: str, corpus: Corpus, source: str | PathLike) -> Corpus:
    """Write an entry and return the corpus as mapped from it.

    A cache that cannot be written costs time, not results: that is logged, and the corpus comes
    back as it was given.
    """
    entry = folder / key
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            prefix=f".{key}-", dir=folder, ignore_cleanup_errors=True
        ) as work:
            new = Path(work) / "new"
            _write(new, corpus, source)
            try:
                new.rename(entry)
            except OSError:
                # Another process was first, unless what stands there is damaged.
                mapped = load(folder, key)
                if mapped is not None:
                    return mapped
                entry.rename(Path(work) / "damaged")
                new.rename(entry)
    except OSError as error:
        logger.warning("the corpus cache in %s could not be written: %s", folder, error)
        return corpus
    mapped = load(folder, key)
    return corpus if mapped is None else mapped


def _write(entry, corpus, source):
    """Write all files of an entry; no fsync, since damage of any kind shows in the hashes."""
    entry.mkdir()
    for name in _ARRAYS:
        np.save(entry / f"{name}.npy", getattr(corpus, name), allow_pickle=False)
    meta = {
        "source": os.path.abspath(source),
        "n_features": corpus.n_features,
        "sha256": {name: _sha256(entry / f"{name}.npy") for name in _ARRAYS},
    }
    (entry / "meta.json").write_text(json.dumps(meta, indent=1), "utf-8")


def _sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
