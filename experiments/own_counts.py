"""``python -m experiments.own_counts``: how strongly own counts are to be left out of a document.

`dpsvi.kernels.collapsed.OWN` is 2.  Here the collapsed step runs with other strengths on the
corpora given, all else being equal; held-out perplexity (document completion, alpha .1) is written
down.  With ``--all-tokens`` each strength is tried twice: as it is, where a word's first token is
left out and of the others those that repeat it, and with all tokens of a word left out.  The split
is that of `experiments.panel`.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import numpy as np

from dpsvi.kernels.jit import kernel
from experiments import own_process
from experiments.panel import corpora
from experiments.panel.cells import FIXED_ALPHA, FIXED_ETA, main_topics
from experiments.provenance import provenance

_PAIR = {"doc_topic_prior": FIXED_ALPHA, "topic_word_prior": FIXED_ETA}


def fit(folder: Path, own: float, all_tokens: bool, settings: dict) -> float:
    """Perplexity after a fit with this strength; it is compiled in, hence a process for each."""
    from dpsvi import DPSVILDA
    from dpsvi.evaluation.completion import completion_perplexity
    from dpsvi.kernels import collapsed

    collapsed.OWN = own
    if all_tokens:
        collapsed.repetition = _one
    train, test = (corpora.load(folder, part) for part in ("train", "test"))
    lda = DPSVILDA(random_state=0, **settings).fit(train)
    topics = lda.components_.T.astype(np.float64)
    return completion_perplexity(topics / topics.sum(axis=0), test, FIXED_ALPHA).perplexity


@kernel
def _one(counts, length, held, total):
    return counts.dtype.type(1)


def main(arguments=None) -> None:
    """Fit all strengths to all corpora and write a JSON file and a table."""
    parser = argparse.ArgumentParser(prog="python -m experiments.own_counts", description=__doc__)
    parser.add_argument("corpora", nargs="+", type=Path)
    parser.add_argument("--own", default="0,1,2,3,4")
    parser.add_argument("--all-tokens", action="store_true", help="compare with these left out")
    parser.add_argument("--topics", type=int, help="K [50 or 100, by the corpus]")
    parser.add_argument("--passes", type=int, default=10)
    parser.add_argument("--documents", type=int, default=30_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--fixed-pair", action="store_true", help="priors .1 and .03")
    parser.add_argument("--kept", action="store_true", help="with kept responsibilities")
    parser.add_argument("--out", type=Path, default="experiments/results/own_counts")
    args = parser.parse_args(arguments)
    strengths = [float(own) for own in args.own.split(",")]
    source = provenance(
        "experiments.own_counts", arguments or sys.argv[1:], ["numpy", "numba"],
        {"split": corpora.SPLIT_SEED, "fit": 0},
    )  # fmt: skip
    rows = []
    for path in args.corpora:
        with tempfile.TemporaryDirectory() as folder:
            parts = Path(folder) / "parts"
            described = corpora.prepare(path, args.documents, parts)
            topics = args.topics or main_topics(described)
            settings = {"n_components": topics, "max_iter": args.passes, "n_jobs": args.threads}
            settings |= _PAIR if args.fixed_pair else {}
            settings |= {"keep_responsibilities": True} if args.kept else {}
            found = {
                f"{own:g}{', all tokens' * every}": _launch(parts, own, every, settings)
                for own in strengths for every in range(1 + args.all_tokens)
            }  # fmt: skip
        rows.append({"corpus": path.name.split(".")[1], **settings, "perplexity": found})
        print(json.dumps(rows[-1]), flush=True)
    args.out.mkdir(parents=True, exist_ok=True)
    stem = f"{'-'.join(row['corpus'] for row in rows)}-{args.topics or 'main'}-topics"
    stem += "-all-tokens" * args.all_tokens + "-fixed-pair" * args.fixed_pair + "-kept" * args.kept
    lines = [f"| corpus | K | {' | '.join(rows[0]['perplexity'])} |"]
    lines.append("|---" * (len(rows[0]["perplexity"]) + 2) + "|")
    for row in rows:
        cells = " | ".join(f"{value:.4g}" for value in row["perplexity"].values())
        lines.append(f"| {row['corpus']} | {row['n_components']} | {cells} |")
    (args.out / f"{stem}.json").write_text(json.dumps({**source, "rows": rows}, indent=1) + "\n")
    (args.out / f"{stem}.md").write_text("\n".join(lines) + "\n")


def _launch(folder, own, all_tokens, settings) -> float:
    """`fit` with a strength, which is compiled in."""
    given = f"Path({str(folder)!r}), {own}, {bool(all_tokens)}, {settings!r}"
    call = f"experiments.own_counts.fit({given})"
    code = f"from pathlib import Path; import experiments.own_counts; print({call})"
    return float(own_process.run(code).split()[-1])


if __name__ == "__main__":
    main()
