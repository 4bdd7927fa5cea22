"""``python -m experiments.sharpness CORPORA``: how much less of a document minor topics should get.

`dpsvi.kernels.collapsed.SHARP` is 2.  Here LDA and the HDP run with other strengths on the corpora
given, all else being the defaults; held-out perplexity (document completion, with the priors that a
fit has learned) is written down, in percent of what it is with strength 0.  The split is that of
`experiments.panel`.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from experiments import own_process
from experiments.panel import corpora
from experiments.provenance import provenance

HDP = "hdp"


def fit(folder: Path, sharp: float, models: list[str], seeds: int, passes: int) -> None:
    """Print the mean perplexity of every corpus in `folder` with every model, as JSON."""
    from dpsvi import DPSVIHDP, DPSVILDA
    from dpsvi.kernels import collapsed

    collapsed.SHARP = sharp
    for parts in sorted(folder.iterdir()):
        train, test = (corpora.load(parts, part) for part in ("train", "test"))
        for name in models:
            estimator = DPSVIHDP() if name == HDP else DPSVILDA(int(name))
            estimator.set_params(max_iter=passes, n_jobs=1)
            found = [
                estimator.set_params(random_state=seed).fit(train).perplexity(test)
                for seed in range(seeds)
            ]
            tokens = float(train.value.sum()) / train.n_features
            row = {"corpus": parts.name, "model": name, "sharp": sharp, "tokens a word": tokens}
            print(json.dumps({**row, "perplexity": found}), flush=True)


def launch(folder: Path, sharp: float, *settings) -> list[dict]:
    """What :func:`fit` prints with a strength, which is compiled in."""
    from dpsvi.kernels.collapsed import SHARP

    given = ", ".join(map(repr, (sharp, *settings)))
    code = "from pathlib import Path; import experiments.sharpness as s; "
    printed = own_process.run(f"{code}s.fit(Path({str(folder)!r}), {given})", sharp != SHARP)
    return [json.loads(line) for line in printed.splitlines()]


def table(rows: list[dict]) -> str:
    """A line for each corpus and model: perplexity with strength 0, and percent more than that."""
    strengths = sorted({row["sharp"] for row in rows})
    means = {
        (row["corpus"], row["model"], row["sharp"]): sum(row["perplexity"]) / len(row["perplexity"])
        for row in rows
    }
    heads = ["corpus", "K", "tokens for each word and topic", "perplexity with 0"]
    lines = [f"| {' | '.join(heads + [f'{sharp:g}, %' for sharp in strengths[1:]])} |"]
    lines.append("|---|---|" + "---:|" * (len(strengths) + 1))
    more: dict[float, list[float]] = {sharp: [] for sharp in strengths[1:]}
    for row in (row for row in rows if row["sharp"] == strengths[0]):
        cell = row["corpus"], row["model"]
        for sharp, found in more.items():
            found.append(100 * (means[*cell, sharp] / means[*cell, strengths[0]] - 1))
        tokens = "" if row["model"] == HDP else f"{row['tokens a word'] / int(row['model']):.2g}"
        lines.append(
            f"| {row['corpus']} | {row['model']} | {tokens} | {means[*cell, strengths[0]]:,.4g} | "
            f"{' | '.join(f'{found[-1]:+.1f}' for found in more.values())} |"
        )
    for name, of in (("mean", lambda found: sum(found) / len(found)), ("largest", max)):
        lines.append(f"| {name} | | | | {' | '.join(f'{of(x):+.1f}' for x in more.values())} |")
    return "\n".join(lines) + "\n"


def main(argv=None) -> None:
    """Fit all; write JSON and a table."""
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(prog="python -m experiments.sharpness", description=__doc__)
    parser.add_argument("corpora", nargs="+", type=Path)
    parser.add_argument("--sharp", default="0,2", help="strengths, the first is 0 [%(default)s]")
    parser.add_argument("--models", default="20,100,400,hdp", help="K of LDA, or hdp [%(default)s]")
    parser.add_argument("--passes", type=int, default=15)
    parser.add_argument("--documents", type=int, default=8000, help="at most [%(default)s]")
    parser.add_argument("--seeds", type=int, default=2, help="fits of each cell [%(default)s]")
    parser.add_argument("--out", type=Path, default=Path("experiments/results/sharpness"))
    args = parser.parse_args(argv)
    strengths = [float(sharp) for sharp in args.sharp.split(",")]
    if strengths[0] != 0 or len(strengths) < 2 or sorted(strengths) != strengths:
        parser.error(f"--sharp must begin with 0, go up and have another, got {args.sharp!r}")
    source = provenance(
        "experiments.sharpness", argv, ["numpy", "numba"],
        {"split": corpora.SPLIT_SEED, "fits": f"0 to {args.seeds - 1}"},
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        for path in args.corpora:
            name = path.name.removeprefix("docword.").split(".")[0]
            corpora.prepare(path, args.documents, Path(folder) / name)
        settings = args.models.split(","), args.seeds, args.passes
        rows = [row for sharp in strengths for row in launch(Path(folder), sharp, *settings)]
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "sharpness.json").write_text(json.dumps({**source, "rows": rows}, indent=1) + "\n")
    (args.out / "sharpness.md").write_text(
        f"# Fewer tokens for the minor topics of a document\n\n`{source['command']}`; "
        f"{source['date']}\n\nHeld-out perplexity with strength 0, mean of {args.seeds} seeds, "
        f"and by how many percent it is higher with others.\n\n{table(rows)}"
    )


if __name__ == "__main__":
    main()
