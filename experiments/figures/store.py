"""The file that keeps what came out of the runs.

A run is named by its settings, the costs of work and a hash of the code that makes it.  What is in
the file is not made again, so an interrupted figure goes on where it was, and anyone can draw from
the file alone.
"""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict
from pathlib import Path

from dpsvi.errors import DivergedError
from experiments.figures.runs import Run, parts, simulate

ROOT = Path(__file__).resolve().parents[2]
# What a run can execute: all that a simulated fit of LDA imports, and how it is made here.
EXECUTED = (
    *(f"dpsvi/{name}/**/*.py" for name in (
        "base", "cluster", "corpus", "datasets", "engines", "estimators", "evaluation",
        "families/topics", "files", "kernels", "learners", "models/lda", "strategies", "training",
    )),
    "dpsvi/*.py", "dpsvi/**/__init__.py", "dpsvi/expfam/dirichlet.py", "experiments/held_out.py",
    "experiments/figures/runs.py",
)  # fmt: skip


def executed() -> list[Path]:
    """The files that a run can execute."""
    return sorted({path for pattern in EXECUTED for path in ROOT.glob(pattern)})


def code_mark() -> str:
    """Hash of the names and contents of the files that a run can execute."""
    found = hashlib.sha256()
    for path in executed():
        found.update(f"{path.relative_to(ROOT).as_posix()}\n".encode())
        found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()[:16]


class Store:
    """Results of runs, one line of JSON each, appended as they come in.

    Parameters
    ----------
    path : path
    timing : dict
        What work costs.  Runs made with other costs are not comparable: they count as not made.
    code : str or None
        From :func:`code_mark`.  Runs of other code count as not made.  None: the code of the last
        run in the file, to draw what is there.
    """

    def __init__(self, path, timing: dict, code: str | None):
        self.path, self.results, self.timing = Path(path), {}, timing
        self._costs = hashlib.sha256(json.dumps(timing, sort_keys=True).encode()).hexdigest()[:16]
        entries = [entry for entry in self._read() if entry["timing"] == self._costs]
        self.code = code or (entries[-1]["code"] if entries else "")
        for entry in entries:
            if entry["code"] == self.code:
                self.results[Run(**entry["run"]).key] = entry["result"]

    def _read(self) -> list[dict]:
        entries = []
        for line in self.path.read_text("utf-8").splitlines() if self.path.exists() else []:
            try:
                entries.append(json.loads(line))
            except ValueError:
                continue  # killed while it was written
        return entries

    def get(self, run: Run) -> dict | None:
        """What came out of `run`; None if it was not made."""
        return self.results.get(run.key)

    def add(self, run: Run, result: dict, source: dict) -> None:
        """Keep a result, on disk before anything else happens."""
        entry = {
            "run": asdict(run), "timing": self._costs, "code": self.code, "result": result,
            "from": source,
        }  # fmt: skip
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            if file.tell() and not self._ends_with_a_line():
                file.write("\n")
            file.write(json.dumps(entry) + "\n")
        self.results[run.key] = result

    def _ends_with_a_line(self) -> bool:
        with self.path.open("rb") as file:
            file.seek(-1, 2)
            return file.read() == b"\n"

    def make(self, wanted: list[Run], folder, source: dict, jobs: int) -> None:
        """Make those of the `wanted` runs that are not there yet, `jobs` at a time."""
        missing = [run for run in dict.fromkeys(wanted) if self.get(run) is None]
        if not missing:
            return
        print(f"{len(missing)} of {len(wanted)} runs to make", flush=True)
        # Processes that are forked find the corpus loaded.
        parts(missing[0], folder)
        with ProcessPoolExecutor(jobs) as pool:
            futures = {pool.submit(simulate, run, str(folder), self.timing): run for run in missing}
            for done, future in enumerate(as_completed(futures), 1):
                run = futures[future]
                try:
                    self.add(run, future.result(), source)
                    told = self.get(run)["history"][-1]
                except DivergedError as error:
                    self.add(run, {"failed": str(error)}, source)
                    told = error
                except BrokenProcessPool:
                    raise SystemExit(
                        "a run was killed, most likely for want of memory: 1,000 workers take up "
                        "to 19 GB, so try --jobs 1; what was made is kept"
                    ) from None
                print(f"{done}/{len(missing)} {run.short}: {told}", flush=True)
