"""``python -m experiments.peers``: runs dpsvi and the peers in turn, writes curves and a table."""

from __future__ import annotations

import argparse
import csv
import dataclasses
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from dpsvi.corpus import load_corpus
from experiments.peers import libraries, problem, tuning
from experiments.peers.libraries import OURS
from experiments.peers.plot import plot
from experiments.peers.problem import Settings
from experiments.peers.run_one import EVALUATION_SEED, launch
from experiments.peers.summary import as_text, summarise
from experiments.provenance import provenance

SPLIT_SEED = 8
_PACKAGES = ("numpy", "numba", "llvmlite", "scipy", "scikit-learn", "gensim", "tomotopy")
_RESULTS = Path(__file__).resolve().parent.parent / "results" / "peers"
_SHORT = {name.removeprefix(f"{OURS}-"): name for name in libraries.get(OURS).COMPETITORS}


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line; a missing peer or a wrong value ends the command with status 2."""
    parser = argparse.ArgumentParser(prog="python -m experiments.peers", description=__doc__)
    names = _names
    parser.add_argument("--corpus", required=True, help="file that dpsvi.corpus.load_corpus reads")
    parser.add_argument("--topics", type=int, default=100, help="K (%(default)s)")
    parser.add_argument("--peers", type=names, default=[], help="such as sklearn,gensim,tomotopy")
    parser.add_argument(
        "--local-steps",
        type=names,
        default=["mean_field", "collapsed"],
        help=f"dpsvi competitors: any of {','.join(_SHORT)} (mean_field,collapsed)",
    )
    parser.add_argument("--threads", type=int, default=2, help="of every competitor (%(default)s)")
    parser.add_argument("--documents", type=int, help="training documents (all not held out)")
    parser.add_argument("--seconds", type=float, default=30.0, help="of training (%(default)s)")
    parser.add_argument("--own-seconds", type=float, help="of dpsvi's own training (SECONDS)")
    parser.add_argument("--skip", type=names, default=[], help="competitors to leave out")
    parser.add_argument("--repeats", type=int, default=3, help="runs, seeds 0, 1 ... (%(default)s)")
    parser.add_argument("--alpha", type=float, default=0.1, help="for all (%(default)s)")
    parser.add_argument("--eta", type=float, default=0.01, help="for all, unless tuned")
    parser.add_argument("--tune", action="store_true", help="choose eta for each competitor")
    parser.add_argument("--tune-seconds", type=float, help="of each tuning run (SECONDS / 3)")
    parser.add_argument("--out", type=Path, default=_RESULTS, help="folder of the results")
    chosen = parser.parse_args(arguments)
    for name in (
        "topics", "threads", "seconds", "repeats", "alpha", "eta", "tune_seconds", "own_seconds",
    ):  # fmt: skip
        value = getattr(chosen, name)
        if value is not None and not value > 0:
            parser.error(f"--{name.replace('_', '-')} must be above 0, got {value}")
    try:
        libraries.check_installed(chosen.peers)
    except ValueError as error:
        parser.error(str(error))
    for name in chosen.local_steps:
        if name not in _SHORT:
            parser.error(f"--local-steps must be any of {','.join(_SHORT)}, got {name!r}")
    return chosen


def _names(text):
    return [name.strip() for name in text.split(",") if name.strip()]


def competitors(chosen: argparse.Namespace) -> list[Settings]:
    """Return the first run of every competitor, dpsvi's own first."""
    options = {
        (library, name): options
        for library in [OURS, *chosen.peers]
        for name, options in libraries.get(library).COMPETITORS.items()
        if library != OURS or name in {_SHORT[step] for step in chosen.local_steps}
        if name not in chosen.skip and (name != "sklearn-jobs" or chosen.threads > 1)
    }
    return [
        Settings(
            name, library, found, chosen.topics, chosen.alpha, chosen.eta, chosen.threads,
            chosen.own_seconds or chosen.seconds if library == OURS else chosen.seconds,
            seed=0, held_out="test",
        )
        for (library, name), found in options.items()
    ]  # fmt: skip


