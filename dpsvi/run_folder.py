"""The folder a run leaves behind: settings, environment, metrics, log, topics, model, page."""

from __future__ import annotations

import csv
import io as text_io
import json
import logging
import os
import platform
from pathlib import Path

from dpsvi import __version__
from dpsvi.environment import hardware, versions
from dpsvi.io import write_json, write_text

PACKAGES = ("numpy", "numba", "scipy", "scikit-learn", "safetensors")


class RunFolder:
    """Files of one run, under `path`, which is created.

    Parameters
    ----------
    path : path
    overwrite : bool
        Accept a folder that holds a model already.

    Raises
    ------
    FileExistsError
        The folder holds a model and `overwrite` is false.
    OSError
        The folder cannot be made or written; found here, before any training.
    """

    def __init__(self, path, overwrite: bool = False):
        self.path = Path(path)
        self.path.mkdir(parents=True, exist_ok=True)
        if (self.path / "model.json").exists() and not overwrite:
            raise FileExistsError(f"{self.path}: holds a model already; --overwrite replaces it")
        if not os.access(self.path, os.W_OK):
            raise PermissionError(f"{self.path}: cannot be written")

    def __enter__(self):
        self._metrics = open(self.path / "metrics.jsonl", "w", encoding="utf-8")
        self._log = logging.FileHandler(self.path / "run.log", mode="w", encoding="utf-8")
        self._log.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
        logging.getLogger("dpsvi").addHandler(self._log)
        return self

    def __exit__(self, *error):
        logging.getLogger("dpsvi").removeHandler(self._log)
        self._log.close()
        self._metrics.close()

    def write_settings(self, config: dict, seed: int, threads: int) -> None:
        """Write config.json and env.json."""
        write_json(self.path / "config.json", config)
        machine = hardware()
        write_json(
            self.path / "env.json",
            {
                "version": __version__, "python": platform.python_version(),
                "host": platform.node(), "ranks": 1, "threads": threads, "seed": seed,
                "cores": machine["cores"], "hardware": machine, "versions": versions(PACKAGES),
            },
        )  # fmt: skip

    def metric(self, step, docs, seconds, metric, value, split) -> None:
        """Append one line to metrics.jsonl; readers see it at once."""
        line = {
            "step": int(step), "docs": int(docs), "seconds": round(float(seconds), 6),
            "metric": metric, "value": float(value), "split": split, "rank": 0,
        }  # fmt: skip
        self._metrics.write(json.dumps(line) + "\n")
        self._metrics.flush()

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

    def write_vocabulary(self, words) -> None:
        """Write vocab.txt, one word a line; None removes that of a run before this one."""
        if words is None:
            (self.path / "vocab.txt").unlink(missing_ok=True)
            return
        write_text(self.path / "vocab.txt", "".join(f"{word}\n" for word in words))
