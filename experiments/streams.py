"""``python -m experiments.streams FOLDER``: a corpus that comes in parts beside one that is there.

``partial_fit`` over chunks of the documents, each once, beside ``fit(max_iter=1)`` of all of them.
How many documents there will be is told to `partial_fit` (``total_samples``) or not.  Held-out
perplexity is document completion with the priors of the fit, on the split of `experiments.panel`.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np

from dpsvi import DPSVILDA
from dpsvi.corpus import Corpus, load_corpus
from dpsvi.evaluation.completion import completion_perplexity
from experiments.panel import corpora
from experiments.provenance import described, provenance
from experiments.record import kept

# Documents in a call, and whether `partial_fit` is told of how many there will be.
STREAMS = ((100, False), (1000, False), (10_000, False), (1000, True))
GOAL = 0.02  # perplexity above that of `fit`


def perplexity(lda: DPSVILDA, test: Corpus) -> float:
    """Of held-out documents."""
    topics = lda.components_.T.astype(np.float64)
    return completion_perplexity(topics / topics.sum(axis=0), test, lda.doc_topic_prior_).perplexity


def stream(train: Corpus, chunk: int, **settings) -> DPSVILDA:
    """Learn the documents once, so many at a time."""
    lda = DPSVILDA(**settings)
    for first in range(0, train.n_items, chunk):
        lda.partial_fit(train.select(slice(first, first + chunk)))
    return lda


def compare(train: Corpus, test: Corpus, n_topics: int, seeds: range) -> dict:
    """Perplexities of a pass of `fit` and of streams, one for each seed."""
    found: dict[str, list[float]] = {"fit": []}
    for seed in seeds:
        settings = dict(n_components=n_topics, doc_topic_prior=None, random_state=seed)
        found["fit"].append(perplexity(DPSVILDA(max_iter=1, **settings).fit(train), test))
        for chunk, known in STREAMS:
            total = train.n_items if known else None
            lda = stream(train, chunk, total_samples=total, **settings)
            found.setdefault(title(chunk, known), []).append(perplexity(lda, test))
    return found


def title(chunk: int, known: bool) -> str:
    """Name of a kind of stream."""
    return f"{chunk:,}, N known" if known else f"{chunk:,}"


def gap(found: dict, name: str) -> float:
    """How much higher the perplexity of a stream is than that of `fit`: mean over the seeds."""
    return float(np.exp(np.mean(np.log(found[name]) - np.log(found["fit"])))) - 1


def main(argv=None) -> None:
    """Learn all corpora at once and in parts; write JSON and a table."""
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(prog="python -m experiments.streams", description=__doc__)
    parser.add_argument("folder", type=Path, help="holds docword.CORPUS.txt.gz")
    parser.add_argument("--corpora", nargs="+", metavar="CORPUS")
    parser.add_argument("--topics", type=int, nargs="+", default=[20, 100])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--documents", type=int, default=30_000)
    parser.add_argument("--out", type=Path, default=Path("experiments/results/streams"))
    parser.add_argument("--redraw", action="store_true", help="the table, from what was kept")
    args = parser.parse_args(argv)
    source = provenance(
        "experiments.streams", argv, ["numpy", "numba"],
        {"split": corpora.SPLIT_SEED, "fit": list(range(args.seeds))},
    )  # fmt: skip
    path = args.out / "streams.json"
    found = kept(path, source, None if args.redraw else lambda: comparisons(args))
    path.with_suffix(".md").write_text("\n".join(table(found, found["rows"])) + "\n")


def comparisons(args) -> list[dict]:
    """What streams of every corpus come to, with every number of topics."""
    rows = []
    for name, path in corpora.find(args.folder, args.corpora).items():
        train, test, _ = corpora.split(load_corpus(path), args.documents)
        for n_topics in args.topics:
            found = compare(train, test, n_topics, range(args.seeds))
            rows.append(
                {
                    "corpus": name, "K": n_topics, "documents": train.n_items,
                    "perplexity": found,
                }
            )  # fmt: skip
            print(json.dumps(rows[-1]), flush=True)
    return rows


def table(source: dict, rows: list[dict]) -> list[str]:
    """Lines of a page."""
    names = [title(*kind) for kind in STREAMS]
    missed = sum(gap(row["perplexity"], name) > GOAL for row in rows for name in names)
    lines = [
        "# Perplexity of streams, relative to one pass of fit", "",
        described(source), "",
        f"Documents in a call; {missed} of {len(rows) * len(names)} are more than {GOAL:.0%} "
        "above `fit`.", "",
        f"| corpus | K | documents | fit | {' | '.join(names)} |",
        "|" + (4 + len(names)) * "---|",
    ]  # fmt: skip
    for row in rows:
        found = row["perplexity"]
        gaps = " | ".join(f"{gap(found, name):+.1%}" for name in names)
        fit = np.exp(np.mean(np.log(found["fit"])))
        lines.append(
            f"| {row['corpus']} | {row['K']} | {row['documents']:,} | {fit:,.0f} | {gaps} |"
        )
    return lines


if __name__ == "__main__":
    main()
