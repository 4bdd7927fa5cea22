"""``python -m experiments.kept_workers``: kept responsibilities on workers, SIMULATED.

LDA or, with ``--model hdp``, the HDP makes the same passes over the same documents with and without
them: serially, and on virtual clusters of n workers with p threads.  What is asked is how far the
held-out perplexity (document completion, LDA with alpha .1, the HDP with the priors that it has
learned) is from that of the serial fit with kept responsibilities of the same seed.  Costs of the
cluster are constants, so that the same seed gives the same result anywhere.

With ``--share 2`` half of the passes keep responsibilities, instead of the last tenth.  With
``--plain`` no fit keeps any, and serial fits without them are what others are compared with.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from functools import partial
from pathlib import Path

from dpsvi import DPSVIHDP, DPSVILDA, VirtualCluster
from dpsvi.cluster.virtual import TEN_GIGABIT, Timing
from dpsvi.corpus import Corpus
from dpsvi.families.topics import kept as kept_passes
from dpsvi.families.topics.kept import KEPT_SHARE
from experiments.held_out import load_split
from experiments.provenance import described, provenance

ALPHA = 0.1
MODELS = {"lda": partial(DPSVILDA, doc_topic_prior=ALPHA), "hdp": DPSVIHDP}
# About those of documents with 50 topics; over-writes as in results/figures/timing.json.
TIMING = Timing(
    step=2e-6, value=1.5e-7, lost=2.3e-5, contention=0.05, turn=3e-5, touch=2e-10, message=3e-5,
    read=2e-10, merge=2e-10,
)  # fmt: skip


def fit(train: Corpus, test: Corpus, args, cell: tuple[int, int] | None, kept: bool, seed: int):
    """What came of one fit, serial where `cell`, workers and threads, is None."""
    where: dict = {"engine": "serial"}
    if cell is not None:
        n, p = cell
        cluster = VirtualCluster(n_workers=n, network=TEN_GIGABIT, timing=TIMING, seed=seed)
        where = {"engine": "simulated", "n_jobs": p, "cluster": cluster}
    model = MODELS[args.model](
        args.topics, max_iter=args.passes, keep_responsibilities=kept, random_state=seed, **where
    ).fit(train)
    prior = model.topic_word_prior_ * model.components_.size
    return {
        "cell": cell, "kept": kept, "seed": seed, "perplexity": model.perplexity(test),
        "passes": model.n_iter_, "seconds": model.history_[-1]["seconds"],
        "tokens": float(model.components_.sum(dtype=float) - prior),
    }  # fmt: skip


def name_of(cell) -> str:
    """How a table calls it."""
    return "serial" if cell is None else f"n = {cell[0]}, p = {cell[1]}"


def mean_of(values: list[float]) -> str:
    """Their mean, its standard error where there is one, and their range."""
    mean = f"{statistics.mean(values):+.2f}"
    if len(values) > 1:
        mean += f" ± {statistics.stdev(values) / len(values) ** 0.5:.2f}"
    return f"{mean} ({min(values):+.2f} to {max(values):+.2f})"


def table(rows: list[dict], tokens: float) -> str:
    """Markdown: perplexities in per cent of serial, kept; means and ranges over seeds."""
    kinds = sorted({r["kept"] for r in rows}, reverse=True)  # kept ones first
    names = {True: "kept", False: "not kept"}
    base = {
        r["seed"]: r["perplexity"] for r in rows if r["cell"] is None and r["kept"] == kinds[0]
    }
    values = ", ".join(f"{value:,.1f}" for value in base.values())
    lines = [
        f"Serial, {names[kinds[0]]}: perplexity {values} (a "
        "number for each seed). Per cent above it with the same seed: mean, its standard error and "
        "range over seeds; tokens that the topics hold, by those of the documents.\n",
        f"| | {' | '.join(names[kind] for kind in kinds)} | tokens |",
        "| --- |" + " ---: |" * (len(kinds) + 1),
    ]
    for cell in dict.fromkeys(r["cell"] for r in rows):
        found = {kept: [r for r in rows if (r["cell"], r["kept"]) == (cell, kept)]
                 for kept in kinds}  # fmt: skip
        above = {kept: [100 * (r["perplexity"] / base[r["seed"]] - 1) for r in of]
                 for kept, of in found.items()}  # fmt: skip
        cells = {kept: mean_of(values) for kept, values in above.items()}
        shares = [r["tokens"] / tokens for r in found[kinds[0]]]
        worst = max(shares, key=lambda share: abs(share - 1))
        lines.append(f"| {name_of(cell)} | {' | '.join(cells.values())} | {worst:.6f} |")
    return "\n".join(lines) + "\n"


def main(argv=None) -> None:
    """Fit every cell with every seed; write JSON, and a table after each cell."""
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(prog="python -m experiments.kept_workers", description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--model", choices=MODELS, default="lda")
    parser.add_argument("--cells", default="2x1,8x1,8x8,64x1", help="n and p (%(default)s)")
    parser.add_argument("--documents", type=int, help="to train on, at most")
    parser.add_argument("--topics", type=int, default=50)
    parser.add_argument("--passes", type=int, default=30)
    parser.add_argument("--plain", action="store_true", help="keep no responsibilities")
    parser.add_argument("--share", type=int, default=KEPT_SHARE, help="one pass of so many keeps")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("experiments/results/kept_workers"))
    args = parser.parse_args(argv)
    seeds = list(range(args.seeds))
    source = provenance(
        "experiments.kept_workers", argv, ["numpy", "numba"], {"fit": seeds, "split": 0}
    )
    train, test = load_split(args.corpus, args.documents)
    tokens = float(train.value.sum(dtype=float))
    cells = [None, *(tuple(map(int, cell.split("x"))) for cell in args.cells.split(",") if cell)]
    facts = {
        "simulated": True, "model": args.model, "documents": train.n_items, "tokens": tokens,
        "topics": args.topics, "passes": args.passes, "share": args.share,
    }  # fmt: skip
    kept_passes.KEPT_SHARE = args.share
    args.out.mkdir(parents=True, exist_ok=True)
    share = f"-one-of-{args.share}" if args.share != KEPT_SHARE else "-plain" * args.plain
    name = "-".join([args.corpus.name.split(".")[1], *(["hdp"] if args.model == "hdp" else [])])
    stem, rows = args.out / f"{name}{share}", []
    for cell in cells:
        for kept in (False,) if args.plain else (True, False):
            rows += [fit(train, test, args, cell, kept, seed) for seed in seeds]
        stem.with_suffix(".json").write_text(
            json.dumps({**source, **facts, "rows": rows}, indent=1) + "\n"
        )
        title = f"{stem.name}, {train.n_items:,} documents, K = {args.topics}, {args.passes} passes"
        text = f"# {title}, simulated\n\n{described(source)}\n\n{table(rows, tokens)}"
        stem.with_suffix(".md").write_text(text)
        print(text.splitlines()[-1], flush=True)


if __name__ == "__main__":
    main()
