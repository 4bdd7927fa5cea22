"""``python -m experiments.figures.python_step``: how much longer a local step takes in Python.

The paper's steps were written in Python.  gensim's ``LdaModel.inference``, which descends from
Hoffman's code, stands for them; ours is the compiled mean-field step of the figures.  Both make SVI
over the same batches of the figures' documents, with K topics, at most ten inner iterations and one
thread, and both take turns.  Seconds are those of the processor, since other work may keep it busy.
Ours are of whole steps, gensim's of the local step alone and, beside it, with the blend of all
topics.  The inner iterations end by each side's own tolerance or, `all`, after ten.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from experiments.figures.plan import PYTHON
from experiments.figures.runs import ALPHA, ETA, SWEEPS, split
from experiments.provenance import provenance

TOPICS, WORDS, BATCH, RATE = 50, 8000, 32, 0.005  # of the figures
KINDS = {"at most ten": {}, "all": {"mean_change_tol": 0.0}}


def ours(train, own: dict) -> float:
    """Processor seconds of a document in our whole step, over the last nine tenths of a pass."""
    from dpsvi import DPSVILDA

    marks = []
    DPSVILDA(
        TOPICS, engine="serial", local_step="mean_field", lr_rule="constant", learning_rate=RATE,
        batch_size=BATCH, max_iter=1, evaluate_every=0.1, doc_topic_prior=ALPHA,
        topic_word_prior=ETA, max_doc_update_iter=SWEEPS, random_state=0,
        callbacks=[lambda event: marks.append((event.items, time.process_time()))], **own,
    ).fit(train)  # fmt: skip
    (first, started), (last, ended) = marks[0], marks[-1]
    return (ended - started) / (last - first)


def gensims(train, own: dict) -> tuple[float, float]:
    """Processor seconds of a document in gensim's inference, and in the whole step."""
    from gensim.models.ldamodel import LdaModel, LdaState

    lda = LdaModel(
        num_topics=TOPICS, id2word={i: str(i) for i in range(train.n_features)}, alpha=ALPHA,
        eta=ETA, iterations=SWEEPS, gamma_threshold=0.0 if own else 0.001, random_state=0,
    )  # fmt: skip
    documents = [
        [(int(train.index[j]), int(train.value[j])) for j in range(*train.offsets[d : d + 2])]
        for d in np.random.default_rng(0).permutation(train.n_items)
    ]
    local = whole = 0.0
    for start in range(0, len(documents), BATCH):
        batch = documents[start : start + BATCH]
        started = time.process_time()
        added = lda.inference(batch, collect_sstats=True)[1]
        local += time.process_time() - started
        found = LdaState(lda.eta, lda.state.sstats.shape, lda.dtype)
        found.sstats[:], found.numdocs = added, len(batch)
        lda.state.blend(RATE, found, len(documents))
        lda.sync_state()
        whole += time.process_time() - started
    return local / len(documents), whole / len(documents)


def measure(train, rounds: int) -> list[dict]:
    """Both sides in turn; a first, short fit of ours compiles and does not count."""
    ours(train.select(np.arange(10 * BATCH)), {})
    rows = []
    for number in range(rounds):
        for kind, own in KINDS.items():
            mine = ours(train, own)
            local, whole = gensims(train, own)
            rows.append(
                {"round": number, "iterations": kind, "ours": mine, "gensim, local step": local,
                 "gensim, whole step": whole}
            )  # fmt: skip
            print(rows[-1], flush=True)
    return rows


def table(rows: list[dict]) -> list[str]:
    """Lines of Markdown: medians, and ratios round by round."""
    lines = [
        "One thread, processor time, medians and ranges over the rounds.", "",
        "| inner iterations | microseconds a document, ours | gensim, local step "
        "| gensim, whole step | local step / ours (range) | whole step / ours (range) |",
        "|" + 6 * "---|",
    ]  # fmt: skip
    for kind in KINDS:
        mine = [row for row in rows if row["iterations"] == kind]
        names = "ours", "gensim, local step", "gensim, whole step"
        cells = [f"{1e6 * statistics.median(row[name] for row in mine):.1f}" for name in names]
        for name in names[1:]:
            ratios = [row[name] / row["ours"] for row in mine]
            cells.append(f"{statistics.median(ratios):.1f} ({min(ratios):.1f}-{max(ratios):.1f})")
        lines.append(f"| {kind} | " + " | ".join(cells) + " |")
    return [*lines, "", f"The figures take the ratio of whole steps to be {PYTHON:g}."]


def main(argv=None) -> None:
    """Measure; write JSON and a table."""
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(
        prog="python -m experiments.figures.python_step", description=__doc__
    )
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--documents", type=int, default=12_800)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("experiments/results/figures"))
    args = parser.parse_args(argv)
    source = provenance(
        "experiments.figures.python_step", argv, ["numpy", "numba", "scipy", "gensim"],
        {"split": 0, "fit": 0},
    )  # fmt: skip
    train, *_ = split(args.corpus, args.documents, WORDS)
    with threadpool_limits(1):
        rows = measure(train, args.rounds)
    args.out.mkdir(parents=True, exist_ok=True)
    stem = args.out / "python_step"
    stem.with_suffix(".json").write_text(json.dumps({**source, "rows": rows}, indent=1) + "\n")
    stem.with_suffix(".md").write_text("\n".join(table(rows)) + "\n")


if __name__ == "__main__":
    main()
