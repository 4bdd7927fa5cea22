"""Modules that are found by their name: those of a sub-package, and those of installed packages.

A module whose name begins with an underscore is not one of them: others of its sub-package use it.

An installed package offers one by an entry point of the sub-package's name::

    [project.entry-points."dpsvi.models"]
    my_model = "my_package.my_model"

Then `my_model` is found as if its file lay in ``dpsvi/models``.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from functools import cache
from importlib.metadata import entry_points


def names(package: str) -> list[str]:
    """Names of the modules of `package` and of its entry points, in alphabetical order."""
    return sorted(_places(package))


def module_name(package: str, name: str) -> str:
    """Full name of the module `name`; raises ValueError naming the known ones."""
    places = _places(package)
    if name not in places:
        what = {"strategies": "strategy"}.get(
            package.rpartition(".")[2], package.rpartition(".")[2].removesuffix("s")
        )
        raise ValueError(f"{what} must be one of {sorted(places)}, got {name!r}")
    return places[name]


def load(package: str, name: str):
    """The module `name`; raises ValueError naming the known ones."""
    return importlib.import_module(module_name(package, name))


def source(package: str, name: str) -> str:
    """Source text of the module `name`, which is not imported for it."""
    spec = importlib.util.find_spec(module_name(package, name))
    return spec.loader.get_source(spec.name)


@cache
def _places(package: str) -> dict[str, str]:
    """Name -> full name of its module.  A folder's module is its ``estimator``.

    Raises
    ------
    ValueError
        An installed package offers a name that is taken.
    """
    paths = importlib.import_module(package).__path__
    places = {
        found.name: f"{package}.{found.name}" + ".estimator" * found.ispkg
        for found in pkgutil.iter_modules(paths)
        if not found.name.startswith("_")
    }
    for entry in entry_points(group=package):
        if entry.name in places:
            raise ValueError(
                f"entry point {entry.name!r} of {package}: {entry.value} cannot take the name of "
                f"{places[entry.name]}"
            )
        places[entry.name] = entry.value
    return places
