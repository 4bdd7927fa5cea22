"""What was run is kept, a line of JSON each, and is not run again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path


class Runs:
    """The results of an experiment on disk, under their settings.

    Parameters
    ----------
    path : Path
        Of the file.
    source : dict
        Where new results come from, of :func:`experiments.provenance.provenance`.
    redraw : bool
        Whether nothing is to be run.
    """

    def __init__(self, path: Path, source: dict, redraw: bool = False):
        self.path, self.source, self.redraw = path, source, redraw
        self._found: dict[str, dict] = {}
        self.sources: list[dict] = []  # of the results in the file, each command once
        if path.exists():
            for line in path.read_text("utf-8").splitlines():
                entry = json.loads(line)
                self._found[_key(entry["run"])] = entry["result"]
                self._note(entry["from"])

    def get(
        self, function: Callable[[dict], dict], settings: dict, possible: bool = True
    ) -> dict | None:
        """The result of ``function(settings)``, from the file if it is there.

        None where it is not, and nothing is to be run, or this is not `possible` here.
        """
        run = {"what": function.__name__, **settings}
        key = _key(run)
        if key not in self._found and possible and not self.redraw:
            result = function(settings)
            self._found[key] = result
            entry = {"run": run, "result": result, "from": self.source}
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")
            self._note(self.source)
            print(f"{run}: {result}", flush=True)
        return self._found.get(key)

    def kept(self) -> list[tuple[dict, dict]]:
        """Settings and result of all that is on record."""
        return [(json.loads(key), result) for key, result in self._found.items()]

    def _note(self, source: dict) -> None:
        if source not in self.sources:
            self.sources.append(source)


def _key(run: dict) -> str:
    return json.dumps(run, sort_keys=True)
