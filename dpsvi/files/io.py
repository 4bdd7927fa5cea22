"""Files: whole or not at all, safetensors for arrays, JSON for the rest, nothing executable.

A model is a folder with ``model.safetensors`` and ``model.json``.  The JSON names the schema, the
shape and type of every array, the SHA-256 of the array file and its own, so a mixed-up, cut or
changed pair of files is refused instead of loaded.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import secrets
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from dpsvi.errors import ModelFormatError, check_number

SCHEMA = 3
_OWN_HASH = "json_sha256"  # of all other entries; since schema 3


@contextmanager
def atomic_path(path):
    """Yield a temporary name beside `path`; rename it to `path` when the block succeeds."""
    path = Path(path)
    temporary = path.parent / f".{path.name}.{secrets.token_urlsafe(6)}"
    try:
        # The system takes away what the umask forbids; asking for the umask would change it for
        # all threads.
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    except OSError as error:
        error.filename = os.fspath(path)  # nobody has asked for the temporary one
        raise
    try:
        yield temporary
        with open(temporary, "r+b") as file:  # Windows flushes only what may be written to
            os.fsync(file.fileno())
        os.replace(temporary, path)
        _flush_folder(path.parent)
    except BaseException as error:
        if isinstance(error, OSError) and error.errno and error.filename is None:
            error.filename = os.fspath(path)  # a full disk is told without a name
        temporary.unlink(missing_ok=True)
        raise


def _flush_folder(path):
    """Let a new name in a folder outlast a power cut."""
    if not hasattr(os, "O_DIRECTORY"):  # Windows opens no folders
        return
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def write_text(path, text: str) -> None:
    """Write a UTF-8 text file atomically."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path, data) -> None:
    """Write a JSON file atomically; arrays, numpy scalars and paths are allowed."""
    write_text(path, _json(data))


def _json(data) -> str:
    return json.dumps(data, indent=1, default=_plain, ensure_ascii=False) + "\n"


def _plain(value):
    if hasattr(value, "__array__"):  # numpy's own, and those of pandas
        return np.asarray(value).tolist()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"cannot be written as JSON: {value!r}")


def plain_params(estimator) -> dict:
    """Constructor parameters of an estimator, as JSON gives them back.

    Callbacks and vectorizers are left out, and so is where and how a fit ran, and a random state
    that is an object: it cannot be resumed.
    """
    params = estimator.get_params(deep=False)
    for name in ("callbacks", "vectorizer", "cluster", "checkpoint_dir"):
        params.pop(name, None)
    seed = params.get("random_state")
    params["random_state"] = int(seed) if isinstance(seed, (int, np.integer)) else None
    return json.loads(_json(params))


def save_model(folder, *, kind: str, arrays: dict, meta: dict) -> None:
    """Write a model of `kind` into `folder`, creating it if need be.

    Parameters
    ----------
    folder : path
    kind : str
        Checked by :func:`load_model`.
    arrays : dict of str to ndarray
    meta : dict
        Anything JSON can hold.

    Raises
    ------
    TypeError
        JSON cannot hold it; a model that was in the folder is still there.
    """
    from safetensors.numpy import save

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    payload = save(arrays)
    described = {
        name: {"shape": list(a.shape), "dtype": str(a.dtype)} for name, a in arrays.items()
    }
    text = meta_text({
        "schema": SCHEMA, "kind": kind, "sha256": hashlib.sha256(payload).hexdigest(),
        "arrays": described, **meta,
    })  # fmt: skip
    # Both are written before the first takes its name: a disk may be full.  The JSON goes last: it
    # names the hash of the other file, so a crash in between is noticed.
    with atomic_path(folder / "model.json") as new_meta:
        new_meta.write_text(text, encoding="utf-8")
        with atomic_path(folder / "model.safetensors") as new_arrays:
            new_arrays.write_bytes(payload)


def meta_text(meta: dict) -> str:
    """The text of ``model.json`` with these entries, and its own SHA-256."""
    return _json(meta | {_OWN_HASH: _own_hash(meta)})


def _own_hash(meta: dict) -> str:
    entries = {name: value for name, value in meta.items() if name != _OWN_HASH}
    return hashlib.sha256(_json(entries).encode("utf-8", "surrogatepass")).hexdigest()


