"""Aggregation strategies: how updates of several workers become one; one file each.

A strategy is a module here with a class ``Strategy``, as in :class:`dpsvi.base.Strategy`; it is
found by its name.
"""

from __future__ import annotations

import importlib
import pkgutil


def names() -> list[str]:
    """Names of the strategies, in alphabetical order."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def get(name: str):
    """The class of strategy `name`; raises ValueError naming the known ones."""
    if name not in names():
        raise ValueError(f"strategy must be one of {names()}, got {name!r}")
    return importlib.import_module(f"{__name__}.{name}").Strategy
