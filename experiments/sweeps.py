"""``python -m experiments.sweeps CELL ...``: how many iterations documents need.

A cell is PATH:LEAST:MOST, a corpus and the tokens that its documents are to have.  LDA and the HDP,
by the collapsed step, make `Defaults.sweeps` iterations on a document in a visit, at most, twice
and four times as many.  Held-out perplexity is document completion with each fit's own priors, mean
of the seeds; two threads.
"""

from __future__ import annotations

import argparse
import json
import sys
from itertools import groupby
from pathlib import Path
from statistics import mean

import numpy as np

from dpsvi import DPSVIHDP, DPSVILDA
from dpsvi.corpus import load_corpus
from experiments.panel import corpora
from experiments.provenance import described, provenance
from experiments.record import kept

SWEEPS = 7, 14, 28
PASSES = 10


def main(argv=None) -> None:
    """Measure all cells; write JSON and a table."""
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(prog="python -m experiments.sweeps", description=__doc__)
    parser.add_argument("cells", nargs="+", metavar="PATH:LEAST:MOST")
    parser.add_argument("--topics", type=int, nargs="+", default=[20, 100, 400])
    parser.add_argument("--documents", type=int, default=3000, help="of a cell, at most")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("experiments/results/sweeps"))
    parser.add_argument("--redraw", action="store_true", help="the table, from what was kept")
    args = parser.parse_args(argv)
    source = provenance(
        "experiments.sweeps", argv, ["numpy", "numba"],
        {"split": corpora.SPLIT_SEED, "fit": list(range(args.seeds))},
    )  # fmt: skip
    path = args.out / "sweeps.json"
    found = kept(path, source, None if args.redraw else lambda: fits(args))
    path.with_suffix(".md").write_text("\n".join(table(found, found["rows"])) + "\n")


def chosen(path: str, least: int, most: int, documents: int):
    """Training and test documents of `least` to `most` tokens, some of them, drawn at random."""
    corpus = load_corpus(path)
    tokens = corpora.document_lengths(corpus)
    ids = np.flatnonzero((tokens >= least) & (tokens <= most))
    ids = np.random.default_rng(corpora.SPLIT_SEED).permutation(ids)[:documents]
    train, test, _ = corpora.split(corpus.select(np.sort(ids)))
    return train, test


def fits(args) -> list[dict]:
    """Every cell with every number of topics, the HDP with the middle one, and every seed."""
    rows = []
    for cell in args.cells:
        path, least, most = cell.rsplit(":", 2)
        train, test = chosen(path, int(least), int(most), args.documents)
        n_words = len(np.unique(train.index))  # that occur
        models = [(DPSVILDA, n_topics) for n_topics in args.topics]
        models.append((DPSVIHDP, sorted(args.topics)[len(args.topics) // 2]))
        for model, n_topics in models:
            for seed in range(args.seeds):
                for sweeps in SWEEPS:
                    fitted = model(
                        n_topics, max_iter=PASSES, n_jobs=2, random_state=seed,
                        max_doc_update_iter=sweeps,
                    ).fit(train)  # fmt: skip
                    rows.append({
                        "corpus": Path(path).name, "least": int(least), "most": int(most),
                        "documents": train.n_items, "tokens": train.n_tokens / train.n_items,
                        "topic_tokens": train.n_tokens / (n_words * n_topics),
                        "model": model.__name__, "K": n_topics, "seed": seed, "sweeps": sweeps,
                        "perplexity": fitted.perplexity(test),
                        "seconds": fitted.history_[-1]["seconds"],
                    })  # fmt: skip
                    print(json.dumps(rows[-1]), flush=True)
    return rows


def table(source: dict, rows: list[dict]) -> list[str]:
    """Lines of a page."""
    lines = [
        "# Iterations on a document", "", described(source), "",
        f"Held-out perplexity after {PASSES} passes, mean of {len({r['seed'] for r in rows})} "
        f"seeds, and in brackets its ratio to that of {SWEEPS[0]} iterations, and the seconds'.",
        "", "| corpus | documents | tokens a document | for each word and topic | model | K | "
        + " | ".join(f"at most {n}" for n in SWEEPS) + " |",
        "|" + "---|" * (6 + len(SWEEPS)),
    ]  # fmt: skip
    for _, group in groupby(rows, lambda r: (r["corpus"], r["least"], r["model"], r["K"])):
        mine = list(group)
        scores, seconds = (
            [mean(r[name] for r in mine if r["sweeps"] == n) for n in SWEEPS]
            for name in ("perplexity", "seconds")
        )
        shown = [f"{scores[0]:,.0f}"] + [
            f"{score:,.0f} ({score / scores[0]:.3f}, {time / seconds[0]:.2f})"
            for score, time in zip(scores[1:], seconds[1:], strict=True)
        ]
        lines.append(
            "| {corpus} | {documents:,} | {tokens:,.0f} | {topic_tokens:.2g} | {model} | {K} | "
            .format(**mine[0])
            + " | ".join(shown) + " |"
        )
    return lines


if __name__ == "__main__":
    main()
