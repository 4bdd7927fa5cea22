"""``dpsvi warmup [MODEL ...]``: compile the code of models once, so that no fit has to.

Each model is fitted to a few rows of zeros and ones, which are points, counts, ratings and symbols
alike, and asked about them.  Which arrays it takes its ``fit`` says, and whether they are a corpus
``FITTED_TO`` (:mod:`dpsvi.models`); what else it compiles, its estimator (``_warmup``).
"""

from __future__ import annotations

import argparse
import inspect
import logging
import tempfile
import time
import warnings
from contextlib import contextmanager
from pathlib import Path

from dpsvi import engines, models
from dpsvi.commands.fit_arrays import arguments_of
from dpsvi.commands.outputs import emit
from dpsvi.commands.predict import METHODS
from dpsvi.errors import DpsviError

N_ROWS = 60


def add_arguments(parser) -> None:
    """Arguments of the command."""
    parser.add_argument(
        "models", nargs="*", type=_model, metavar="MODEL",
        help=f"of {', '.join(models.names())} [all]",
    )  # fmt: skip


def _model(name: str) -> str:
    if name not in models.names():
        raise argparse.ArgumentTypeError(f"must be of {models.names()}, got {name!r}")
    return name


def run(args) -> None:
    """Compile what is not compiled yet, and say how long it took and where the code lies."""
    from dpsvi.kernels import code_cache

    folder = code_cache.folder()
    done = []
    if folder is not None:
        for name in dict.fromkeys(args.models or models.names()):
            done.append({"model": name, **_compile(name)})
            if not args.json:
                print(_line(**done[-1]), flush=True)
    emit(args, {"folder": folder and str(folder), "models": done}, _where(folder))


def _line(model: str, compiled: int, seconds: float) -> str:
    if compiled:
        return f"{model}: compiled in {seconds:.1f} s"
    return f"{model}: was compiled before, {seconds:.1f} s"


def _where(folder) -> str:
    from numba import config

    from dpsvi.kernels.code_cache import NOWHERE

    if folder is None:
        return f"nothing was compiled, for it cannot be kept: {NOWHERE}"
    text = f"the compiled code is under {folder}"
    if config.CACHE_DIR and Path(config.CACHE_DIR) != folder:
        text += f", for NUMBA_CACHE_DIR, {config.CACHE_DIR}, cannot be written"
    return text


def _compile(name: str) -> dict:
    """How many functions were compiled for a model, and the seconds that all of it took."""
    from numba.core.event import install_recorder

    started = time.monotonic()
    with install_recorder("numba:compile") as recorder, _quiet():
        estimator = models.get(name)
        data = _data(name, estimator)
        for params in estimator._warmup:
            _fit_and_ask(name, estimator(**params), data)
        for engine in engines.names():
            if not engines.get(engine).collective:
                _fit_and_ask(name, estimator(engine=engine), data)
    ends = [event for _, event in recorder.buffer if event.is_end]
    return {"compiled": len(ends), "seconds": round(time.monotonic() - started, 3)}


@contextmanager
def _quiet():
    """What fits of a few made-up rows warn of says nothing about anybody's data."""
    logger = logging.getLogger("dpsvi")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def _fit_and_ask(name: str, estimator, data: dict) -> None:
    try:
        estimator.set_params(max_iter=2, validation_size=0.25, random_state=0).fit(**data)
        for method in (*METHODS, "transform", "score", "evaluate"):
            if hasattr(estimator, method):
                answer = getattr(estimator, method)
                answer(**arguments_of(answer, data))
    except (ValueError, TypeError) as error:
        raise DpsviError(f"{name}: {estimator}: refuses rows of zeros and ones: {error}") from error


def _data(name: str, estimator) -> dict:
    """Arguments of the model's `fit`."""
    import numpy as np

    rows = np.arange(N_ROWS)
    if models.declared(name)["FITTED_TO"] == "corpus":
        return {"X": _corpus(rows)}
    # As a fit from the command line reads them.
    data = {"X": (rows[:, None] // 2 % 2).astype(float), "groups": rows // 5}
    taken = inspect.signature(estimator.fit).parameters
    if "y" in taken and taken["y"].default is inspect.Parameter.empty:
        data["y"] = rows % 2
    data["lengths"] = np.full(N_ROWS // 5, 5)
    return {role: array for role, array in data.items() if role in taken}


def _corpus(rows):
    """A corpus that is read from files, since their readers are compiled, too."""
    from dpsvi.corpus import load_corpus

    pairs = [(row, word) for row in rows for word in (0, 1 + row % 3)]
    triples = [f"{row + 1} {word + 1} 1" for row, word in pairs]
    documents = [f"2 0:1 {1 + row % 3}:1" for row in rows]
    with tempfile.TemporaryDirectory() as folder:
        uci, ldac = Path(folder) / "docword.warmup.txt", Path(folder) / "warmup.ldac"
        uci.write_text("\n".join([str(len(rows)), "4", str(len(pairs)), *triples]) + "\n")
        ldac.write_text("\n".join(documents) + "\n")
        load_corpus(ldac, cache=False)
        return load_corpus(uci, cache=False)
