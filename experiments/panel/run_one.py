"""One run, alone in a process: ``python -m experiments.panel.run_one SETTINGS DATA RESULT``.

Memory, threads and compiled code of one entrant can then not touch the next one.
"""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from experiments.panel import cells, corpora, libraries
from experiments.panel.recorder import Recorder
from experiments.panel.settings import Settings

EVALUATION_SEED = 20_100
_ROOT = Path(__file__).resolve().parents[2]
_THREAD_VARIABLES = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS",
)  # fmt: skip


def launch(settings: Settings, parts: Path, folder: Path, module: str = __name__) -> dict:
    """Do one run in a fresh process and return its record, see :func:`run`.

    Parameters
    ----------
    settings : Settings
    parts : Path
        Folder of the corpus's parts.
    folder : Path
        For the files of the run and, unless ``NUMBA_CACHE_DIR`` names another place, for compiled
        code: what an earlier revision left is then not met.
    module : str
        What the process is: it calls :func:`main`.

    Raises
    ------
    RuntimeError
        The process failed or hung; carries the end of what it wrote.
    """
    files = {name: folder / f"run.{name}" for name in ("settings", "result", "log")}
    files["settings"].write_text(json.dumps(dataclasses.asdict(settings)))
    files["result"].unlink(missing_ok=True)
    threads = dict.fromkeys(_THREAD_VARIABLES, str(settings.threads))
    with files["log"].open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", module, files["settings"], parts, files["result"]],
            cwd=_ROOT,
            env={"NUMBA_CACHE_DIR": str(folder / "numba"), **os.environ, **threads},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            process.wait(600 + 10 * settings.seconds)
        except subprocess.TimeoutExpired:
            pass  # no result, which is reported below
        finally:
            _end_group(process)
    if not files["result"].is_file():
        tail = "\n".join(files["log"].read_text().splitlines()[-20:])
        raise RuntimeError(f"{settings} gave no result; it last wrote:\n{tail}")
    return json.loads(files["result"].read_text())


def _end_group(process):
    """End what is left of the run: the process itself and workers it may have started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # all gone already, the usual case
    process.wait()


def run(settings: Settings, folder: Path) -> dict:
    """Train, then judge every copy of the topics.

    Returns
    -------
    dict
        ``settings``; training ``seconds`` and ``passes`` in all, ``cut``: whether time ended it
        before its passes; ``tokens_per_second``; ``priors`` at the end; ``unigram_perplexity``, of
        counting words; and ``points``: ``seconds``, ``passes`` and the held-out perplexities
        ``own``, with the model's own alpha, and ``fixed``, with alpha 0.1.
    """
    from dpsvi.evaluation.completion import completion_perplexity

    corpus, test = corpora.load(folder, "train"), corpora.load(folder, "test")
    marks = {*cells.PASSES, settings.passes}
    recorder = Recorder(settings.seconds, settings.passes, cells.SECONDS, marks)
    libraries.get(settings.library).train(corpus, settings, recorder)
    word_counts = np.bincount(corpus.index, corpus.value, minlength=corpus.n_features)
    points = []
    for snapshot in recorder.snapshots:
        probabilities = snapshot.topics.counts.astype(np.float64)
        probabilities /= probabilities.sum(axis=0)
        own, fixed = (
            completion_perplexity(
                probabilities, test, alpha, word_counts=word_counts, seed=EVALUATION_SEED,
                n_jobs=settings.threads,
            )
            for alpha in (snapshot.topics.alpha, cells.FIXED_ALPHA)
        )  # fmt: skip
        points.append(
            {
                "seconds": snapshot.seconds, "passes": snapshot.passes,
                "own": own.perplexity, "fixed": fixed.perplexity,
            }
        )  # fmt: skip
    return {
        "settings": dataclasses.asdict(settings),
        "seconds": snapshot.seconds,
        "passes": snapshot.passes,
        "cut": snapshot.passes < settings.passes - 1e-6,
        "tokens_per_second": snapshot.passes * corpus.n_tokens / snapshot.seconds,
        "priors": _described(snapshot.topics, settings.topics),
        "unigram_perplexity": own.unigram_perplexity,
        "points": points,
    }


def _described(topics, n_topics):
    alpha = np.broadcast_to(topics.alpha, n_topics)
    return {
        "alpha_sum": float(alpha.sum()),
        "alpha_low": float(alpha.min()),
        "alpha_high": float(alpha.max()),
        "eta": float(np.mean(topics.eta)),
    }


def main(settings: str, folder: str, result: str, run: Callable = run) -> None:
    """Do the run described by the file `settings` and write its record to `result`."""
    record = run(Settings(**json.loads(Path(settings).read_text())), Path(folder))
    whole = Path(result).with_suffix(".part")
    whole.write_text(json.dumps(record, allow_nan=False))
    whole.replace(result)


if __name__ == "__main__":
    main(*sys.argv[1:])
