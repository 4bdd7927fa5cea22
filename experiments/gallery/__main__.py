"""``python -m experiments.gallery``: draw every page into one folder."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from experiments import gallery
from experiments.provenance import described, provenance


def main(argv=None) -> None:
    """Write a PNG for each page and README.md, which shows them all."""
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(prog="python -m experiments.gallery", description=__doc__)
    parser.add_argument("--small", action="store_true", help="as in the tests")
    parser.add_argument("--out", type=Path, default=Path("experiments/results/gallery"))
    args = parser.parse_args(argv)
    import matplotlib

    matplotlib.use("Agg")
    args.out.mkdir(parents=True, exist_ok=True)
    source = provenance("experiments.gallery", argv, ["numpy", "numba", "scikit-learn"], {"fit": 0})
    lines = ["# Gallery", "", described(source), ""]
    for name in gallery.names():
        page = gallery.get(name)
        figure, answer = page.picture(args.small)
        figure.savefig(args.out / f"{name}.png", dpi=130)
        question, _, text = page.__doc__.partition("\n")
        numbers = ", ".join(f"{key} {value:.4g}" for key, value in answer.items())
        lines += [f"## {question}", "", text.strip(), "", f"{numbers}.", ""]
        lines += [f"![{question}]({name}.png)", "", f"`experiments/gallery/{name}.py`", ""]
        print(f"{name}: {numbers}", flush=True)
    (args.out / "README.md").write_text("\n".join(lines))


if __name__ == "__main__":
    main()
