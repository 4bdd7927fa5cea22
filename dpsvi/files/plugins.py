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
import logging
import pkgutil
from functools import cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points

from dpsvi.errors import ContractError

log = logging.getLogger(__name__)


def names(package: str) -> list[str]:
    """Names of the modules of `package` and of its entry points, in alphabetical order."""
    return sorted(_places(package))


def module_name(package: str, name: str) -> str:
    """Full name of the module `name`; raises ValueError naming the known ones."""
    places = _places(package)
    if name not in places:
        raise ValueError(f"{_kind(package)} must be one of {sorted(places)}, got {name!r}")
    return places[name]


def load(package: str, name: str, *needed: str):
    """The module `name`, which has to define all that is `needed`.

    Raises
    ------
    ValueError
        There is none; the message names the known ones.
    ContractError
        It is of an installed package and cannot be imported, or it lacks something.
    """
    place = module_name(package, name)
    try:
        module = importlib.import_module(place)
    except (Exception, SystemExit) as error:
        if name not in _entries(package):
            raise  # a fault of ours
        raise ContractError(
            f"{_said(package, name)} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    for attribute in needed:
        if not hasattr(module, attribute):
            said = _said(package, name) if name in _entries(package) else module.__file__
            raise ContractError(f"{said} does not define {attribute}, as a {_kind(package)} must")
    return module


def source(package: str, name: str) -> str:
    """Source text of the module `name`, which is not imported for it.

    Raises
    ------
    ContractError
        It is of an installed package, and there is none.
    """
    place = module_name(package, name)
    try:
        spec = importlib.util.find_spec(place)  # imports the packages that it lies in
        return spec.loader.get_source(spec.name) or ""
    except (Exception, SystemExit) as error:
        if name not in _entries(package):
            raise
        why = "there is no such module" if isinstance(error, AttributeError) else error
        raise ContractError(f"{_said(package, name)} cannot be read: {why}") from error


def _kind(package: str) -> str:
    """What a module of a sub-package is called."""
    last = package.rpartition(".")[2]
    return {"strategies": "strategy"}.get(last, last.removesuffix("s"))


def _said(package: str, name: str) -> str:
    """The entry point of this name, and who offers it, as messages name them."""
    entry = _entries(package)[name]
    return f"entry point {name!r} of {package}, {entry.value}, of the package {entry.dist.name!r},"


@cache
def _offered() -> EntryPoints:
    """Entry points of all installed packages: to read their files takes long, where many are."""
    return entry_points()


@cache
def _entries(package: str) -> dict[str, EntryPoint]:
    """Name -> entry point of an installed package.

    One of several of a name is left out, or one whose name we have, and the log says so.
    """
    ours, found = _ours(package), {}
    for entry in _offered().select(group=package):
        taken = ours.get(entry.name) or entry.name in found and found[entry.name].value
        if taken:
            log.warning(
                "entry point %r of %s, %s, of the package %r, cannot take the name of %s; it is "
                "left out", entry.name, package, entry.value, entry.dist.name, taken,
            )  # fmt: skip
        else:
            found[entry.name] = entry
    return found


@cache
def _ours(package: str) -> dict[str, str]:
    """Name -> full name of a module of the sub-package.  A folder's is its ``estimator``."""
    return {
        found.name: f"{package}.{found.name}" + ".estimator" * found.ispkg
        for found in pkgutil.iter_modules(importlib.import_module(package).__path__)
        if not found.name.startswith("_")
    }


def _places(package: str) -> dict[str, str]:
    """Name -> full name of its module."""
    entries = _entries(package).items()
    return _ours(package) | {name: entry.value for name, entry in entries}
