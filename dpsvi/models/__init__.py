"""Models: each is one file here, or one folder with an ``estimator``; it defines ``ESTIMATOR``."""

from __future__ import annotations

import importlib
import pkgutil


def names() -> list[str]:
    """Names of the models, in alphabetical order."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def get(name: str):
    """The estimator of model `name`; raises ValueError naming the known ones."""
    if name not in names():
        raise ValueError(f"model must be one of {names()}, got {name!r}")
    found = importlib.import_module(f"{__name__}.{name}")
    if hasattr(found, "__path__"):
        found = importlib.import_module(f"{__name__}.{name}.estimator")
    return found.ESTIMATOR


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
    from dpsvi.errors import ModelFormatError
    from dpsvi.files import io

    kind = io.read_meta(path)["kind"]
    if kind not in names():
        raise ModelFormatError(f"{path}: holds a {kind!r} model, known are {names()}")
    return get(kind).load(path)
