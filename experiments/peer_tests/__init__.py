"""Tests that other packages have of their classes, run with ours in the place of theirs.

One file a class, a plug-in of pytest whose ``pytest_configure`` puts ours there, and which
translates what has another name, as ``docs/migrating.md`` says.  It has

* ``TESTS``: modules of tests of the installed package;
* ``DIFFERENT``: the tests that must fail, and why; all others must pass;
* ``CHOSEN``: what pytest's ``-k`` is to choose of them; empty for all.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]


class Outcome(NamedTuple):
    """What came of the tests of one class."""

    passed: set[str]  # functions of which all cases passed
    failed: dict[str, str]  # the others, and what the first case said
    skipped: int  # cases
    output: str


def names() -> list[str]:
    """Classes that there are tests for."""
    return sorted(m.name for m in pkgutil.iter_modules(__path__) if m.name != "__main__")


def get(name: str):
    """The plug-in of this name."""
    return importlib.import_module(f"{__name__}.{name}")


def run(name: str) -> Outcome:
    """Run the tests of one class in another process."""
    plug_in = get(name)
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [
                sys.executable, "-m", "pytest", "-n", "0", "-p", plug_in.__name__, "-v", "-rf",
                "--tb=no", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", folder,
                "-k", plug_in.CHOSEN, "-W", "ignore", "--pyargs", *plug_in.TESTS,
            ],
            cwd=ROOT, capture_output=True, text=True, env={**os.environ, "COLUMNS": "300"},
        )  # fmt: skip
    name = r"::((?:Test\w+::)?test\w+)\S*"
    cases = re.findall(rf"{name}(?: <- \S+)? (PASSED|FAILED|ERROR|SKIPPED)", done.stdout)
    said = re.findall(rf"^FAILED \S+?{name}(?: - (.*))?$", done.stdout, re.M)
    failed: dict[str, str] = {case: "" for case, how in cases if how in ("FAILED", "ERROR")}
    for case, why in said:
        failed[case] = failed[case] or why
    passed = {case for case, how in cases if how == "PASSED"} - failed.keys()
    skipped = sum(how == "SKIPPED" for _, how in cases)
    return Outcome(passed, failed, skipped, done.stdout + done.stderr)
