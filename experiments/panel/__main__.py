"""``python -m experiments.panel FOLDER``: dpsvi and its peers on every corpus of a folder."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from dpsvi.errors import CorpusFormatError
from experiments.panel import cells, corpora, files, libraries, plan
from experiments.panel.run_one import EVALUATION_SEED, launch
from experiments.panel.settings import Settings
from experiments.panel.store import Store
from experiments.provenance import provenance

_PACKAGES = ("numpy", "numba", "llvmlite", "scipy", "scikit-learn", "gensim", "tomotopy")
_RESULTS = Path(__file__).resolve().parent.parent / "results" / "panel"
_QUICK = {"topics": [20, 50], "passes": [3, 10], "seconds": 10.0, "documents": 2000}


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line; a wrong value ends the command with status 2."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.panel", description=__doc__.partition(": ")[2]
    )
    add = parser.add_argument
    add("folder", type=Path, nargs="?", help="holds docword.NAME.txt[.gz]; is only read")
    add("--corpora", type=_names, help="NAMEs to use (all)")
    add("--topics", type=_numbers, help=f"K ({_shown(cells.TOPICS)})")
    add("--entrants", type=_names, help=f"any of {_shown(libraries.entrants())} (all installed)")
    add("--passes", type=_numbers, help=f"of our fits ({_shown(cells.PASSES)})")
    add("--documents", type=int, help=f"training documents, at most ({corpora.MOST_TRAINING})")
    add("--threads", type=int, default=2, help="of every entrant that has some (%(default)s)")
    add("--seconds", type=float, help="of training in a run, at most (30)")
    add("--minutes", type=float, help="start no run after so many")
    add("--quick", action="store_true", help="K = 20 and 50, 2,000 documents, 3 and 10 passes")
    add("--grid", action="store_true", help="the defaults against a grid of fixed settings instead")
    add("--fresh", action="store_true", help="do all runs again, those on record too")
    add("--summary-only", action="store_true", help="write table and picture of what is on record")
    add("--out", type=Path, help="folder of the results (results/panel; panel-quick with --quick)")
    chosen = parser.parse_args(arguments)
    usual = {"topics": cells.TOPICS, "passes": cells.PASSES, "seconds": 30.0,
             "documents": corpora.MOST_TRAINING}  # fmt: skip
    for name, value in (usual | (_QUICK if chosen.quick else {})).items():
        if getattr(chosen, name) is None:
            setattr(chosen, name, value)
    if chosen.out is None:
        chosen.out = Path("panel-quick") if chosen.quick else _RESULTS
    for name in ("topics", "passes", "documents", "threads", "seconds", "minutes"):
        value = getattr(chosen, name)
        for one in value if isinstance(value, Sequence) else [value]:
            if one is not None and not one > 0:
                parser.error(f"--{name} must be above 0, got {one}")
    try:
        chosen.entrants = _entrants(chosen.entrants)
        if not chosen.summary_only:
            chosen.found = _find(chosen.folder, chosen.corpora)
    except ValueError as error:
        parser.error(str(error))
    return chosen


def _names(text):
    return [name.strip() for name in text.split(",") if name.strip()]


def _numbers(text):
    return [int(name) for name in _names(text)]


def _shown(values):
    return ",".join(map(str, values))


def _entrants(names):
    """Those asked for, or all whose library is installed."""
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
    return {name: found for name, found in known.items() if found[0] not in missing}


def _find(folder, names):
    if folder is None:
        raise ValueError("FOLDER, which holds the corpora, is missing")
    found = {file.name: file.path for file in corpora.find(folder)}
    for name in names or ():
        if name not in found:
            raise ValueError(f"--corpora must be any of {_shown(found)}, got {name!r}")
    return {name: path for name, path in found.items() if names is None or name in names}


def main(arguments: Sequence[str]) -> int:
    """Do the runs that are not on record, write the summary; 1 if something could not be done."""
    chosen = parse(arguments)
    store, remarks = Store(chosen.out / "runs"), []
    if not chosen.summary_only:
        with tempfile.TemporaryDirectory() as folder:
            described = _prepare(chosen.found, chosen.documents, Path(folder), remarks)
            wanted = plan.Wanted(
                chosen.topics, chosen.entrants, chosen.passes, chosen.documents, chosen.threads,
                chosen.seconds,
            )  # fmt: skip
            runs = (plan.grid if chosen.grid else plan.runs)(wanted, described)
            source = lambda: provenance(  # noqa: E731
                "experiments.panel", arguments, _PACKAGES,
                {"split": corpora.SPLIT_SEED, "evaluation": EVALUATION_SEED},
            )  # fmt: skip
            _do(runs, chosen, store, described, Path(folder), source, remarks)
    records = [
        record
        for record in store.all()
        if record["settings"]["threads"] == chosen.threads
        and record["settings"]["documents"] == chosen.documents
    ]
    for remark in remarks:
        print(remark, file=sys.stderr)
    if not records:
        print(f"nothing is on record in {chosen.out}", file=sys.stderr)
        return 1
    print(files.write(records, chosen.out, [_first_line(remark) for remark in remarks]))
    return bool(remarks)


def _prepare(found, documents, folder, remarks):
    """Split every corpus; one that cannot be used is named and left out."""
    described = {}
    for name, path in found.items():
        try:
            described[name] = corpora.prepare(path, documents, folder / f"corpus.{name}")
        except (ValueError, CorpusFormatError, OSError, MemoryError) as error:
            reason = str(error).replace(f"{path.parent}{os.sep}", "")
            remarks.append(f"{name} was left out: {reason}")
            print(remarks[-1], file=sys.stderr)
        else:
            described[name]["bytes"] = path.stat().st_size
    return described


def _do(runs, chosen, store, described, folder, source, remarks):
    started = time.monotonic()
    todo = [settings for settings in runs if chosen.fresh or not store.has(settings)]
    print(f"{len(runs)} runs, {len(runs) - len(todo)} on record", file=sys.stderr)
    for number, settings in enumerate(todo, 1):
        minutes = (time.monotonic() - started) / 60
        if chosen.minutes is not None and minutes >= chosen.minutes:
            remarks.append(f"{len(todo) - number + 1} runs were not begun: time was up")
            return
        if store.hopeless(settings):
            print(f"{number}/{len(todo)} {settings}: too slow, see fewer passes", file=sys.stderr)
            continue
        origin = source()
        try:
            record = launch(settings, folder / f"corpus.{settings.corpus}", folder)
        except RuntimeError as error:
            remarks.append(str(error))
            print(error, file=sys.stderr)
            continue
        store.add(record | {"corpus": described[settings.corpus], "provenance": origin})
        _report(settings, record, f"{number}/{len(todo)} {minutes:.0f} min")


def _report(settings: Settings, record, where):
    last = record["points"][-1]
    print(
        f"{where}: {settings}: {last['own']:.1f}, with alpha .1 {last['fixed']:.1f}, "
        f"{record['seconds']:.1f} s{', cut after' if record['cut'] else ','} "
        f"{record['passes']:.1f} passes",
        file=sys.stderr, flush=True,
    )  # fmt: skip


def _first_line(text):
    return text.partition("\n")[0]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
