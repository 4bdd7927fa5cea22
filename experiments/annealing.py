"""``python -m experiments.annealing``: large priors, from the beginning or annealed.

LDA with the priors given is fitted twice to each corpus, with the same seed: with these priors from
the first step on, and annealed (:mod:`dpsvi.models.lda.annealed`), as is the default.  What is
compared is the held-out perplexity of the topics (document completion) with one alpha for all.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from unittest.mock import patch

import numpy as np

from dpsvi import DPSVILDA
from dpsvi.evaluation.completion import completion_perplexity
from dpsvi.models.lda.annealed import AnnealedPriors
from experiments.held_out import load_split
from experiments.provenance import described, provenance

SCORED_WITH = 0.1  # alpha


def fit(train, test, annealed: bool, **settings) -> dict:
    """Perplexity of one fit, and the processor time it took."""
    started = time.process_time()
    with nullcontext() if annealed else patch.object(AnnealedPriors, "_first_priors", _at_once):
        lda = DPSVILDA(**settings).fit(train)
    seconds = time.process_time() - started
    topics = lda.components_.T.astype(np.float64)
    topics /= topics.sum(axis=0)
    found = completion_perplexity(topics, test, SCORED_WITH).perplexity
    return {"perplexity": found, "processor_seconds": seconds}


def _at_once(self, alpha, eta) -> tuple:
    """The priors that were given hold from the first step on."""
    return alpha, eta


def table(rows: list[dict]) -> str:
    """Markdown: a line for each corpus, number of topics and of passes."""
    lines = [
        "| corpus | K | passes | from the beginning | annealed | % |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        plain, annealed = row["plain"]["perplexity"], row["annealed"]["perplexity"]
        lines.append(
            f"| {row['corpus']} | {row['topics']:,} | {row['passes']} | {plain:,.0f} | "
            f"{annealed:,.0f} | {100 * (annealed / plain - 1):+.1f} |"
        )
    return "\n".join(lines) + "\n"


def main(argv=None) -> None:
    """Fit everything; write JSON and a table after each corpus and number of topics."""
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(prog="python -m experiments.annealing", description=__doc__)
    parser.add_argument("corpora", nargs="+", type=Path)
    parser.add_argument("--topics", default="100,400", help="K (%(default)s)")
    parser.add_argument("--passes", default="10", help="(%(default)s)")
    parser.add_argument("--alpha", type=float, default=0.1, help="(%(default)s)")
    parser.add_argument("--eta", type=float, default=0.03, help="(%(default)s)")
    parser.add_argument("--documents", type=int, default=20_000, help="at most (%(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--name", default="pair", help="of the files")
    parser.add_argument("--out", type=Path, default=Path("experiments/results/annealing"))
    args = parser.parse_args(argv)
    source = provenance(
        "experiments.annealing", argv, ["numpy", "numba"], {"fit": args.seed, "split": 0}
    )
    args.out.mkdir(parents=True, exist_ok=True)
    rows: list[dict] = []
    for path in args.corpora:
        train, test = load_split(path, args.documents)
        for topics in map(int, args.topics.split(",")):
            for passes in map(int, args.passes.split(",")):
                settings = {
                    "n_components": topics, "max_iter": passes, "n_jobs": args.threads,
                    "random_state": args.seed, "doc_topic_prior": args.alpha,
                    "topic_word_prior": args.eta,
                }  # fmt: skip
                rows.append({
                    "corpus": path.name.removeprefix("docword.").split(".")[0],
                    "documents": train.n_items, "topics": topics, "passes": passes,
                    "plain": fit(train, test, False, **settings),
                    "annealed": fit(train, test, True, **settings),
                })  # fmt: skip
                print(table(rows[-1:]).splitlines()[-1], flush=True)
        stem = args.out / args.name
        facts = {"alpha": args.alpha, "eta": args.eta, "scored_with_alpha": SCORED_WITH}
        stem.with_suffix(".json").write_text(
            json.dumps({**source, **facts, "rows": rows}, indent=1) + "\n"
        )
        title = f"# alpha {args.alpha:g}, eta {args.eta:g}: from the beginning, or annealed"
        stem.with_suffix(".md").write_text(f"{title}\n\n{described(source)}\n\n{table(rows)}")


if __name__ == "__main__":
    main()
