"""A measurement with the dpsvi of another revision and with this one's: pairs of fits, in turn."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from experiments.digests import speed
from experiments.digests.sides import ROOT, worktree
from experiments.provenance import described, git_revision


def measure(
    revision: str, names: Iterable[str], seconds: Callable[[Path, str], float], n_pairs: int
) -> dict:
    """Seconds of fits on both sides.

    Parameters
    ----------
    revision : str
        Where the other dpsvi comes from; the experiments are those of this checkout on both sides.
    names : iterable of str
        What is fitted.
    seconds : callable(folder, name) -> float
        Makes a fit by ``python -m``, started in that folder.
    n_pairs : int, >= 1
        Of each fit, after one of each side that compiles.

    Returns
    -------
    dict
        ``there``, the other revision; ``seconds``, pairs there and here by name; ``speed``, see
        :func:`experiments.digests.speed.ratio`.

    Raises
    ------
    subprocess.CalledProcessError
        There is no such revision.
    RuntimeError
        A fit failed; what it said.
    """
    with (
        tempfile.TemporaryDirectory() as folder,
        worktree(revision, Path(folder) / "tree") as tree,
    ):
        there = Path(folder).resolve() / "there"
        there.mkdir()
        (there / "dpsvi").symlink_to(tree / "dpsvi")
        (there / "experiments").symlink_to(ROOT / "experiments")
        for side in (there, ROOT):
            _check(side)
        pairs = {
            name: speed.pairs(name, partial(seconds, there), partial(seconds, ROOT), n_pairs)
            for name in names
        }
        ratios = {name: speed.ratio(found) for name, found in pairs.items()}
        return {"there": git_revision(tree), "seconds": pairs, "speed": ratios}


def write(stem: Path, source: dict, found: dict) -> None:
    """Write what :func:`measure` found, as JSON and as a table; print the table."""
    revision = found["there"]["revision"][:7]
    stem = stem.with_name(f"{stem.name}-against-{revision}")
    stem.with_suffix(".json").write_text(json.dumps({**source, **found}, indent=1) + "\n")
    table = speed.table(found["speed"])
    lines = [f"# The speed of this revision over that of {revision}", "", described(source), ""]
    stem.with_suffix(".md").write_text("\n".join([*lines, table]) + "\n")
    print(table)


def _check(folder: Path) -> None:
    """Raise RuntimeError unless Python finds in a folder the dpsvi that lies there."""
    told = subprocess.run(
        [sys.executable, "-c", "import dpsvi; print(dpsvi.__file__)"], cwd=folder, check=True,
        capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip
    if not Path(told).is_relative_to(folder):
        raise RuntimeError(f"dpsvi was to come from {folder}, it is {told}")
