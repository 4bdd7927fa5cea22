"""The competitors.  A library is a module ``with_NAME`` here; each may compete in several ways.

A module holds

* ``PACKAGE``: the distribution to install,
* ``COMPETITORS``: name in the results -> options of that competitor,
* ``train(corpus, settings, recorder)``: builds the library's own form of the corpus in
  ``recorder.stage("convert")``, calls ``recorder.start()``, then trains and calls `recorder` after
  each step until it answers True.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Iterable
from types import ModuleType

OURS = "dpsvi"
_PREFIX = "with_"


def names() -> list[str]:
    """Names of the libraries, dpsvi first."""
    found = (module.name for module in pkgutil.iter_modules(__path__))
    found = (name.removeprefix(_PREFIX) for name in found if name.startswith(_PREFIX))
    return sorted(found, key=lambda name: (name != OURS, name))


def get(name: str) -> ModuleType:
    """Return the module of library `name`; the library itself is not imported yet."""
    return importlib.import_module(f"{__name__}.{_PREFIX}{name}")


def check_installed(libraries: Iterable[str]) -> None:
    """Raise ValueError for a library that is unknown or not installed, and say what to do."""
    for name in libraries:
        if name not in names()[1:]:
            raise ValueError(f"peer must be one of {names()[1:]}, got {name!r}")
        if importlib.util.find_spec(name) is None:
            package = get(name).PACKAGE
            raise ValueError(
                f"peer {name} is not installed: pip install {package}, or leave it out of --peers"
            )
