"""``python -m experiments.learned_eta CORPORA``: what learning eta while topics are fitted brings.

LDA and the HDP are fitted to every corpus with eta as the fit begins, ``topic_word_prior=None``,
and with the one that is learned, ``"auto"``; all else are the defaults.  Held-out perplexity is by
document completion, with the priors that a fit has learned.  The split is that of
`experiments.panel`.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from dpsvi import DPSVIHDP, DPSVILDA
from experiments.panel import corpora
from experiments.provenance import described, provenance

HDP, STEP = "hdp", {"m": "mean_field", "s": "sparse"}
PRIORS = None, "auto"


def make(name: str):
    """The estimator of a name: ``hdp``, or K of LDA, after the first letter of its local step."""
    if name == HDP:
        return DPSVIHDP()
    step = STEP.get(name[0])
    return DPSVILDA(int(name[1:]), local_step=step) if step else DPSVILDA(int(name))


def fit(name: str, train, test, args) -> dict:
    """Perplexities with either kind of eta, and the one that the last fit has learned."""
    estimator = make(name).set_params(max_iter=args.passes, n_jobs=1)
    found = {}
    for prior in PRIORS:
        found[str(prior)] = [
            estimator.set_params(topic_word_prior=prior, random_state=seed).fit(train)
            .perplexity(test) for seed in range(args.seeds)
        ]  # fmt: skip
        found[f"eta {prior}"] = float(estimator.topic_word_prior_)
    return found


def table(rows: list[dict]) -> str:
    """A line for each corpus and model, and the means of each model."""
    lines = [
        "| corpus | model | eta at first | learned | perplexity with that at first | learned, % |",
        "|---|---|" + "---:|" * 4,
    ]
    more: dict[str, list[float]] = {}
    for row in rows:
        first, learned = (sum(row[str(prior)]) / len(row[str(prior)]) for prior in PRIORS)
        more.setdefault(row["model"], []).append(100 * (learned / first - 1))
        lines.append(
            f"| {row['corpus']} | {row['model']} | {row['eta None']:.2g} | {row['eta auto']:.2g} | "
            f"{first:,.4g} | {more[row['model']][-1]:+.1f} |"
        )
    lines += [
        f"| mean (lowest to highest) | {name} | | | | {sum(found) / len(found):+.1f} "
        f"({min(found):+.1f} to {max(found):+.1f}) |" for name, found in more.items()
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def main(argv=None) -> None:
    """Fit all; write JSON and a table."""
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(prog="python -m experiments.learned_eta", description=__doc__)
    parser.add_argument("corpora", nargs="+", type=Path)
    parser.add_argument(
        "--models", default="20,100,400,s1000,m100,hdp",
        help="K of LDA, behind s or m with the sparse or mean-field step, or hdp [%(default)s]",
    )  # fmt: skip
    parser.add_argument("--passes", type=int, default=15)
    parser.add_argument("--documents", type=int, default=8000, help="at most [%(default)s]")
    parser.add_argument("--seeds", type=int, default=2, help="fits of each cell [%(default)s]")
    parser.add_argument("--out", type=Path, default=Path("experiments/results/learned_eta"))
    args = parser.parse_args(argv)
    source = provenance(
        "experiments.learned_eta", argv, ["numpy", "numba"],
        {"split": corpora.SPLIT_SEED, "fits": f"0 to {args.seeds - 1}"},
    )  # fmt: skip
    rows = []
    for path in args.corpora:
        name = path.name.removeprefix("docword.").split(".")[0]
        with tempfile.TemporaryDirectory() as folder:
            parts = Path(folder) / name
            corpora.prepare(path, args.documents, parts)
            train, test = (corpora.load(parts, part) for part in ("train", "test"))
        for model in args.models.split(","):
            rows.append({"corpus": name, "model": model, **fit(model, train, test, args)})
            print(json.dumps(rows[-1]), flush=True)
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "learned_eta.json").write_text(
        json.dumps({**source, "rows": rows}, indent=1) + "\n"
    )
    seeds = "of one seed" if args.seeds == 1 else f"mean of {args.seeds} seeds"
    (args.out / "learned_eta.md").write_text(
        f"# Eta that is learned while topics are fitted\n\n{described(source)}\n\nHeld-out "
        f"perplexity after {args.passes} passes with the eta that a fit begins with, {seeds}, "
        "and by how many percent it is higher with the learned one. Models "
        "are K of LDA (s: sparse step, m: mean field) and the HDP; etas are of the last seed.\n\n"
        f"{table(rows)}"
    )


if __name__ == "__main__":
    main()
