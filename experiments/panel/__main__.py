"""``python -m experiments.panel FOLDER``: dpsvi and its peers on every corpus of a folder."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from dpsvi.errors import CorpusFormatError
from experiments.panel import corpora, files, plan
from experiments.panel.options import parse
from experiments.panel.run_one import EVALUATION_SEED, launch
from experiments.panel.store import Store
from experiments.provenance import provenance

_PACKAGES = (
    "numpy", "numba", "llvmlite", "scipy", "scikit-learn", "gensim", "tomotopy", "topica",
    "pyrmallet", "bigartm",
)  # fmt: skip


def main(arguments: Sequence[str]) -> int:
    """Do the runs that are not on record, write the summary; 1 if something could not be done."""
    chosen = parse(arguments)
    try:
        store = Store(chosen.out / "runs")
    except ValueError as error:
        sys.exit(str(error))
    failures, remarks = [], []
    if not chosen.summary_only:
        with tempfile.TemporaryDirectory() as folder:
            described = _prepare(chosen.found, chosen.documents, Path(folder), failures)
            remarks = _fit_all(chosen, store, described, Path(folder), arguments, failures)
    remarks = [*failures, *remarks]
    for remark in remarks:
        print(remark, file=sys.stderr)
    records = [
        record
        for record in store.all()
        if record["settings"]["threads"] == chosen.threads
        and record["settings"]["documents"] == chosen.documents
    ]
    if not records:
        print(f"nothing is on record in {chosen.out}", file=sys.stderr)
        return 1
    print(files.write(records, chosen.out, [remark.partition("\n")[0] for remark in remarks]))
    return bool(failures)


def _prepare(found, documents, folder, failures):
    """Split every corpus; one that cannot be used is named and left out."""
    described = {}
    for name, path in found.items():
        try:
            described[name] = corpora.prepare(path, documents, folder / f"corpus.{name}")
        except (ValueError, CorpusFormatError, OSError, MemoryError) as error:
            reason = str(error).replace(f"{path.parent}{os.sep}", "")
            failures.append(f"{name} was left out: {reason}")
            print(failures[-1], file=sys.stderr)
        else:
            described[name]["bytes"] = path.stat().st_size
    return described


def _fit_all(chosen, store, described, folder, arguments, failures) -> list[str]:
    """Do what is not on record, in the order of the plan, until time is up."""
    wanted = plan.Wanted(
        chosen.topics, chosen.entrants, chosen.passes, chosen.documents, chosen.threads,
        chosen.seconds, chosen.seeds,
    )  # fmt: skip
    runs = (plan.grid if chosen.grid else plan.runs)(wanted, described)
    if chosen.fresh:
        store.forget(runs)
    runs = [settings for settings in runs if not store.has(settings)]
    print(f"{len(runs)} runs to be done", file=sys.stderr)
    end = time.monotonic() + 60 * (chosen.minutes or float("inf"))
    for number, settings in enumerate(runs, 1):
        if time.monotonic() > end:
            return [f"{len(runs) - number + 1} runs were not begun: time was up"]
        print(f"{number}/{len(runs)} {settings}: ", end="", file=sys.stderr, flush=True)
        print(_fit(settings, store, described, folder, arguments, failures), file=sys.stderr)
    return []


def _fit(settings, store, described, folder, arguments, failures) -> str:
    """Do one run and put it on record; a run that fails is named, and the next one comes."""
    if store.hopeless(settings):
        return "too slow, as fewer passes show"
    source = provenance(
        "experiments.panel", arguments, _PACKAGES,
        {"split": corpora.SPLIT_SEED, "evaluation": EVALUATION_SEED, "run": settings.seed},
    )  # fmt: skip
    try:
        record = launch(settings, folder / f"corpus.{settings.corpus}", folder)
    except RuntimeError as error:
        failures.append(str(error))
        return "failed"
    store.add(record | {"corpus": described[settings.corpus], "provenance": source})
    last = record["points"][-1]
    return (
        f"{last['own']:.1f}, with alpha .1 {last['fixed']:.1f}, {record['seconds']:.1f} s"
        f"{', cut after' if record['cut'] else ','} {record['passes']:.1f} passes"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
