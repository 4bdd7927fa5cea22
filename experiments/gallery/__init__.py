"""The gallery: one page a model, one question, one picture.

A page is a module whose docstring's first line is the question and the rest what the picture shows.
``picture(small) -> (figure, answer)`` draws it; `answer` is a dict of the numbers it shows.
"""

from __future__ import annotations

import importlib
import pkgutil


def names() -> list[str]:
    """Pages, each named as its model."""
    return sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_"))


def get(name: str):
    """The module of a page."""
    return importlib.import_module(f"{__name__}.{name}")
