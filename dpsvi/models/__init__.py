"""Models: each module here is one member of the family and defines ``ESTIMATOR``."""

from __future__ import annotations

import importlib
import pkgutil


def names() -> list[str]:
    """Names of the models, in alphabetical order."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.ispkg)


def get(name: str):
    """The estimator of model `name`; raises ValueError naming the known ones."""
    if name not in names():
        raise ValueError(f"model must be one of {names()}, got {name!r}")
    return importlib.import_module(f"{__name__}.{name}").ESTIMATOR


def load(path):
    """Read a fitted model of any kind from the folder that its ``save`` wrote.

    Parameters
    ----------
    path : path

    Returns
    -------
    estimator

    Raises
    ------
    FileNotFoundError, dpsvi.errors.ModelFormatError
        There is no model, or it is damaged or of a newer version.
    """
    from dpsvi import io
    from dpsvi.errors import ModelFormatError

    kind = io.read_meta(path)["kind"]
    if kind not in names():
        raise ModelFormatError(f"{path}: holds a {kind!r} model, known are {names()}")
    return get(kind).load(path)
