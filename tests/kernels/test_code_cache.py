"""Compiled code that is kept is that of the sources there are."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dpsvi

CALLED = """
from typing import NamedTuple
from dpsvi.kernels.jit import kernel

class {name}(NamedTuple):
    number: float

@kernel
def called(pair):
    return pair.number + {value}
"""
CALLER = """
from dpsvi.kernels import called
from dpsvi.kernels.jit import kernel

@kernel
def caller(pair):
    return called.called(pair)
"""
RUN = """
from dpsvi.kernels.called import {name}
from dpsvi.kernels.caller import caller

print(caller({name}(1.0)), sum(caller.stats.cache_hits.values()))
"""


@pytest.fixture(params=["beside the sources", "NUMBA_CACHE_DIR"])
def run(request, tmp_path):
    """What a kernel returns, which calls one of another file, and how often it was loaded."""
    package = tmp_path / "copy" / "dpsvi"
    kept = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(dpsvi.__file__).parent, package, ignore=kept)
    (package / "kernels" / "caller.py").write_text(CALLER)
    cache = str(tmp_path / "cache") if request.param == "NUMBA_CACHE_DIR" else ""

    def found(value, name="Pair"):
        called = package / "kernels" / "called.py"
        text = CALLED.format(value=value, name=name)
        if not called.exists() or called.read_text() != text:
            called.write_text(text)
        answer = subprocess.run(
            [sys.executable, "-c", RUN.format(name=name)], text=True, capture_output=True,
            cwd=package.parent,
            env=os.environ | {"PYTHONPATH": str(package.parent), "NUMBA_CACHE_DIR": cache},
        )  # fmt: skip
        assert answer.returncode == 0, answer.stderr
        number, hits = answer.stdout.split()
        return float(number), int(hits)

    return found


def test_a_kernel_that_another_one_calls_has_changed(run):
    """Numba alone would return the old number: the caller's own file is as it was."""
    assert run(1) == (2, 0)
    assert run(1) == (2, 1), "what is fresh is kept"
    assert run(10) == (11, 0)
    assert run(10) == (11, 1)


def test_types_of_another_version_have_other_names(run):
    """Numba alone would fail to read what it has kept."""
    assert run(1, "Pair") == (2, 0)
    assert run(1, "Couple") == (2, 0)
