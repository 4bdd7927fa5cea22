"""One run, alone in a process: ``python -m experiments.peers.run_one SETTINGS DATA RESULT``.

Memory, threads and compiled code of one competitor can then not touch the next one.
"""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path

import numpy as np

from experiments.peers import libraries, problem
from experiments.peers.problem import Settings
from experiments.peers.recorder import Recorder

EVALUATION_SEED = 20_100
_ROOT = Path(__file__).resolve().parents[2]
_PATIENCE = 3600  # seconds; a run that takes longer hangs
_THREAD_VARIABLES = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS",
)  # fmt: skip


def launch(settings: Settings, folder: Path) -> dict:
    """Do one run in a fresh process and return its record, see :func:`run`.

    Parameters
    ----------
    settings : Settings
    folder : Path
        Holds the parts of the corpus; numba's cache is kept there too, so that a command finds
        none that an earlier one left: the first run of each competitor compiles.

    Raises
    ------
    RuntimeError
        The process failed or took more than an hour; carries the end of what it wrote.
    """
    files = {name: folder / f"run.{name}" for name in ("settings", "result", "log")}
    files["settings"].write_text(json.dumps(dataclasses.asdict(settings)))
    files["result"].unlink(missing_ok=True)
    threads = dict.fromkeys(_THREAD_VARIABLES, str(settings.threads))
    with files["log"].open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", __name__, files["settings"], folder, files["result"]],
            cwd=_ROOT,
            env={**os.environ, **threads, "NUMBA_CACHE_DIR": str(folder / "numba")},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            pass  # no result, which is reported below
        finally:
            _end_group(process)
    if not files["result"].is_file():
        tail = "\n".join(files["log"].read_text().splitlines()[-20:])
        raise RuntimeError(f"{settings.competitor} gave no result; it last wrote:\n{tail}")
    return json.loads(files["result"].read_text())


def _end_group(process):
    """End what is left of the run: the process itself and workers it may have started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # all gone already, the usual case
    process.wait()


def run(settings: Settings, folder: Path) -> dict:
    """Train, then judge every snapshot.

    Returns
    -------
    dict
        The settings; ``convert_seconds`` (the corpus into the library's own form),
        ``compile_seconds``, ``evaluate_seconds``; ``unigram_perplexity``, the baseline of word
        frequencies; and ``points``, one for each snapshot: training
        ``seconds``, ``passes``, ``tokens`` visited, held-out ``perplexity`` and
        ``log_likelihood_per_token`` (nats).
    """
    from dpsvi.evaluate import completion_perplexity

    corpus, held_out = problem.load(folder, "train"), problem.load(folder, settings.held_out)
    recorder = Recorder(settings.seconds)
    libraries.get(settings.library).train(corpus, settings, recorder)
    started = time.perf_counter()
    word_counts = np.bincount(corpus.index, corpus.value, minlength=corpus.n_features)
    points = []
    for snapshot in recorder.snapshots:
        probabilities = snapshot.parameters.astype(np.float64)
        probabilities /= probabilities.sum(axis=0)
        found = completion_perplexity(
            probabilities,
            held_out,
            settings.alpha,
            word_counts=word_counts,
            seed=EVALUATION_SEED,
            n_jobs=settings.threads,
        )
        points.append(
            {
                "seconds": snapshot.seconds,
                "passes": snapshot.passes,
                "tokens": snapshot.passes * corpus.n_tokens,
                "perplexity": found.perplexity,
                "log_likelihood_per_token": found.log_likelihood,
            }
        )
    return {
        **dataclasses.asdict(settings),
        "convert_seconds": recorder.stages.get("convert", 0.0),
        "compile_seconds": recorder.stages.get("compile", 0.0),
        "evaluate_seconds": time.perf_counter() - started,
        "unigram_perplexity": found.unigram_perplexity,
        "points": points,
    }


def main(settings: str, folder: str, result: str) -> None:
    """Do the run described by the file `settings` and write its record to `result`."""
    record = run(Settings(**json.loads(Path(settings).read_text())), Path(folder))
    whole = Path(result).with_suffix(".part")
    whole.write_text(json.dumps(record))
    whole.replace(result)


if __name__ == "__main__":
    status = 1
    try:
        main(*sys.argv[1:])
        status = 0
    except Exception:
        traceback.print_exc()
    sys.stderr.flush()
    # A normal exit would wait, for ever, for the queues of gensim that were cut off half-way.
    os._exit(status)
