"""``python -m experiments.own_counts``: how strongly own counts are to be left out of a document.

`dpsvi.kernels.collapsed.OWN` is 2.  Here the collapsed step runs with other strengths on the
corpora given, all else being equal; held-out perplexity (document completion, alpha .1 and, behind
it, the one that was learned) is written down.  ``--counted`` names what is left out of the tokens
of a word: ``root`` is what the program does, the square root of their number, beyond the first
token as far as they repeat it; ``repeated`` are the first and all that repeat it, ``all`` all
tokens, ``first`` only one.  The split is that of `experiments.panel`.
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


@kernel
def repeated(count, repeats):
    """See the module, as for `all` and `first`."""
    return min(count, type(count)(1)) + repeats * max(count - type(count)(1), type(count)(0))


@kernel
def every(count, repeats):
    """All tokens of a word."""
    return count


@kernel
def first(count, repeats):
    """One token of a word."""
    return min(count, type(count)(1))


COUNTED = {"root": None, "repeated": repeated, "all": every, "first": first}


def fit(folder: Path, own: float, counted: str, seeds: int, settings: dict) -> None:
    """Print perplexities, means over seeds, of fits with this strength, which is compiled in."""
    from dpsvi import DPSVILDA
    from dpsvi.evaluation.completion import completion_perplexity
    from dpsvi.kernels import collapsed

    collapsed.OWN = own
    collapsed.tokens_left_out = COUNTED[counted] or collapsed.tokens_left_out
    train, test = (corpora.load(folder, part) for part in ("train", "test"))
    found = []
    for seed in range(seeds):
        lda = DPSVILDA(random_state=seed, **settings).fit(train)
        topics = lda.components_.T.astype(np.float64)
        topics /= topics.sum(axis=0)
        alphas = FIXED_ALPHA, lda.doc_topic_prior_
        found.append([completion_perplexity(topics, test, alpha).perplexity for alpha in alphas])
    print(json.dumps(np.mean(found, axis=0).tolist()))


def main(arguments=None) -> None:
    """Fit all strengths to all corpora and write a JSON file and a table."""
    parser = argparse.ArgumentParser(prog="python -m experiments.own_counts", description=__doc__)
    parser.add_argument("corpora", nargs="+", type=Path)
    parser.add_argument("--own", default="0,1,2,3,4")
    parser.add_argument("--counted", default="root", help="any of root,repeated,all,first")
    parser.add_argument("--seeds", type=int, default=1, help="of each fit [%(default)s]")
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
        {"split": corpora.SPLIT_SEED, "fit": list(range(args.seeds))},
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
                f"{own:g}, {counted}": _launch(parts, own, counted, args.seeds, settings)
                for own in strengths for counted in args.counted.split(",")
            }  # fmt: skip
        rows.append({"corpus": path.name.split(".")[1], **settings, "perplexity": found})
        print(json.dumps(rows[-1]), flush=True)
    args.out.mkdir(parents=True, exist_ok=True)
    stem = f"{'-'.join(row['corpus'] for row in rows)}-{args.topics or 'main'}-topics"
    stem += "-fixed-pair" * args.fixed_pair + "-kept" * args.kept
    lines = ["Perplexity with alpha .1 / with the alpha that was learned.", ""]
    lines.append(f"| corpus | K | {' | '.join(rows[0]['perplexity'])} |")
    lines.append("|---" * (len(rows[0]["perplexity"]) + 2) + "|")
    for row in rows:
        cells = " | ".join(f"{a:.4g} / {b:.4g}" for a, b in row["perplexity"].values())
        lines.append(f"| {row['corpus']} | {row['n_components']} | {cells} |")
    (args.out / f"{stem}.json").write_text(json.dumps({**source, "rows": rows}, indent=1) + "\n")
    (args.out / f"{stem}.md").write_text("\n".join(lines) + "\n")


def _launch(folder, own, counted, seeds, settings) -> list[float]:
    """What :func:`fit` prints."""
    given = f"Path({str(folder)!r}), {own}, {counted!r}, {seeds}, {settings!r}"
    call = f"experiments.own_counts.fit({given})"
    code = f"from pathlib import Path; import experiments.own_counts; {call}"
    return json.loads(own_process.run(code).splitlines()[-1])


if __name__ == "__main__":
    main()
