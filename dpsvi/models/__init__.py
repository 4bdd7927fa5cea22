"""Models: each is one file here, or one folder with an ``estimator``.

That file ends with a line ``ESTIMATOR = DPSVIMine``.  A model that is fitted to a corpus, not to
arrays, says so with a line ``FITTED_TO = "corpus"``.  Installed packages may offer more models
(:mod:`dpsvi.files.plugins`).
"""

from __future__ import annotations

import re
from functools import cache

from dpsvi.files import plugins

_DECLARED = re.compile(r"^(ESTIMATOR|FITTED_TO) = \"?(\w+)\"?$", re.MULTILINE)


def names() -> list[str]:
    """Names of the models, in alphabetical order."""
    return plugins.names(__name__)


def get(name: str):
    """The estimator of model `name`; raises ValueError naming the known ones."""
    return plugins.load(__name__, name).ESTIMATOR


@cache
def declared(name: str) -> dict[str, str]:
    """What the file of model `name` declares: ``ESTIMATOR`` and ``FITTED_TO``, as text.

    The file is read, not imported: all models together take seconds to import.
    """
    return {"FITTED_TO": "arrays"} | dict(_DECLARED.findall(plugins.source(__name__, name)))


def estimators() -> dict[str, str]:
    """Names of the estimators, as ``dpsvi`` exports them, and of their models."""
    return {declared(name)["ESTIMATOR"]: name for name in names()}


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
