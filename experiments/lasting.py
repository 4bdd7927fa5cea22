"""``python -m experiments.lasting FOLDER``: fits that find their end, beside fits of given length.

For each corpus: ``max_iter="auto"``; a fit of as many passes at once; the default number of passes;
and a long one.  Held-out perplexity (document completion, each with its own priors), median of the
seeds, one thread.  The split is that of `experiments.panel`.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from statistics import median

import numpy as np

from dpsvi import DPSVILDA
from dpsvi.corpus import load_corpus
from experiments.panel import corpora
from experiments.panel.cells import main_topics
from experiments.provenance import described, provenance
from experiments.record import kept

DEFAULT, LONG = 10, 160  # passes
SEEDS = 3


def measure(train, test, n_topics: int, seed: int) -> dict:
    """Perplexity, passes and seconds of the fits with one seed."""

    def fit(passes):
        lda = DPSVILDA(n_topics, max_iter=passes, engine="serial", random_state=seed).fit(train)
        return {
            "passes": lda.n_iter_, "seconds": lda.history_[-1]["seconds"],
            "perplexity": lda.perplexity(test),
        }  # fmt: skip

    found = {"auto": fit("auto")}
    lengths = {"at once": found["auto"]["passes"], "default": DEFAULT, "long": LONG}
    return found | {name: fit(passes) for name, passes in lengths.items()}


def main(argv=None) -> None:
    """Measure all corpora; write JSON and a table."""
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(prog="python -m experiments.lasting", description=__doc__)
    parser.add_argument("folder", type=Path, help="holds docword.CORPUS.txt.gz")
    parser.add_argument("--corpora", nargs="+", metavar="CORPUS")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--out", type=Path, default=Path("experiments/results/lasting"))
    parser.add_argument("--redraw", action="store_true", help="the table, from what was kept")
    args = parser.parse_args(argv)
    source = provenance(
        "experiments.lasting", argv, ["numpy", "numba"],
        {"split": corpora.SPLIT_SEED, "fit": list(range(args.seeds))},
    )  # fmt: skip
    path = args.out / "lasting.json"
    found = kept(path, source, None if args.redraw else lambda: fits(args))
    path.with_suffix(".md").write_text("\n".join(table(found, found["rows"])) + "\n")


def fits(args) -> list[dict]:
    """Fits of every corpus with every seed."""
    rows = []
    for name, path in corpora.find(args.folder, args.corpora).items():
        train, test, _ = corpora.split(load_corpus(path))
        tokens = float(np.median(corpora.document_lengths(train)))
        n_topics = main_topics({"median_tokens": tokens, "documents": train.n_items})
        for seed in range(args.seeds):
            found = measure(train, test, n_topics, seed)
            rows.append({"corpus": name, "K": n_topics, "seed": seed, **found})
            print(json.dumps(rows[-1]), flush=True)
    return rows


def table(source: dict, rows: list[dict]) -> list[str]:
    """Lines of a page."""
    lines = [
        "# Fits that find their end", "", described(source), "",
        f"Held-out perplexity, median of {len({row['seed'] for row in rows})} seeds, one thread.",
        "\"Auto\": `max_iter=\"auto\"`, with the passes that it made with each seed and, in",
        "brackets, the median of its seconds.", "",
        f"| corpus | K | passes (s) | auto | as many at once | {DEFAULT} passes | {LONG} passes "
        "| auto to these |",
        "|" + 8 * "---|",
    ]  # fmt: skip
    for name in dict.fromkeys(row["corpus"] for row in rows):
        mine = [row for row in rows if row["corpus"] == name]
        scores = {
            kind: median(row[kind]["perplexity"] for row in mine)
            for kind in ("auto", "at once", "default", "long")
        }
        passes = ", ".join(str(row["auto"]["passes"]) for row in mine)
        seconds = median(row["auto"]["seconds"] for row in mine)
        cells = " | ".join(f"{score:,.0f}" for score in scores.values())
        ratio = scores["auto"] / scores["long"]
        lines.append(
            f"| {name} | {mine[0]['K']} | {passes} ({seconds:.0f}) | {cells} | {ratio:.3f} |"
        )
    return lines


if __name__ == "__main__":
    main()
