"""The folder a run leaves behind: settings, environment, metrics, log, topics, model, page."""

from __future__ import annotations

import csv
import io as text_io
import json
import logging
import os
import platform
import shutil
from contextlib import contextmanager
from pathlib import Path

from dpsvi import __version__
from dpsvi.environment import hardware, versions
from dpsvi.io import write_json, write_text

log = logging.getLogger(__name__)

PACKAGES = ("numpy", "numba", "scipy", "scikit-learn", "safetensors")


@contextmanager
def log_to(folder, name: str, mode: str = "w"):
    """Write what the package logs into a file while the block runs."""
    handler = logging.FileHandler(Path(folder) / name, mode=mode, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    logging.getLogger("dpsvi").addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger("dpsvi").removeHandler(handler)
        handler.close()


def _step_of(line: str) -> float:
    try:
        return json.loads(line)["step"]
    except (ValueError, KeyError, TypeError):
        return float("inf")  # cut off by what ended the run


class RunFolder:
    """Files of one run, under `path`, which is created.

    Parameters
    ----------
    path : path
    overwrite : bool
        Accept a folder that holds a model already.
    resume : bool
        Go on with the files of an earlier run.

    Raises
    ------
    FileExistsError
        The folder holds a model and `overwrite` is false.
    OSError
        The folder cannot be made or written; found here, before any training.
    """

    def __init__(self, path, overwrite: bool = False, resume: bool = False):
        self.path, self.resume, self._full = Path(path), resume, False
        self.path.mkdir(parents=True, exist_ok=True)
        if (self.path / "model.json").exists() and not overwrite and not resume:
            raise FileExistsError(f"{self.path}: holds a model already; --overwrite replaces it")
        if not os.access(self.path, os.W_OK):
            raise PermissionError(f"{self.path}: cannot be written")

    def __enter__(self):
        mode = "a" if self.resume else "w"
        if self.resume:
            self._forget_after_checkpoint()
        else:
            self.drop_checkpoints()
        self._metrics = open(self.path / "metrics.jsonl", mode, encoding="utf-8")
        self._log = log_to(self.path, "run.log", mode)
        self._log.__enter__()
        return self

    def __exit__(self, *error):
        self._log.__exit__(*error)
        self._metrics.close()

    def drop_checkpoints(self) -> None:
        """Remove all checkpoints: there is a model, or a new fit begins."""
        shutil.rmtree(self.path / "checkpoints", ignore_errors=True)

    def _forget_after_checkpoint(self):
        """Drop the metrics of steps that will be made again."""
        from dpsvi.checkpoint import read_newest

        step = read_newest(self.path).meta["step"]
        path = self.path / "metrics.jsonl"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        kept = [line for line in lines if _step_of(line) <= step]
        write_text(path, "".join(line + "\n" for line in kept))

    def write_settings(self, config: dict, seed: int, threads: int, ranks: int = 1) -> None:
        """Write config.json and env.json."""
        write_json(self.path / "config.json", config)
        machine = hardware()
        write_json(
            self.path / "env.json",
            {
                "version": __version__, "python": platform.python_version(),
                "host": platform.node(), "ranks": ranks, "threads": threads, "seed": seed,
                "cores": machine["cores"], "hardware": machine, "versions": versions(PACKAGES),
            },
        )  # fmt: skip

    def metric(self, step, docs, seconds, metric, value, split) -> None:
        """Append one line to metrics.jsonl; readers see it at once.

        A disk that is full is reported once; the fit is worth more than its log.
        """
        line = {
            "step": int(step), "docs": int(docs), "seconds": round(float(seconds), 6),
            "metric": metric, "value": float(value), "split": split, "rank": 0,
        }  # fmt: skip
        try:
            self._metrics.write(json.dumps(line) + "\n")
            self._metrics.flush()
        except OSError as error:
            if not self._full:
                log.error("%s: cannot be written: %s", self.path / "metrics.jsonl", error)
            self._full = True

    def write_topics(self, components, words, weights) -> None:
        """Write topics.csv and topic_map.json.

        Parameters
        ----------
        components : array, (n_topics, n_words)
        words : list of list of str
            Top words of every topic.
        weights : array, (n_topics,)
            Share of the corpus tokens of every topic.
        """
        from dpsvi.report import topic_map

        table = text_io.StringIO()
        writer = csv.writer(table, lineterminator="\n")
        writer.writerow(["topic", "rank", "word", "probability", "weight"])
        for topic, top in enumerate(words):
            probabilities = components[topic] / components[topic].sum()
            order = (-probabilities).argsort(kind="stable")
            for rank, word in enumerate(top):
                row = [topic, rank, word, f"{probabilities[order[rank]]:.6g}"]
                writer.writerow([*row, f"{weights[topic]:.6g}"])
        write_text(self.path / "topics.csv", table.getvalue())
        places = topic_map(components, weights)
        write_json(
            self.path / "topic_map.json",
            [{"topic": i, "x": float(x), "y": float(y)} for i, (x, y) in enumerate(places)],
        )

    def write_exchanges(self, report: dict, history: list) -> None:
        """Write exchanges.csv, and the histogram of staleness to metrics.jsonl.

        Parameters
        ----------
        report : dict
            What ``engine="mpi"`` left in ``exchanges_``.
        history : list of dict
        """
        table = text_io.StringIO()
        writer = csv.writer(table, lineterminator="\n")
        writer.writerow(report["exchanges"][0]._fields)
        writer.writerows(report["exchanges"])
        write_text(self.path / "exchanges.csv", table.getvalue())
        last = history[-1] if history else {"step": 0, "docs": 0, "seconds": 0.0}
        at = last["step"], last["docs"], last["seconds"]
        for staleness, count in report["staleness"].items():
            self.metric(*at, f"exchanges_with_staleness_{staleness}", count, "train")
        self.metric(*at, "exchange_bytes", report["bytes"], "train")
        self.metric(*at, "master_busy_seconds", report["busy"], "train")

    def write_vocabulary(self, words) -> None:
        """Write vocab.txt, one word a line; None removes that of a run before this one."""
        if words is None:
            (self.path / "vocab.txt").unlink(missing_ok=True)
            return
        write_text(self.path / "vocab.txt", "".join(f"{word}\n" for word in words))
