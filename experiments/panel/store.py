"""The records of all runs done: one file for each corpus, replaced whole by each new record."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterable
from pathlib import Path

from experiments.panel import libraries
from experiments.panel.settings import Settings


class Store:
    """Records under ``folder/CORPUS.jsonl``, one a line.

    Parameters
    ----------
    folder : Path
        Need not exist yet.

    Raises
    ------
    ValueError
        A line is no record: which one.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self._records: dict[str, dict[str, dict]] = {}
        for path in sorted(folder.glob("*.jsonl")):
            self._records[path.stem] = _read(path)

    def all(self) -> list[dict]:
        """Return every record, by corpus."""
        return [record for records in self._records.values() for record in records.values()]

    def get(self, settings: Settings) -> dict | None:
        """Return the record of this run, whatever its limits were."""
        return self._records.get(settings.corpus, {}).get(_key(settings))

    def has(self, settings: Settings) -> bool:
        """Whether there is nothing to be learned from this run: no limit of it ended the other."""
        record = self.get(settings)
        if record is None:
            return False
        limits = record["settings"]
        if record["cut"]:
            return limits["seconds"] >= settings.seconds
        return limits["passes"] >= settings.passes

    def hopeless(self, settings: Settings) -> bool:
        """Whether other fits show that this one, of which only the end is seen, will be too late.

        One with another seed or fewer passes that was cut, or the longest of them, if its time a
        pass is twice too long: beginnings cost more.
        """
        if libraries.is_watched(settings.library):
            return False
        fewer = []
        for record in self._records.get(settings.corpus, {}).values():
            other = Settings(**record["settings"])
            alike = dataclasses.replace(other, passes=settings.passes, seed=settings.seed)
            if alike.key() != settings.key() or other.key() == settings.key():
                continue
            if other.passes <= settings.passes:
                fewer.append(record)
        if any(r["cut"] and r["settings"]["seconds"] >= settings.seconds for r in fewer):
            return True
        longest = max(fewer, key=lambda record: record["passes"], default=None)
        if longest is None:
            return False
        return longest["seconds"] / longest["passes"] * settings.passes > 2 * settings.seconds

    def forget(self, runs: Iterable[Settings]) -> None:
        """Leave these runs out of the next file that is written."""
        for settings in runs:
            self._records.get(settings.corpus, {}).pop(_key(settings), None)

    def add(self, record: dict) -> None:
        """Keep a record, in place of an earlier one of the same run.

        Those of another file of the same name go.
        """
        settings = Settings(**record["settings"])
        records = self._records[settings.corpus] = {
            key: other
            for key, other in self._records.get(settings.corpus, {}).items()
            if other["settings"]["bytes"] == settings.bytes
        }
        records[_key(settings)] = record
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{settings.corpus}.jsonl"
        part = path.with_suffix(".part")
        part.write_text("".join(json.dumps(r, allow_nan=False) + "\n" for r in records.values()))
        os.replace(part, path)


def _key(settings):
    """Name of a run; the passes of a peer that is watched are a limit, as seconds are."""
    if libraries.is_watched(settings.library):
        settings = dataclasses.replace(settings, passes=0)
    return settings.key()


def _read(path):
    records = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        try:
            record = json.loads(line)
            records[_key(Settings(**record["settings"]))] = record
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path}:{number}: not a record of a run: {error}") from None
    return records
