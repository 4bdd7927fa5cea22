"""Files of an earlier run, set aside until it is known whether a new one replaces them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

# What a run may leave in its folder, the logs of other ranks apart.
FILES = (
    "checkpoints", "config.json", "env.json", "exchanges.csv", "index.html", "metrics.jsonl",
    "model.json", "model.safetensors", "report.html", "run.log", "summary.json",
    "topic_map.json", "topic_words.json", "topics.csv", "vocab.txt",
)  # fmt: skip


def settle_unfinished(folder: Path) -> None:
    """Remove what runs were writing when they were killed; nobody else may be writing there.

    Files and checkpoints have a name that begins with a dot until they are whole.  A checkpoint
    that was to be replaced by another one of the same step, and was not yet, has its name again.
    """
    for path in folder.glob(".*"):
        # `dpsvi.files.io.atomic_path` adds a dot and eight letters, editors other endings.
        if path.stem.removeprefix(".") in FILES and len(path.suffix) == 9:
            _remove(path)
    for path in (folder / "checkpoints").glob(".*"):
        whole = path.with_name(path.stem.removeprefix("."))
        if path.suffix == ".old" and not whole.exists():
            os.replace(path, whole)
        else:
            _remove(path)


class SetAside:
    """A subfolder of a run folder for what may come back.

    Parameters
    ----------
    folder : Path
        The run folder.
    """

    def __init__(self, folder: Path):
        self.folder, self.path = folder, folder / ".replaced"
        self._taking = folder / ".replacing"  # what is there was not all set aside yet

    def __bool__(self):
        """Whether anything is set aside."""
        return self.path.exists()

    def take(self) -> None:
        """Set aside what is there: all of it, or nothing where that fails."""
        old = [name for name in FILES if (self.folder / name).exists()]
        if not old:
            return
        self._taking.mkdir()
        try:
            for name in old:
                os.replace(self.folder / name, self._taking / name)
            os.replace(self._taking, self.path)
        except BaseException:
            self.undo()
            raise

    def undo(self) -> None:
        """Bring back what was not all set aside: no other run had begun."""
        if self._taking.exists():
            for path in self._taking.iterdir():
                os.replace(path, self.folder / path.name)
            self._taking.rmdir()

    def put_back(self) -> None:
        """Remove what a run has left since, and bring back what was there before."""
        for name in FILES:
            _remove(self.folder / name)
            if (self.path / name).exists():
                os.replace(self.path / name, self.folder / name)
        self.drop()

    def drop(self) -> None:
        """Remove what was set aside: it was replaced."""
        shutil.rmtree(self.path, ignore_errors=True)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
