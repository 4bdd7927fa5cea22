"""``python -m experiments.digests``: whether two revisions compute the same numbers.

Alone it writes the digests of the fits of `experiments.digests.fits`, which it makes twice and
which must be equal.  With ``--against`` it makes the same fits with another revision and compares
all arrays; status 1 says that one is missing or differs by more than 1e-5.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from experiments.digests import compare, speed
from experiments.digests.fits import FITS, TIMED
from experiments.digests.sides import ROOT, Numbers, Side, worktree
from experiments.provenance import git_revision, provenance


def main(argv=None) -> int:
    """Write digests, or compare with another revision."""
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(prog="python -m experiments.digests", description=__doc__)
    parser.add_argument("--against", metavar="REVISION", help="compare with this revision")
    parser.add_argument("--speed", action="store_true", help="with --against: time fits, too")
    parser.add_argument("--out", type=Path, default=Path("experiments/results/digests"))
    args = parser.parse_args(argv)
    if args.speed and not args.against:
        parser.error("--speed needs --against")
    source = provenance(
        "experiments.digests", argv, ["numpy", "numba", "scipy", "scikit-learn"],
        {"data": 0, "fit": 0},
    )  # fmt: skip
    if source["git"] is None:
        parser.error("this is no checkout of a revision")
    name = _short(source["git"])
    with tempfile.TemporaryDirectory() as folder:
        if args.against:
            found, status = _against(args.against, args.speed, Path(folder))
            name = f"{name}-against-{_short(found['there'])}"
        else:
            found, status = _alone(Path(folder))
    if found:
        args.out.mkdir(parents=True, exist_ok=True)
        path = args.out / f"{name}.json"
        path.write_text(json.dumps({**source, **found}, indent=1) + "\n")
        print(path)
    return status


def _short(git: dict) -> str:
    return git["revision"][:7] + "-modified" * git["modified"]


def _settled(side: Side, files: Path | None = None) -> Numbers:
    """The numbers of a second process.

    The first one compiles.  Code that was compiled in the process and code that was read from
    numba's cache round the last bit differently in places.
    """
    side.numbers()
    return side.numbers(files)


def _alone(folder: Path) -> tuple[dict, int]:
    """Digests of this checkout; nothing if they differ from run to run."""
    side = Side(ROOT, folder / "here")
    first, second = _settled(side), side.numbers()
    rows = compare.compare(FITS, first, second)
    print(compare.table(rows))
    if any(row.missing or row.where for row in rows):
        print("a fit fails or two runs of it differ, so nothing is written", file=sys.stderr)
        return {}, 1
    return {"fits": {key: compare.digest(a) for key, a in sorted(second.arrays.items())}}, 0


def _against(revision: str, timed: bool, folder: Path) -> tuple[dict, int]:
    """Verdicts and speeds, this checkout against a revision."""
    with worktree(revision, folder / "tree") as tree:
        there, here = Side(tree, folder / "there"), Side(ROOT, folder / "here")
        old = _settled(there)
        rows = compare.compare(FITS, old, _settled(here, there.models))
        print(compare.table(rows), flush=True)
        found = {"there": git_revision(tree), "fits": {row.fit: row.verdict for row in rows}}
        if timed:
            made = {row.fit for row in rows if not row.missing}
            both = [name for name, timed in TIMED.items() if timed.fit in made]
            found["seconds"] = _seconds(both, there, here)
            ratios = {key: speed.ratio(value) for key, value in found["seconds"].items()}
            found["speed"] = ratios
            print(speed.table(ratios))
    return found, 0 if all(row.passes for row in rows) else 1


def _seconds(names: list[str], there: Side, here: Side) -> dict[str, list]:
    """Pairs of every fit, a few by each of several processes of a side.

    Where a process finds its memory decides a few per cent of the speed of all its fits, so pairs
    of one process alone would seem to be more exact than they are.
    """
    found = {name: [] for name in names}
    for ranks in dict.fromkeys(TIMED[name].ranks for name in names):
        for _ in range(speed.PROCESSES):
            with ExitStack() as stack:
                clocks = [stack.enter_context(side.clock(ranks)) for side in (there, here)]
                for name in (name for name in names if TIMED[name].ranks == ranks):
                    found[name] += speed.pairs(name, *clocks, speed.PAIRS // speed.PROCESSES)
    return found


if __name__ == "__main__":
    sys.exit(main())
