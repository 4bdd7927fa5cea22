"""What is said of parameters of Python, in the words of the command line.

Estimators, clusters and readers of corpora name their own parameters in errors and warnings, as
``max_iter must be >= 0``.  Whoever typed a command reads of its options instead: ``--passes``, or
``--set tol`` where there is no option for a parameter.  Commands pass messages on as they are; each
goes through :func:`in_options` once, where it is shown.
"""

from __future__ import annotations

import inspect
import re
from argparse import Namespace
from collections.abc import Collection

from dpsvi import models

# Parameters whose option has another name.
CALLED = {
    "n_components": "topics", "n_jobs": "threads", "max_iter": "passes", "random_state": "seed",
    "validation_size": "held_out", "n_workers": "workers", "vocabulary": "vocab",
}  # fmt: skip
_NO_OPTIONS = {"command", "run", "name", "model", "environment", "set"}  # of parsed arguments
NOT_JSON = {"callbacks", "cluster", "vectorizer"}  # parameters that only Python can give


def option_of(parameter: str, given: Collection[str]) -> str | None:
    """The option for a `parameter`, if it is among those `given`: names of parsed arguments."""
    name = CALLED.get(parameter, parameter)
    known = name in given and name not in _NO_OPTIONS
    return "--" + name.replace("_", "-") if known else None


def in_options(message: str, args: Namespace) -> str:
    """`message` with the options of a command instead of the parameters that they stand for.

    Parameters
    ----------
    message : str
        Names of parameters are told from other words by an underscore, by a value, as in
        ``tol=0.1``, or by standing in front of what they must be.
    args : argparse.Namespace
        The arguments of the command.
    """
    if message.startswith("X: ") and getattr(args, "corpus", None):
        message = args.corpus + message.removeprefix("X")
    words = _words(args)
    if not words:
        return message
    names = "|".join(sorted(map(re.escape, words), key=len, reverse=True))

    def said(match):
        name, value = match.groups()
        named = "_" in name or value or message[match.end() :].startswith(("=", " must "))
        return _with_value(words[name], value) if named else name

    # Nothing that is quoted, or a part of a path.
    name = rf"""(?<![\w./'"-])(?<!--set )({names})\b(?![/.'"]\w)"""
    return re.sub(rf"{name}(?:=(None|True|False|'[\w.-]+'))?", said, message)


def _words(args: Namespace) -> dict[str, str]:
    """The option of every parameter that can be given to this command."""
    given = vars(args)
    names = {*given, *CALLED} - _NO_OPTIONS
    words = {name: option for name in names if (option := option_of(name, given))}
    settable = _settable(args)
    words |= {name: f"--set {name}" for name in settable - words.keys()}
    # What was typed is called as it was typed.
    return words | {name: f"--set {name}" for name, _ in given.get("set") or () if name in settable}


def _settable(args: Namespace) -> set[str]:
    """Parameters that ``--set`` can give."""
    if "set" not in args:
        return set()
    try:
        if "name" in args:
            estimator = models.get(args.name)
        else:
            from dpsvi.rl import ActorCritic as estimator
    except ImportError:
        return set()  # what is said comes from its modules, which are being loaded
    return set(inspect.signature(estimator).parameters) - NOT_JSON - _NO_OPTIONS


def _with_value(option: str, value: str | None) -> str:
    """An option with a value of Python, as both are typed."""
    if value is None or (value == "True" and not option.startswith("--set ")):
        return option
    if value in ("None", "False") and not option.startswith("--set "):
        return f"no {option}"
    json = {"None": "null", "True": "true", "False": "false"}
    return f"{option}={json.get(value, value).strip(chr(39))}"
