"""Engines: where steps run.  An engine is a module here with one callable ``fit(job)``.

Engines are found by name, so a new one is one file.
"""

from __future__ import annotations

import importlib
import pkgutil


def names() -> list[str]:
    """Names of the engines, in alphabetical order."""
    return sorted(m.name for m in pkgutil.iter_modules(__path__) if m.name != "loop")


def get(name: str):
    """The ``fit`` function of engine `name`; raises ValueError naming the known ones."""
    if name not in names():
        raise ValueError(f"engine must be one of {names()}, got {name!r}")
    return importlib.import_module(f"{__name__}.{name}").fit