def main(arguments: Sequence[str]) -> None:
    """Run the benchmark; its files are named by corpus, topics and threads."""
    chosen = parse(arguments)
    seeds = {
        "split": SPLIT_SEED,
        "evaluation": EVALUATION_SEED,
        "repeats": list(range(chosen.repeats)),
    }
    result = {
        "provenance": provenance("experiments.peers", arguments, _PACKAGES, seeds),
        "settings": {name: value for name, value in vars(chosen).items() if name != "out"},
    }
    corpus_name = Path(chosen.corpus).name
    result["settings"]["corpus"] = corpus_name
    with tempfile.TemporaryDirectory() as folder:
        result["corpus"] = _prepare(chosen, Path(folder))
        entrants = competitors(chosen)
        if chosen.tune:
            entrants, result["tuning"] = _tune(chosen, entrants, Path(folder))
        result["runs"] = _run_all(chosen, entrants, Path(folder))
    result["summary"] = summarise(result["runs"], chosen.threads)
    size = f"-{chosen.documents}" if chosen.documents else ""
    stem = f"{_bare(corpus_name)}{size}-{chosen.topics}-topics-{chosen.threads}-threads"
    _write(result, chosen, stem)
    print(as_text(result["summary"]))


def _prepare(chosen, folder):
    """Load and split the corpus; what is measured here is in no competitor's time."""
    started = time.perf_counter()
    corpus = load_corpus(chosen.corpus, cache=False)
    load_seconds = time.perf_counter() - started
    parts = problem.split(corpus, chosen.documents, SPLIT_SEED)
    problem.save(parts, folder)
    sizes = {
        part: {"documents": c.n_items, "entries": c.nnz, "tokens": c.n_tokens}
        for part, c in parts.items()
    }
    return {"words": corpus.n_features, "load_seconds": load_seconds, **sizes}


def _tune(chosen, entrants, folder):
    """Give each entrant the eta of :data:`tuning.GRID` that it validates best with."""
    seconds = chosen.tune_seconds or chosen.seconds / 3
    trials = [
        dataclasses.replace(entrant, eta=eta, seconds=seconds, held_out="validation")
        for entrant in entrants
        for eta in tuning.GRID
    ]
    records = [_launch(trial, folder) for trial in trials]
    best = tuning.best_etas(records)
    entrants = [dataclasses.replace(e, eta=best[e.competitor]["eta"]) for e in entrants]
    return entrants, {"best": best, "runs": records}


def _run_all(chosen, entrants, folder):
    """Repeats outside, competitors inside: a slow spell of the machine meets all of them."""
    if chosen.threads > 1:
        entrants = entrants + [
            dataclasses.replace(e, threads=1) for e in entrants if e.library == OURS
        ]
    return [
        _launch(dataclasses.replace(entrant, seed=repeat), folder)
        for repeat in range(chosen.repeats)
        for entrant in entrants
    ]


def _launch(settings, folder):
    record = launch(settings, folder)
    last = record["points"][-1]
    print(
        f"{settings.competitor}, {settings.threads} threads, eta {settings.eta:g}, seed "
        f"{settings.seed}: {last['perplexity']:.0f} after {last['seconds']:.1f} s, "
        f"{last['passes']:.2f} passes ({record['compile_seconds']:.1f} s compile, "
        f"{record['convert_seconds']:.1f} s convert, {record['evaluate_seconds']:.1f} s evaluate)",
        file=sys.stderr,
    )
    return record


def _bare(file_name):
    return file_name.removesuffix(".gz").removesuffix(".txt").removeprefix("docword.")


def _write(result, chosen, stem):
    """Write JSON, CSV and PNG under names that appear only when the files are whole."""
    chosen.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=chosen.out) as folder:
        whole = Path(folder)
        (whole / f"{stem}.json").write_text(json.dumps(result, indent=1) + "\n")
        _write_csv(result["runs"], whole / f"{stem}.csv")
        same = [record for record in result["runs"] if record["threads"] == chosen.threads]
        plot(same, _title(result, chosen), whole / f"{stem}.png")
        for file in whole.iterdir():
            os.replace(file, chosen.out / file.name)


def _title(result, chosen):
    train = result["corpus"]["train"]
    shown = f"median of {chosen.repeats} runs" if chosen.repeats > 1 else "one run"
    return (
        f"{_bare(result['settings']['corpus'])}: {train['documents']:,} documents, "
        f"{train['tokens']:,.0f} tokens, {result['corpus']['words']:,} words; "
        f"K = {chosen.topics}, {chosen.threads} threads, {shown}"
    )


def _write_csv(records, path):
    fields = ("competitor", "threads", "seed", "eta")
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*fields, *records[0]["points"][0]])
        for record in records:
            for point in record["points"]:
                writer.writerow([*(record[field] for field in fields), *point.values()])


if __name__ == "__main__":
    main(sys.argv[1:])
