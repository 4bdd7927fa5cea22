"""``python -m experiments.moved_topics``: topics that are moved while an HDP is fitted.

Each corpus is fitted by the mean-field step, plainly and with ``restructure=True``, all else by
default but for 150 topics at most and 10 passes, on one thread.  Corpora are files, or
``drawn-5``, ``drawn-8`` and ``drawn-20``, documents that are drawn from so many topics; these are
fitted with 30 topics at most, 20 passes.  Scores are the log-likelihood of a held-out token in
document completion, in nats.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

import numpy as np

from dpsvi import DPSVIHDP, as_corpus
from experiments.held_out import load_split
from experiments.provenance import described, provenance

WAYS = {"plain": False, "restructure": True}
CORPORA = {"n_components": 150, "max_iter": 10}
DRAWN = {"n_components": 30, "max_iter": 20}
# Topics, words, documents to be fitted and tokens in a document on average.
SIZES = {
    "drawn-5": (5, 150, 400, 80), "drawn-8": (8, 300, 1000, 100), "drawn-20": (20, 500, 2000, 60),
}  # fmt: skip
HELD_OUT = 300  # documents


def draw(size, seed: int):
    """Documents of topics whose words are Zipf-distributed, each in an order of its own."""
    n_topics, n_words, n_documents, n_tokens = size
    rng = np.random.default_rng(seed)
    frequency = 1.0 / np.arange(1, n_words + 1)
    topics = np.array([rng.permutation(frequency) for _ in range(n_topics)]) / frequency.sum()
    n = n_documents + HELD_OUT
    theta = rng.dirichlet(np.full(n_topics, 0.1), n)
    counts = rng.multinomial(rng.poisson(n_tokens, n), theta @ topics)
    return as_corpus(counts[:n_documents]), as_corpus(counts[n_documents:])


def fit(train, test, settings: dict, way: str, seed: int) -> dict:
    """What came of one fit."""
    model = DPSVIHDP(
        **settings, local_step="mean_field", restructure=WAYS[way], engine="serial",
        random_state=seed,
    )  # fmt: skip
    started = time.process_time()
    model.fit(train)
    seconds = time.process_time() - started
    return {
        "way": way, "seed": seed, "score": model.score(test), "topics": model.n_topics_active_,
        "cpu_seconds": seconds, "moves": getattr(model, "moves_", None),
    }  # fmt: skip


def table(rows: dict[str, list[dict]]) -> str:
    """Markdown: means over the seeds, and of gains over plain fits of the same seed the range."""
    lines = [
        "| corpus | fit | score | gain (lowest to highest) | topics in use | CPU seconds | "
        "merges, deletes, births |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for corpus, fits in rows.items():
        plain = {r["seed"]: r["score"] for r in fits if r["way"] == "plain"}
        for way in WAYS:
            mine = [r for r in fits if r["way"] == way]
            gain, moves = "", ""
            if way != "plain":
                gains = [r["score"] - plain[r["seed"]] for r in mine]
                gain = f"{statistics.mean(gains):+.4f} ({min(gains):+.4f} to {max(gains):+.4f})"
                moves = ", ".join(
                    f"{statistics.mean(r['moves'][kind] for r in mine):.1f}"
                    for kind in mine[0]["moves"]
                )
            score, seconds = (
                statistics.mean(r[what] for r in mine) for what in ("score", "cpu_seconds")
            )
            topics = ", ".join(str(r["topics"]) for r in mine)
            lines.append(
                f"| {corpus} | {way} | {score:.4f} | {gain} | {topics} | {seconds:.1f} | {moves} |"
            )
    return "\n".join(lines) + "\n"


def main(argv=None) -> None:
    """Fit every corpus in both ways with every seed; write JSON and a table."""
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(
        prog="python -m experiments.moved_topics", description=__doc__
    )
    parser.add_argument("corpora", nargs="+", metavar="CORPUS", help="a file, or drawn-5, -8, -20")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("experiments/results/restructuring"))
    args = parser.parse_args(argv)
    seeds = list(range(args.seeds))
    source = provenance(
        "experiments.moved_topics", argv, ["numpy", "numba"],
        {"split": 0, "drawn data and fits": seeds},
    )  # fmt: skip
    args.out.mkdir(parents=True, exist_ok=True)
    small = draw((5, 50, 100, 20), 0)
    fit(*small, DRAWN, "restructure", 0)  # compiles
    rows: dict[str, list[dict]] = {}
    for name in args.corpora:
        corpus = Path(name).name.removeprefix("docword.").partition(".")[0]
        for seed in seeds:
            drawn = name in SIZES
            train, test = draw(SIZES[name], seed) if drawn else load_split(name, None)
            for way in WAYS:
                found = fit(train, test, DRAWN if drawn else CORPORA, way, seed)
                rows.setdefault(corpus, []).append(found)
                print(corpus, found, flush=True)
        content = json.dumps({**source, "rows": rows}, indent=1)
        (args.out / "topics.json").write_text(content + "\n")
        text = "# Topics that are moved while an HDP is fitted\n\n"
        text += f"{described(source)}\n\n<!-- table -->\n\n{table(rows)}"
        (args.out / "topics.md").write_text(text)


if __name__ == "__main__":
    main()
