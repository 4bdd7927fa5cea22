"""Two sides of a comparison: trees of files, each with processes and compiled code of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from experiments import mpiexec

ROOT = Path(__file__).resolve().parents[2]
MAKE = Path(__file__).with_name("make.py")
ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}


class Numbers(NamedTuple):
    """What the fits of one side came to.

    Parameters
    ----------
    arrays : dict of str to array
        Named ``fit/array``.
    errors : dict of str to str
        Fits that failed, and why.
    """

    arrays: dict[str, np.ndarray]
    errors: dict[str, str]


class Side:
    """The fits of this checkout with the dpsvi of some tree.

    Parameters
    ----------
    tree : path
        Folder that holds ``dpsvi``.
    folder : path
        Made here; compiled code, models and numbers go there.
    """

    def __init__(self, tree: Path, folder: Path):
        self.tree, self.folder = Path(tree).resolve(), Path(folder)
        (self.folder / "compiled").mkdir(parents=True)

    def _command(self, *arguments, ranks: int = 0) -> dict:
        # -P: the folder of the script is no place to import from.
        command = [sys.executable, "-P", str(MAKE), str(self.tree), *map(str, arguments)]
        return {
            "args": [*mpiexec.launcher(ranks), *command],
            "env": os.environ | ONE_THREAD | mpiexec.ROOT_MAY
            | {"PYTHONPATH": str(self.tree), "NUMBA_CACHE_DIR": str(self.folder / "compiled")},
            "text": True,
        }  # fmt: skip

    def numbers(self, files: Path | None = None) -> Numbers:
        """Make all fits in a process of its own.

        Parameters
        ----------
        files : path or None
            A folder with the models that are to be loaded, those of another side; None: its own.

        Raises
        ------
        subprocess.CalledProcessError
        """
        from safetensors.numpy import load_file

        models = self.models
        models.mkdir(exist_ok=True)
        subprocess.run(**self._command(models, files or models), check=True)
        errors = json.loads((models / "errors.json").read_text())
        return Numbers(load_file(models / "arrays.safetensors"), errors)

    @property
    def models(self) -> Path:
        """The folder of its models."""
        return self.folder / "models"

    @contextmanager
    def clock(self, ranks: int = 0) -> Iterator:
        """A function of a fit's name that makes the fit and returns seconds.

        All fits are made by one process, or (`ranks`) by so many that MPI starts.
        """
        process = subprocess.Popen(
            **self._command(ranks=ranks), stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=1
        )

        def seconds(name: str) -> float:
            process.stdin.write(name + "\n")
            answer = process.stdout.readline()
            if not answer:
                raise RuntimeError(f"{name}: the process of {self.tree.name} ended, see above")
            return float(answer)

        with process:
            yield seconds
            # An empty line, as mpiexec does not say that its input is closed; perhaps to nobody.
            with suppress(BrokenPipeError):
                process.stdin.write("\n")
            with suppress(BrokenPipeError):
                process.stdin.close()


@contextmanager
def worktree(revision: str, folder: Path) -> Iterator[Path]:
    """A checkout of a revision, for as long as the block runs.

    Raises
    ------
    subprocess.CalledProcessError
        There is no such revision.
    """
    git = ["git", "-C", str(ROOT), "worktree"]
    subprocess.run([*git, "add", "--quiet", "--detach", str(folder), revision], check=True)
    try:
        yield folder
    finally:
        subprocess.run([*git, "remove", "--force", str(folder)], check=True)
