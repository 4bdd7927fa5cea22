"""``python -m experiments.transform FOLDER``: how long it takes to find the topics of documents.

A model of one pass of `fit` answers for 100 documents and for a million, drawn with replacement
from its corpus (fewer, if they had more than ``--entries`` words), once as a `Corpus` and once as
the matrix of whole numbers that scikit-learn's ``CountVectorizer`` makes.

What is measured is CPU time, that of the calling thread and that of the others: a busy machine
makes it longer, but not as long as the time on the clock, which stands beside it.  From it follows
what two idle cores would do: a second of the calling thread takes one, of the others half of one.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import tracemalloc
from pathlib import Path
from statistics import median

import numpy as np

from dpsvi import DPSVILDA
from dpsvi.corpus import Corpus, load_corpus
from experiments.panel import corpora
from experiments.provenance import described, provenance
from experiments.record import kept

FEW, FEW_TIMES = 100, 50  # documents of a small call, and how often it is timed: the median counts
WEIGHED = 50_000  # documents of the call whose memory is measured
THREADS, SEED = 2, 0
GOAL = 50_000  # documents a second on two cores

FORMS = {
    "corpus": lambda documents: documents,
    "matrix": lambda documents: documents.to_csr().astype(np.int64),
}


def measure(train: Corpus, n_topics: int, n_documents: int, entries: float) -> dict:
    """Times of `transform`, and its memory, for one number of topics."""
    lda = DPSVILDA(n_topics, max_iter=1, n_jobs=THREADS, random_state=SEED).fit(train)
    n = int(min(n_documents, entries * train.n_items / train.nnz))
    drawn = np.random.default_rng(SEED).integers(train.n_items, size=n)
    many = train.select(drawn)
    found = {}
    for form, convert in FORMS.items():
        few, all_of_them = convert(many[:FEW]), convert(many)
        small = [_timed(lda, few) for _ in range(FEW_TIMES)]
        large = _timed(lda, all_of_them)
        found[form] = {
            "ms_for_few": 1e3 * median(t["cpu"] for t in small),
            "ms_for_few_by_the_clock": 1e3 * median(t["clock"] for t in small),
            **{f"{name}_microseconds": 1e6 * seconds / n for name, seconds in large.items()},
            "memory": _memory(lda, convert(many[:WEIGHED])),
        }
    return {
        "documents": n, "words": train.nnz / train.n_items,
        "tokens": train.n_tokens / train.n_items, **found,
    }  # fmt: skip


def _timed(lda, documents) -> dict[str, float]:
    """Seconds: by the clock, of all threads, and of the calling one alone."""
    clocks = {
        "clock": time.perf_counter, "cpu": time.process_time, "caller": time.thread_time,
    }  # fmt: skip
    started = {name: now() for name, now in clocks.items()}
    lda.transform(documents)
    return {name: now() - started[name] for name, now in clocks.items()}


def _memory(lda, documents) -> float:
    """Most memory that a call had at once, as a multiple of its answer."""
    tracemalloc.start()
    answer = lda.transform(documents)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most / answer.nbytes


def reckoned(found: dict) -> float:
    """Documents a second of two idle cores."""
    caller, cpu = found["caller_microseconds"], found["cpu_microseconds"]
    return 1e6 / (caller + (cpu - caller) / THREADS)


def _both(row: dict, text: str) -> str:
    return " / ".join(
        text.format(**row[form], clock=1e6 / row[form]["clock_microseconds"],
                    idle=reckoned(row[form]))
        for form in FORMS
    )  # fmt: skip


def main(argv=None) -> None:
    """Measure all corpora; write JSON and a table."""
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(prog="python -m experiments.transform", description=__doc__)
    parser.add_argument("folder", type=Path, help="holds docword.CORPUS.txt.gz")
    parser.add_argument("--corpora", nargs="+", metavar="CORPUS")
    parser.add_argument("--topics", type=int, nargs="+", default=[20, 100])
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--entries", type=float, default=1e8)
    parser.add_argument("--out", type=Path, default=Path("experiments/results/transform"))
    parser.add_argument("--redraw", action="store_true", help="the table, from what was kept")
    args = parser.parse_args(argv)
    source = provenance(
        "experiments.transform", argv, ["numpy", "numba"],
        {"split": corpora.SPLIT_SEED, "fit": SEED, "documents": SEED},
    )  # fmt: skip
    path = args.out / "transform.json"
    found = kept(path, source, None if args.redraw else lambda: measurements(args))
    path.with_suffix(".md").write_text("\n".join(table(found, found["rows"])) + "\n")


def measurements(args) -> list[dict]:
    """Measurements of every corpus with every number of topics."""
    rows = []
    for name, path in corpora.find(args.folder, args.corpora).items():
        train, _, _ = corpora.split(load_corpus(path))
        for n_topics in args.topics:
            found = measure(train, n_topics, args.documents, args.entries)
            rows.append({"name": name, "K": n_topics, **found})
            print(json.dumps(rows[-1]), flush=True)
    return rows


def table(source: dict, rows: list[dict]) -> list[str]:
    """Lines of a page."""
    slow = [
        f"{row['name']} with K = {row['K']} ({reckoned(row['matrix']):,.0f})"
        for row in rows
        if reckoned(row["matrix"]) < GOAL
    ]
    lines = [
        "# How long transform takes", "", described(source), "",
        "A document has so many different words and so many tokens. \"100\": milliseconds of CPU "
        "for 100 documents. \"Many\": microseconds of CPU a document, in brackets those of the "
        "calling thread alone, and documents a second by the clock of this machine, which other "
        f"work kept busy (load {source['hardware']['load_average']:g}). \"Two idle cores\": what "
        "follows from the CPU time, reckoned and not measured. Memory: most at once, as a "
        "multiple of the answer. Each for a Corpus / for a matrix of int64.", "",
        f"Below {GOAL:,} documents a second on two idle cores, as a matrix: "
        f"{', '.join(slow) or 'none'}.", "",
        "| corpus | words | tokens | K | 100, ms | documents | many, µs | by the clock, a second "
        "| two idle cores, a second | memory |",
        "|" + 10 * "---|",
    ]  # fmt: skip
    for row in rows:
        values = [
            _both(row, "{ms_for_few:.1f}"), f"{row['documents']:,}",
            _both(row, "{cpu_microseconds:.1f} ({caller_microseconds:.1f})"),
            _both(row, "{clock:,.0f}"), _both(row, "{idle:,.0f}"), _both(row, "{memory:.1f}"),
        ]  # fmt: skip
        lines.append(
            f"| {row['name']} | {row['words']:.0f} | {row['tokens']:.0f} | {row['K']} | "
            f"{' | '.join(values)} |"
        )
    return lines


if __name__ == "__main__":
    main()
