"""Aggregation strategies: how updates of several workers become one; one file each.

A strategy is a module here with a class ``Strategy``, as in :class:`dpsvi.base.Strategy`; it is
found by its name.  Installed packages may offer more (:mod:`dpsvi.files.plugins`).
"""

from __future__ import annotations

from dpsvi.files import plugins


def names() -> list[str]:
    """Names of the strategies, in alphabetical order."""
    return plugins.names(__name__)


def get(name: str):
    """The class of strategy `name`; raises ValueError naming the known ones."""
    return plugins.load(__name__, name, "Strategy").Strategy
