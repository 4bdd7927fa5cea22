"""The folder a run leaves behind: settings, environment, metrics, log, topics, model, page."""

from __future__ import annotations

import csv
import io
import json
import logging
import os
import shutil
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from dpsvi.commands.inputs import reading_input
from dpsvi.errors import DataFormatError
from dpsvi.files.environment import environment, now
from dpsvi.files.io import atomic_path, write_json, write_text
from dpsvi.files.lock import FolderLock
from dpsvi.files.set_aside import SetAside, settle_unfinished
from dpsvi.training.checkpoint import newest_name, read_newest

log = logging.getLogger(__name__)


@contextmanager
def log_to(folder, name: str, mode: str = "w"):
    """Write what the package logs into a file while the block runs; the folder is made."""
    Path(folder).mkdir(parents=True, exist_ok=True)
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
    """Files of one run, under `path`: a context in which they are written.

    Nobody else may write there meanwhile.  What an earlier run left is set aside on entry.  It
    comes back if the block fails before there is a model or a checkpoint: bad data replace nothing.
    Where the process was killed before that, the next one that looks at the folder brings it back.
    A resume that fails before its first checkpoint leaves settings and metrics as they were: the
    next one finds none that were refused.

    Parameters
    ----------
    path : path
        Made on entry.
    overwrite : bool
        Accept a folder that holds a model or checkpoints already.
    resume : bool
        Go on with the files of an earlier run.

    Raises
    ------
    FileExistsError
        The folder holds a model or checkpoints, and `overwrite` is false; or another process is
        writing it.  Both are looked at here, and again on entry: data may be read in between.
    OSError
        The folder cannot be made or written; found here, before any training.
    DataFormatError
        It is to be gone on with, and holds nothing to go on from.
    """

    def __init__(self, path, overwrite: bool = False, resume: bool = False):
        self.path, self.overwrite, self.resume = Path(path), overwrite, resume
        self._full, self._made = False, False
        self._before, self._lock = SetAside(self.path), FolderLock(self.path)
        self._as_it_was: dict[Path, bytes] = {}
        places = (self.path, *self.path.absolute().parents)
        there = next(place for place in places if place.exists())
        if not there.is_dir():
            refused = DataFormatError if resume else FileExistsError
            raise refused(f"{there}: is a file, a folder is needed")
        if not os.access(there, os.W_OK):
            raise PermissionError(f"{there}: cannot be written")
        with self._lock if self.path.exists() else nullcontext():
            self._refuse_or_settle()

    def _refuse_or_settle(self):
        if (self.path / "config.json").exists():
            # Without settings the checkpoints are of a Python program, which holds no lock.
            settle_unfinished(self.path)
        self._before.undo()
        if self._before:  # of a process that was killed
            self._settle(failed=True)
        if self.resume:
            self._refuse_without_checkpoint()
        elif not self.overwrite:
            self._refuse_what_is_there()

    def _refuse_without_checkpoint(self):
        if not (self.path / "config.json").exists():
            raise DataFormatError(f"{self.path}: is no run folder, it has no config.json")
        with reading_input(self.path / "checkpoints"):
            newest = self._newest()
        if newest is None:
            raise DataFormatError(
                f"{self.path}: holds no checkpoint; the fit was finished, or ended before the "
                "first one"
            )

    def _refuse_what_is_there(self):
        if self._newest() is not None:
            raise FileExistsError(
                f"{self.path}: holds checkpoints of a fit that was ended; "
                f"`dpsvi resume {self.path}` goes on with it, --overwrite begins again"
            )
        if (self.path / "model.json").exists():
            raise FileExistsError(f"{self.path}: holds a model already; --overwrite replaces it")

    def __enter__(self):
        self._made = not self.path.exists()
        self.path.mkdir(parents=True, exist_ok=True)
        self._lock.acquire()
        try:
            self._refuse_or_settle()
            self._begin()
        except BaseException:
            self._lock.release()
            raise
        return self

    def _begin(self):
        mode = "a" if self.resume else "w"
        if self.resume:
            paths = [self.path / name for name in ("config.json", "env.json", "metrics.jsonl")]
            self._as_it_was = {path: path.read_bytes() for path in paths if path.exists()}
            self._begun = self._newest()
            self._forget_after_checkpoint()
        else:
            self._before.take()
        try:
            self._metrics = open(self.path / "metrics.jsonl", mode, encoding="utf-8")
            self._log = log_to(self.path, "run.log", mode)
            self._log.__enter__()
        except BaseException:
            if self._before:
                self._before.put_back()
            raise

    def __exit__(self, *error):
        try:
            self._log.__exit__(*error)
            self._metrics.close()
            if error[0] is not None and issubclass(error[0], Exception):
                self._put_back_settings()
            self._settle(failed=error[0] is not None)
        finally:
            self._lock.release()
        if self._made:
            with suppress(OSError):  # there are files, be they logs of other ranks
                self.path.rmdir()

    def _newest(self):
        """Name of the newest checkpoint, or None."""
        return newest_name(self.path / "checkpoints")

    def _settle(self, failed: bool):
        """Keep the new run or the one before; of two without a model or checkpoint, the first."""
        if not failed or self._newest() is not None or (self.path / "model.json").exists():
            self._before.drop()
        elif self._before or not (self.path / "metrics.jsonl").stat().st_size:
            self._before.put_back()

    def _put_back_settings(self):
        if self.resume and self._newest() == self._begun:
            for path, content in self._as_it_was.items():
                with atomic_path(path) as temporary:
                    temporary.write_bytes(content)

    def drop_checkpoints(self) -> None:
        """Remove all checkpoints: there is a model."""
        shutil.rmtree(self.path / "checkpoints", ignore_errors=True)

    def _forget_after_checkpoint(self):
        """Drop the metrics of steps that will be made again."""
        step = read_newest(self.path).meta["step"]
        path = self.path / "metrics.jsonl"
        lines = path.read_text("utf-8", "replace").splitlines() if path.exists() else []
        kept = [line for line in lines if _step_of(line) <= step]
        write_text(path, "".join(line + "\n" for line in kept))

    def write_settings(
        self, config: dict, items: str, seed: int, threads: int, ranks: int = 1
    ) -> None:
        """Write config.json and env.json; `items` is what the data are made of, in the plural."""
        write_json(self.path / "config.json", config)
        facts = {
            "date": now(), "items": items, "ranks": ranks, "threads": threads, "seed": seed,
        }  # fmt: skip
        write_json(self.path / "env.json", facts | environment())

    def metric(self, step, items, seconds, metric, value, split) -> None:
        """Append one line to metrics.jsonl; readers see it at once.

        A disk that is full is reported once; the fit is worth more than its log.
        """
        line = {
            "step": int(step), "items": int(items), "seconds": round(float(seconds), 6),
            "metric": metric, "value": float(value), "split": split, "rank": 0,
        }  # fmt: skip
        try:
            self._metrics.write(json.dumps(line) + "\n")
            self._metrics.flush()
        except OSError as error:
            if not self._full:
                log.error("%s: cannot be written: %s", self.path / "metrics.jsonl", error)
            self._full = True

    def write_exchanges(self, report: dict, history: list) -> None:
        """Write exchanges.csv, and the histogram of staleness to metrics.jsonl.

        Parameters
        ----------
        report : dict
            What ``engine="mpi"`` left in ``exchanges_``.
        history : list of dict
        """
        table = io.StringIO()
        writer = csv.writer(table, lineterminator="\n")
        writer.writerow(report["exchanges"][0]._fields)
        writer.writerows(report["exchanges"])
        write_text(self.path / "exchanges.csv", table.getvalue())
        last = history[-1] if history else {"step": 0, "items": 0, "seconds": 0.0}
        at = last["step"], last["items"], last["seconds"]
        for staleness, count in report["staleness"].items():
            self.metric(*at, f"exchanges_with_staleness_{staleness}", count, "train")
        self.metric(*at, "exchange_bytes", report["bytes"], "train")
        self.metric(*at, "master_busy_seconds", report["busy"], "train")
