"""``python -m experiments.learned_alpha CORPORA``: how much too small a learned alpha would be.

`dpsvi.families.topics.learned_priors` takes the sum of alpha that is best for the documents of the
fit times a factor that falls with the tokens for each word and topic.  Here every corpus given is
fitted with the defaults, and documents that were held out are scored (document completion) with
other factors.  The split is that of `experiments.panel`.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import numpy as np

from experiments.panel import corpora
from experiments.provenance import provenance

FACTORS = (0.5, 1.0, 1.25, 1.5, 1.75, 2.0, 3.0, 4.0)


def compare(folder: Path, n_topics: int, n_passes: int, seed: int) -> dict:
    """Fit a corpus and score it with every factor, and with the one that the fit took."""
    from dpsvi import DPSVILDA
    from dpsvi.evaluation.completion import completion_perplexity
    from dpsvi.families.topics.learned_priors import too_small

    train, test = (corpora.load(folder, part) for part in ("train", "test"))
    lda = DPSVILDA(n_topics, max_iter=n_passes, random_state=seed, n_jobs=2).fit(train)
    tokens = float(train.value.sum()) / (n_topics * train.n_features)
    taken, used = too_small(tokens), float(lda.doc_topic_prior_[0])
    topics = lda.components_.T.astype(np.float64)
    topics /= topics.sum(axis=0)

    def perplexity(factor):
        return completion_perplexity(topics, test, used * factor / taken).perplexity

    found = {factor: perplexity(factor) for factor in FACTORS}
    return {
        "K": n_topics, "tokens": tokens, "fit": used / taken * n_topics, "taken": taken,
        "perplexity": perplexity(taken), "by_factor": found,
    }  # fmt: skip


def above(row) -> dict:
    """By how many percent each perplexity is above the lowest one, by factor and as taken."""
    found = {**row["by_factor"], "by tokens": row["perplexity"]}
    return {factor: 100 * (value / min(found.values()) - 1) for factor, value in found.items()}


def table(rows) -> str:
    """A line for each corpus and K, by tokens."""
    lines = [
        "| corpus | K | tokens | best sum for the fit | factor taken | "
        f"{' | '.join(map(str, FACTORS))} |",
        "|---|" + "---:|" * (len(FACTORS) + 4),
    ]
    for row in sorted(rows, key=lambda row: row["tokens"]):
        percent = above(row)
        lines.append(
            f"| {row['corpus']} | {row['K']} | {row['tokens']:.2g} | {row['fit']:.3g} | "
            f"{row['taken']:.2f}: {percent['by tokens']:.2f} | "
            f"{' | '.join(f'{percent[factor]:.2f}' for factor in FACTORS)} |"
        )
    return "\n".join(lines) + "\n"


def summary(rows) -> str:
    """Mean over all cells, and the worst of them, with each way to choose the factor."""
    lines = ["| factor | above the lowest, mean % | largest % |", "|---|---:|---:|"]
    for way, name in ((1.0, "1"), (2.0, "2"), ("by tokens", "by tokens")):
        percent = [above(row)[way] for row in rows]
        lines.append(f"| {name} | {np.mean(percent):.2f} | {max(percent):.2f} |")
    return "\n".join(lines) + "\n"


def main(argv=None) -> None:
    """Fit all cells; write JSON and tables."""
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(prog="python -m experiments.learned_alpha")
    parser.add_argument("corpora", nargs="+", type=Path)
    parser.add_argument("--topics", default="20,100")
    parser.add_argument("--passes", type=int, default=10)
    parser.add_argument("--documents", type=int, default=30_000, help="at most [%(default)s]")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("experiments/results/learned_alpha"))
    args = parser.parse_args(argv)
    source = provenance(
        "experiments.learned_alpha", argv, ["numpy", "numba"],
        {"split": corpora.SPLIT_SEED, "fit": args.seed},
    )  # fmt: skip
    rows = []
    for path in args.corpora:
        with tempfile.TemporaryDirectory() as folder:
            parts = Path(folder) / "parts"
            corpora.prepare(path, args.documents, parts)
            for n_topics in map(int, args.topics.split(",")):
                row = compare(parts, n_topics, args.passes, args.seed)
                rows.append({"corpus": path.name.split(".")[1], **row})
                print(table(rows[-1:]).splitlines()[-1], flush=True)
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "learned_alpha.json").write_text(
        json.dumps({**source, "rows": rows}, indent=1) + "\n"
    )
    (args.out / "learned_alpha.md").write_text(
        f"# The factor of a learned alpha\n\n`{source['command']}`; {source['date']}\n\n"
        "Percent above the lowest held-out perplexity, by the factor between the sum of alpha "
        "that is best for documents of the fit and the one that is used; *tokens* are those for "
        f"each word and topic.\n\n{table(rows)}\n{summary(rows)}"
    )


if __name__ == "__main__":
    main()
