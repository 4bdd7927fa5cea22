"""``python -m experiments.quality FOLDER``: coherence, diversity, labels and stability."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from dpsvi.errors import CorpusFormatError
from dpsvi.files.io import atomic_path
from experiments.panel import corpora, libraries
from experiments.panel.run_one import launch
from experiments.panel.store import Store
from experiments.provenance import provenance
from experiments.quality import documents, plan
from experiments.quality.table import as_markdown

_RESULTS = Path(__file__).resolve().parent.parent / "results" / "quality"
_PACKAGES = (
    "numpy", "numba", "scipy", "scikit-learn", "gensim", "tomotopy", "topica", "pyrmallet",
    "bigartm",
)  # fmt: skip
_CORPORA = "bbc,20news"


def main(arguments: Sequence[str]) -> int:
    """Do the runs that are not on record, write the table; 1 if a run failed."""
    chosen = _parse(arguments)
    store = Store(chosen.out / "runs")
    remarks = []
    if not chosen.summary_only:
        with tempfile.TemporaryDirectory() as folder:
            remarks = _fit_all(chosen, store, Path(folder), arguments)
    records = [r for r in store.all() if r["settings"]["threads"] == chosen.threads]
    if not records:
        print(f"nothing is on record in {chosen.out}", file=sys.stderr)
        return 1
    text = as_markdown(records, remarks)
    with atomic_path(chosen.out / "table.md") as path:
        path.write_text(text)
    print(text)
    return bool(remarks)


def _parse(arguments):
    parser = argparse.ArgumentParser(prog="python -m experiments.quality", description=__doc__)
    add = parser.add_argument
    add("folder", type=Path, help="holds docword., vocab. and labels.NAME.txt[.gz]; is only read")
    add("--corpora", type=_names, default=_CORPORA, help="NAMEs to use (%(default)s)")
    add("--entrants", type=_names, default=",".join(plan.USUAL),
        help="any of the panel's (%(default)s)")  # fmt: skip
    add("--threads", type=int, default=2, help="of every entrant that has some (%(default)s)")
    add("--seconds", type=float, default=30.0, help="of training in a run, at most (%(default)s)")
    add("--minutes", type=float, default=float("inf"), help="start no run after so many")
    add("--summary-only", action="store_true", help="write the table of what is on record")
    add("--out", type=Path, default=_RESULTS, help="folder of the results (results/quality)")
    chosen = parser.parse_args(arguments)
    known, missing = libraries.entrants(), libraries.missing()
    for name in chosen.entrants:
        if name not in known or known[name][0] in missing:
            parser.error(f"--entrants: {name!r} is unknown or not installed")
    chosen.entrants = {name: known[name] for name in chosen.entrants}
    try:
        chosen.found = corpora.find(chosen.folder, chosen.corpora)
    except ValueError as error:
        parser.error(str(error))
    return chosen


def _names(text):
    return [name.strip() for name in text.split(",") if name.strip()]


def _fit_all(chosen, store, folder, arguments) -> list[str]:
    """Do what is not on record until time is up; return the runs that failed."""
    described = {}
    for name, path in chosen.found.items():
        for split in (False, True)[: 1 + documents.has_labels(path)]:
            full = name + documents.SPLIT * split
            try:
                described[full] = documents.prepare(path, folder / full, split)
            except (ValueError, CorpusFormatError, OSError) as error:
                sys.exit(f"{full}: {error}")
            described[full]["bytes"] = path.stat().st_size
    wanted = plan.Wanted(chosen.entrants, chosen.threads, chosen.seconds)
    runs = [settings for settings in plan.runs(wanted, described) if not store.has(settings)]
    print(f"{len(runs)} runs to be done", file=sys.stderr)
    end, failures = time.monotonic() + 60 * chosen.minutes, []
    for number, settings in enumerate(runs, 1):
        if time.monotonic() > end:
            print(f"{len(runs) - number + 1} runs were not begun: time was up", file=sys.stderr)
            break
        source = provenance("experiments.quality", arguments, _PACKAGES, {"run": settings.seed})
        try:
            found = launch(
                settings, folder / settings.corpus, folder, module="experiments.quality.run_one"
            )
        except RuntimeError as error:
            failures.append(str(error).partition("\n")[0])
            print(error, file=sys.stderr)
            continue
        store.add(found | {"corpus": described[settings.corpus], "provenance": source})
        shown = ", ".join(f"{name} {value:.3f}" for name, value in found["scores"].items())
        print(f"{number}/{len(runs)} {settings}: {shown}, {found['seconds']:.1f} s",
              file=sys.stderr)  # fmt: skip
    return failures


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
