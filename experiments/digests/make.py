"""Make the fits of `fits.py` with the dpsvi that is first on the path; a script.

``make.py TREE FOLDER FILES`` writes their numbers; ``make.py TREE`` answers names of fits with the
seconds that they take, on every rank where MPI has started it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import dpsvi

# `-P` keeps the folder of a script from the path, and `experiments` may be another revision's.
sys.path.append(str(Path(__file__).parent))
from fits import FITS, N_ITEMS, TIMED, fitted


def numbers(name: str, folder: Path, files: Path) -> dict[str, np.ndarray]:
    """All arrays of a fit by their names.

    Parameters
    ----------
    name : str
        One of `FITS`.
    folder : path
        Where the model is saved, in a folder of that name.
    files : path
        Such a folder that `dpsvi.load` reads from, perhaps one that another revision has written.
    """
    from safetensors.numpy import load_file

    fit = FITS[name]
    data = fit.data(np.random.default_rng(0), N_ITEMS)
    model = fitted(fit, data, {})
    model.save(folder / name)
    found = {f"file {key}": a for key, a in load_file(folder / name / "model.safetensors").items()}
    for attribute in ("n_iter_", "n_batch_iter_", "bound_", "lower_bound_"):
        if hasattr(model, attribute):
            found[attribute] = getattr(model, attribute)
    found |= {f"fitted {key}": answer for key, answer in fit.answers(model, data).items()}
    loaded = dpsvi.load(files / name)
    found |= {f"loaded {key}": answer for key, answer in fit.answers(loaded, data).items()}
    return {key: np.atleast_1d(np.ascontiguousarray(value)) for key, value in found.items()}


def write_numbers(folder: Path, files: Path) -> None:
    """Write `numbers` of all fits into a folder, and what went wrong with the others."""
    from safetensors.numpy import save_file

    arrays, errors = {}, {}
    for name in FITS:
        try:
            found = numbers(name, folder, files)
        except Exception as error:  # of whatever kind: another revision may lack the parameter
            errors[name] = f"{type(error).__name__}: {error}"
        else:
            arrays |= {f"{name}/{key}": value for key, value in found.items()}
    save_file(arrays, folder / "arrays.safetensors")
    (folder / "errors.json").write_text(json.dumps(errors))


def serve() -> None:
    """For every line that names a fit of `TIMED`, print the seconds that it took."""
    made = {}
    for name in names():
        timed = TIMED[name]
        fit = FITS[timed.fit]
        if name not in made:
            made = {name: fit.data(np.random.default_rng(0), timed.n_items)}
        clock = time.perf_counter if timed.by_the_clock else time.process_time
        started = clock()
        fitted(fit, made[name], timed.params)
        answer(clock() - started)


def names() -> Iterator[str]:
    """The lines of stdin, which only rank 0 has, up to an empty one."""
    world = _world()
    while True:
        line = sys.stdin.readline() if not (world and world.rank) else None
        line = world.bcast(line) if world else line
        if not (name := line.rstrip("\n")):
            return
        yield name


def answer(seconds: float) -> None:
    """Print it, once."""
    world = _world()
    if not (world and world.rank):
        print(seconds, flush=True)


def _world():
    """The ranks that MPI has started; None: it has started none."""
    if not {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"} & os.environ.keys():
        return None
    from mpi4py import MPI

    return MPI.COMM_WORLD


if __name__ == "__main__":
    root, *folders = map(Path, sys.argv[1:])
    if not Path(dpsvi.__file__).is_relative_to(root):
        sys.exit(f"dpsvi was to come from {root}, it is {dpsvi.__file__}")
    if folders:
        write_numbers(*folders)
    else:
        serve()
