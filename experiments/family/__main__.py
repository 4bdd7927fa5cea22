"""``python -m experiments.family``: every model beside the best tools for it.

Writes the points as JSON, a table and a figure a model; medians over the repeats.
"""

from __future__ import annotations

import argparse
import importlib
import json
import pkgutil
import sys
import warnings
from pathlib import Path

import experiments.family as here
from experiments.family.table import plot, table
from experiments.provenance import described, provenance

NOT_MODELS = ("recorder", "table")
PACKAGES = (
    "numpy", "numba", "scikit-learn", "hmmlearn", "hpfrec", "poismf", "gensim", "tomotopy",
    "numpyro",
)  # fmt: skip


def names() -> list[str]:
    """Models that are compared."""
    found = (module.name for module in pkgutil.iter_modules(here.__path__))
    return sorted(n for n in found if n not in NOT_MODELS and not n.startswith("_"))


def main(argv=None) -> None:
    """Run the comparisons that were asked for."""
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(prog="python -m experiments.family", description=__doc__)
    parser.add_argument("--only", choices=names(), action="append", help="[all]")
    parser.add_argument("--corpus", help="bag of words for topic models and factorisation")
    parser.add_argument("--repeats", type=int, default=1, help="seeds [%(default)s]")
    parser.add_argument("--quick", action="store_true", help="small data, for a first look")
    parser.add_argument("--redraw", action="store_true", help="from the points that are kept")
    parser.add_argument("--out", type=Path, default=Path("experiments/results/family"))
    args = parser.parse_args(argv)
    args.out.mkdir(parents=True, exist_ok=True)
    warnings.filterwarnings("ignore", category=UserWarning)  # peers that did not converge
    warnings.filterwarnings("ignore", message=".*did not converge.*")
    for name in args.only or names():
        seeds = list(range(args.repeats))
        module = importlib.import_module(f"experiments.family.{name}")
        stem = args.out / name
        kept = stem.with_suffix(".json")
        if not args.redraw:
            source = provenance("experiments.family", argv, PACKAGES, {"data and fits": seeds})
            points = [
                {"seed": seed, **row}
                for seed in seeds
                for row in module.run(seed, args.quick, args.corpus)
            ]
            if not points:
                print(f"{name}: needs --corpus", file=sys.stderr)
                continue
            kept.write_text(json.dumps({**source, "points": points}, indent=1) + "\n")
        elif not kept.exists():
            continue
        found = json.loads(kept.read_text())
        title = module.__doc__.splitlines()[0].rstrip(".")
        text = table(found["points"], f"# {title}", described(found))
        stem.with_suffix(".md").write_text(text)
        plot(found["points"], title, stem.with_suffix(".png"))
        print(text)


if __name__ == "__main__":
    main()
