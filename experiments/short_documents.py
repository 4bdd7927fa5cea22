"""``python -m experiments.short_documents FOLDER CELL ...``: how much mean field is to remember.

The share of all passes that its parameters remember (`Defaults.memory_share`) is set by hand, on
corpora whose documents are cut to so many tokens, drawn at random; 0 leaves them whole.  A cell is
CORPUS:TOKENS:K.  Held-out perplexity is document completion with the fitted priors, on the split of
`experiments.panel`.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np

from dpsvi import DPSVILDA
from dpsvi.corpus import Corpus, as_corpus, load_corpus
from dpsvi.evaluation.completion import completion_perplexity
from dpsvi.families.topics import defaults
from dpsvi.models.lda import estimator
from experiments.panel import corpora
from experiments.provenance import described, provenance

KIND = "mean_field"
SHARES = (0.1, 0.2, 0.3, 0.5)
PASSES = (3, 10, 30)


def cut(corpus: Corpus, n_tokens: int) -> Corpus:
    """The corpus with at most so many tokens of each document; all of them for 0."""
    if not n_tokens:
        return corpus
    rng, documents = np.random.default_rng(0), []
    for first, last in zip(corpus.offsets[:-1], corpus.offsets[1:], strict=True):
        tokens = np.repeat(corpus.index[first:last], corpus.value[first:last].astype(int))
        tokens = rng.permutation(tokens)[:n_tokens]
        documents.append(list(zip(*np.unique(tokens, return_counts=True), strict=True)))
    return as_corpus(documents, n_features=corpus.n_features)


def fit(train: Corpus, test: Corpus, n_topics: int, n_passes: int, share: float) -> float:
    """Perplexity with this share, whatever the length of the documents is."""
    before, estimator.DEFAULTS[KIND] = (
        estimator.DEFAULTS[KIND], estimator.DEFAULTS[KIND]._replace(memory_share=share)
    )  # fmt: skip
    longer, defaults.MOST_LONGER = defaults.MOST_LONGER, 1.0
    try:
        lda = DPSVILDA(n_topics, local_step=KIND, max_iter=n_passes, random_state=0).fit(train)
    finally:
        estimator.DEFAULTS[KIND], defaults.MOST_LONGER = before, longer
    topics = lda.components_.T.astype(np.float64)
    return completion_perplexity(topics / topics.sum(axis=0), test, lda.doc_topic_prior_).perplexity


def main(argv=None) -> None:
    """Fit all shares to all corpora; write JSON and a table."""
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(
        prog="python -m experiments.short_documents", description=__doc__
    )
    parser.add_argument("folder", type=Path, help="holds docword.CORPUS.txt.gz")
    parser.add_argument("cells", nargs="+", metavar="CORPUS:TOKENS:K")
    parser.add_argument("--documents", type=int, default=30_000)
    parser.add_argument("--out", type=Path, default=Path("experiments/results/short_documents"))
    args = parser.parse_args(argv)
    source = provenance(
        "experiments.short_documents", argv, ["numpy", "numba"],
        {"cut": 0, "split": corpora.SPLIT_SEED, "fit": 0},
    )  # fmt: skip
    rows = []
    for cell in args.cells:
        name, tokens, topics = cell.split(":")
        whole = load_corpus(args.folder / f"docword.{name}.txt.gz")
        train, test, _ = corpora.split(cut(whole, int(tokens)), args.documents)
        found = {
            f"{share:g}": [fit(train, test, int(topics), n, share) for n in PASSES]
            for share in SHARES
        }
        rows.append(
            {
                "corpus": name, "K": int(topics), "documents": train.n_items,
                "tokens_a_document": round(float(train.n_tokens / train.n_items), 1),
                "perplexity": found,
            }
        )  # fmt: skip
        print(json.dumps(rows[-1]), flush=True)
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "shares.json").write_text(json.dumps({**source, "rows": rows}, indent=1) + "\n")
    heads = [f"share {share:g}" for share in SHARES]
    lines = [
        f"# Mean field, perplexity after {', '.join(map(str, PASSES))} passes", "",
        described(source), "", f"| corpus | K | tokens a document | {' | '.join(heads)} |",
        "|" + (3 + len(heads)) * "---|",
    ]  # fmt: skip
    for row in rows:
        cells = " | ".join(
            ", ".join(f"{value:,.0f}" for value in values) for values in row["perplexity"].values()
        )
        lines.append(f"| {row['corpus']} | {row['K']} | {row['tokens_a_document']:g} | {cells} |")
    (args.out / "shares.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
