"""The entrants.  A library is a module ``with_NAME`` here; each may enter with several settings.

A module holds

* ``PACKAGE``: the distribution to install,
* ``ENTRANTS``: name in the results -> options of that entrant; a name that ends in ``fixed-pair``
  has the fixed pair of priors, any other one the library's own,
* ``train(corpus, settings, recorder)``: builds the library's own form of the corpus, calls
  ``recorder.start()``, then trains and calls `recorder` after each step until it answers True,
* ``PASSES``, if topics cannot be seen before the training has ended: ``train`` then makes as many
  passes as it is told, whatever time they take, and ends with ``recorder.take``.  Each of these
  numbers is a run of its own.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from types import ModuleType

from experiments.panel.settings import OURS

_PREFIX = "with_"


def names() -> list[str]:
    """Names of the libraries, dpsvi first."""
    found = (module.name for module in pkgutil.iter_modules(__path__))
    found = (name.removeprefix(_PREFIX) for name in found if name.startswith(_PREFIX))
    return sorted(found, key=lambda name: (name != OURS, name))


def get(name: str) -> ModuleType:
    """Return the module of library `name`; the library itself is not imported yet."""
    return importlib.import_module(f"{__name__}.{_PREFIX}{name}")


def missing() -> dict[str, str]:
    """Libraries that are not installed, and what to install."""
    return {
        name: get(name).PACKAGE for name in names() if importlib.util.find_spec(name) is None
    }


def entrants() -> dict[str, tuple[str, dict]]:
    """Every entrant's library and options, dpsvi's first, installed or not."""
    return {
        entrant: (library, options)
        for library in names()
        for entrant, options in get(library).ENTRANTS.items()
    }


def is_watched(library: str) -> bool:
    """Whether one run shows how a library gets on; else each number of passes is one."""
    return library != OURS and not hasattr(get(library), "PASSES")


def is_fixed(entrant: str) -> bool:
    """Whether an entrant has the fixed pair of priors."""
    return entrant.endswith("fixed-pair")