def load_model(folder, kind: str | None = None) -> tuple[dict, dict]:
    """Read the arrays and the metadata of a model folder.

    Raises
    ------
    FileNotFoundError
        The folder holds no model.
    ModelFormatError
        Another kind, a newer schema, or files that do not belong together.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    meta = read_meta(folder)
    path = Path(folder) / "model.safetensors"
    if kind is not None and meta["kind"] != kind:
        raise ModelFormatError(f"{path.parent}: holds a {meta['kind']!r} model, not {kind!r}")
    payload = path.read_bytes()
    if hashlib.sha256(payload).hexdigest() != meta["sha256"]:
        raise ModelFormatError(
            f"{path}: is not the file that model.json describes (SHA-256 differs); "
            "it is damaged or belongs to another model"
        )
    try:
        return load(payload), meta
    except (SafetensorError, NotImplementedError, OverflowError) as error:
        raise ModelFormatError(f"{path}: no arrays can be read from it: {error}") from error


@contextmanager
def reading(folder):
    """Name the model when what was read from `folder` does not fit together."""
    try:
        yield
    except KeyError as error:
        raise ModelFormatError(f"{folder}: the model has no entry {error}") from error
    except (TypeError, ValueError, AttributeError, IndexError, ArithmeticError, MemoryError,
            NotImplementedError) as error:  # fmt: skip
        if isinstance(error, ModelFormatError):
            raise
        raise ModelFormatError(f"{folder}: not a model of this version: {error}") from error


def check_counts(meta: dict, *names: str) -> None:
    """Raise ValueError or TypeError unless these entries are whole numbers of at least 0."""
    for name in names:
        check_number(name, meta[name], low=0, integer=True)


def check_positive(**values) -> None:
    """Check what a file says that must be numbers > 0; raises TypeError or ValueError."""
    for name, value in values.items():
        numbers = np.asarray(value, np.float64)
        if not numbers.size or not np.isfinite(numbers).all() or numbers.min() <= 0:
            raise ValueError(f"{name} must be numbers > 0 and finite")


def known(**numbers) -> dict:
    """Those of the numbers that are known, which NaN is not: JSON has no such number."""
    return {name: number for name, number in numbers.items() if not math.isnan(number)}


def known_or_nan(meta: dict, name: str) -> float:
    """What :func:`known` left of a number; raises TypeError or ValueError for what is none."""
    if name not in meta:
        return math.nan
    check_number(name, meta[name])
    return float(meta[name])


def check_equal(name: str, value, allowed) -> None:
    """Raise ValueError unless an entry of a file is what other parts of the file say it is."""
    if value != allowed:
        raise ValueError(f"{name} must be {allowed}, as other parts of the model say, got {value}")


def check_same(**arrays) -> None:
    """Raise ValueError unless two arrays, of which a file holds each once, have equal numbers."""
    (one, values), (other, others) = arrays.items()
    if not np.array_equal(np.ravel(values), np.ravel(others)):
        raise ValueError(f"{one} and {other} must have the same numbers")


def read_meta(folder) -> dict:
    """Read ``model.json`` of a model folder and check its schema."""
    path = Path(folder) / "model.json"
    try:
        meta = json.loads(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise ModelFormatError(f"{path}: not UTF-8 text: {error}") from error
    except json.JSONDecodeError as error:
        raise ModelFormatError(f"{path}:{error.lineno}: not valid JSON: {error.msg}") from error
    except (ValueError, RecursionError) as error:  # numbers of thousands of digits, endless lists
        raise ModelFormatError(f"{path}: not valid JSON: {error}") from error
    schema = meta.get("schema") if isinstance(meta, dict) else None
    if type(schema) is not int or schema < 1:
        raise ModelFormatError(f"{path}: has no schema number")
    if schema > SCHEMA:
        raise ModelFormatError(
            f"{path}: schema {schema} is newer than {SCHEMA}, the newest this version reads; "
            "upgrade dpsvi"
        )
    needed = {"kind": str, "sha256": str, "params": dict, "arrays": dict}
    for key, kind in (needed if schema < 3 else needed | {_OWN_HASH: str}).items():
        if not isinstance(meta.get(key), kind):
            raise ModelFormatError(f"{path}: has no entry {key!r} that is a {kind.__name__}")
    if meta.get(_OWN_HASH, known := _own_hash(meta)) != known:
        raise ModelFormatError(
            f"{path}: is not as it was written (its own SHA-256 differs); it is damaged or was "
            "edited"
        )
    return _renamed(meta) if schema < 2 else meta


def _renamed(meta: dict) -> dict:
    """Give entries of schema 1 the names that they have now: it counted `items` as ``docs``."""
    fit = meta.get("fit", {})  # of a checkpoint
    monitor = fit.get("monitor", {}) if isinstance(fit, dict) else {}
    history = monitor.get("history") if isinstance(monitor, dict) else None
    for entry in (meta, *(history if isinstance(history, list) else ())):
        if isinstance(entry, dict) and "docs" in entry:
            entry["items"] = entry.pop("docs")
    return meta
