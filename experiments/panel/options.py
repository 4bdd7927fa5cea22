"""What can be asked of the panel on the command line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.panel import cells, corpora, libraries

_WHAT = "dpsvi and its peers on every corpus of a folder"
_RESULTS = Path(__file__).resolve().parent.parent / "results" / "panel"
_USUAL = {
    "topics": cells.TOPICS, "passes": cells.PASSES, "seconds": 60.0,
    "documents": corpora.MOST_TRAINING, "out": _RESULTS,
}  # fmt: skip
_QUICK = {
    "topics": (20, 50), "passes": (3, 10), "seconds": 5.0, "documents": 2000, "minutes": 15.0,
    "out": Path("panel-quick"),
    "entrants": (
        "defaults", "mean-field", "kept", "sklearn", "sklearn-fixed-pair", "gensim",
        "gensim-fixed-pair", "tomotopy", "tomotopy-fixed-pair",
    ),
}  # fmt: skip


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line; a wrong value ends the command with status 2."""
    parser = argparse.ArgumentParser(prog="python -m experiments.panel", description=_WHAT)
    add = parser.add_argument
    add("folder", type=Path, nargs="?", help="holds docword.NAME.txt[.gz]; is only read")
    add("--corpora", type=_names, help="NAMEs to use (all)")
    add("--topics", type=_numbers, help=f"K ({_shown(cells.TOPICS)})")
    add("--entrants", type=_names, help=f"any of {_shown(libraries.entrants())} (all installed)")
    add("--passes", type=_numbers, help=f"of our fits ({_shown(cells.PASSES)})")
    add("--documents", type=int, help=f"training documents, at most ({corpora.MOST_TRAINING})")
    add("--threads", type=int, default=2, help="of every entrant that has some (%(default)s)")
    add("--seconds", type=float, help="of training in a run, at most (60)")
    add("--seeds", type=_numbers, default=[0], help="of our fits, such as 0,1,2,3,4 (0)")
    add("--minutes", type=float, help="start no run after so many")
    add("--quick", action="store_true", help="2,000 documents, K = 50 and 20, at most 15 minutes")
    add("--grid", action="store_true", help="the defaults against a grid of fixed settings instead")
    add("--fresh", action="store_true", help="do all runs again, those on record too")
    add("--summary-only", action="store_true", help="write table and picture of what is on record")
    add("--out", type=Path, help="folder of the results (results/panel; panel-quick with --quick)")
    chosen = parser.parse_args(arguments)
    try:
        chosen.entrants = _entrants(chosen.entrants, _QUICK["entrants"] if chosen.quick else None)
        if not chosen.summary_only:
            chosen.found = _find(chosen.folder, chosen.corpora)
    except ValueError as error:
        parser.error(str(error))
    for name, value in (_USUAL | (_QUICK if chosen.quick else {})).items():
        if getattr(chosen, name) is None:
            setattr(chosen, name, value)
    for name in ("topics", "passes", "documents", "threads", "seconds", "minutes"):
        value = getattr(chosen, name)
        for one in value if isinstance(value, Sequence) else [value]:
            if one is not None and not one > 0:
                parser.error(f"--{name} must be above 0, got {one}")
    if not chosen.entrants:
        parser.error("--entrants names none")
    return chosen


def _names(text):
    return [name.strip() for name in text.split(",") if name.strip()]


def _numbers(text):
    names = _names(text)
    if not names or not all(name.isdecimal() for name in names):
        raise argparse.ArgumentTypeError(f"must be whole numbers such as 20,50, got {text!r}")
    return [int(name) for name in names]


def _shown(values):
    return ",".join(map(str, values))


def _entrants(names, usual=None):
    """Those asked for, else all whose library is installed, or as many of them as are `usual`."""
    known, missing = libraries.entrants(), libraries.missing()
    for name in names or ():
        if name not in known:
            raise ValueError(f"--entrants must be any of {_shown(known)}, got {name!r}")
        if known[name][0] in missing:
            package = missing[known[name][0]]
            raise ValueError(f"{name} is not installed: pip install {package}, or leave it out")
    if names is not None:
        return {name: known[name] for name in names}
    for library, package in missing.items():
        print(f"{library} is not installed (pip install {package}): left out", file=sys.stderr)
    return {
        name: found
        for name, found in known.items()
        if found[0] not in missing and name in (usual or known)
    }


def _find(folder, names):
    if folder is None:
        raise ValueError("FOLDER, which holds the corpora, is missing")
    return corpora.find(folder, names)
