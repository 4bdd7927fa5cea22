"""Models: each is one file here, or one folder with an ``estimator``.

That file ends with a line ``ESTIMATOR = DPSVIMine``.  A model that is fitted to a corpus, not to
arrays, says so with a line ``FITTED_TO = "corpus"``.  Installed packages may offer more models
(:mod:`dpsvi.files.plugins`).
"""

from __future__ import annotations

import logging
import re
from functools import cache
from os import PathLike
from typing import Any

from dpsvi.errors import ContractError
from dpsvi.files import plugins

log = logging.getLogger(__name__)

_SUMMARY = re.compile(r'^"""(.+)$', re.MULTILINE)
_ASIDE = re.compile(r" \(.*?\)| by DPSVI")
_DECLARED = re.compile(r"^(ESTIMATOR|FITTED_TO) = \"?(\w+)\"?$", re.MULTILINE)


@cache
def names() -> list[str]:
    """Names of the models, in alphabetical order.

    One of an installed package that cannot be read is left out, and the log says why: no other
    model has to wait until that package is mended.
    """
    return [name for name in plugins.names(__name__) if _can_be_read(name)]


def _can_be_read(name: str) -> bool:
    try:
        said = "" if "ESTIMATOR" in declared(name) else f"model {name!r} has no line ESTIMATOR ="
    except ContractError as error:
        said = str(error)
    if said:
        log.warning("%s; it is left out", said)
    return not said


def get(name: str):
    """The estimator of model `name`; raises ValueError naming the known ones."""
    return plugins.load(__name__, name, "ESTIMATOR").ESTIMATOR


@cache
def declared(name: str) -> dict[str, str]:
    """What the file of model `name` declares: ``ESTIMATOR`` and ``FITTED_TO``, as text.

    ``SUMMARY`` is the first line of the file's docstring, without what stands in brackets.  The
    file is read, not imported: all models together take seconds to import.
    """
    source = plugins.source(__name__, name)
    summary = _SUMMARY.match(source)
    summary = _ASIDE.sub("", summary[1]).strip('". ') if summary else name
    found = {"FITTED_TO": "arrays", "SUMMARY": summary}
    return found | dict(_DECLARED.findall(source))


def estimators() -> dict[str, str]:
    """Names of the estimators, as ``dpsvi`` exports them, and of their models."""
    return {declared(name)["ESTIMATOR"]: name for name in names()}


def load(path: str | PathLike[str]) -> Any:
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

    Examples
    --------
    >>> import numpy as np
    >>> from dpsvi import DPSVILDA, load
    >>> DPSVILDA(2, max_iter=1).fit(np.eye(5, dtype=int)).save("topics")
    >>> load("topics")
    DPSVILDA(max_iter=1, n_components=2)
    """
    from dpsvi.errors import ModelFormatError
    from dpsvi.files import io

    kind = io.read_meta(path)["kind"]
    if kind == "actor_critic":
        raise ModelFormatError(f"{path}: holds an agent, which dpsvi.rl.ActorCritic.load reads")
    if kind not in names():
        raise ModelFormatError(
            f"{path}: holds a {kind!r} model, known are {names()}; a class of your own that is no "
            "entry point loads its models itself, as YourClass.load(path)"
        )
    return get(kind).load(path)
