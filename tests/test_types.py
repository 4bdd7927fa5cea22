"""What type checkers and editors are told is true."""

import ast
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dpsvi
from dpsvi.estimators import engine_parameters
from dpsvi.estimators.run_options import RestartOptions

ROOT = Path(__file__).parent.parent
PATH = os.environ.get("PATH", "")


def test_types_and_the_lazy_table_name_the_same():
    tree = ast.parse((ROOT / "dpsvi" / "__init__.py").read_text("utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    assert ast.unparse(block.test) == "TYPE_CHECKING"
    told = {
        alias.asname: f"{line.module}.{alias.name}" for line in block.body for alias in line.names
    }
    assert sorted(told) == sorted(set(dpsvi.__all__) - {"__version__"})
    for name, place in told.items():
        module, _, attribute = place.rpartition(".")
        found = getattr(__import__(module, fromlist=[attribute]), attribute)
        assert found is getattr(dpsvi, name), name


def test_run_options_are_the_parameters_that_every_estimator_has():
    assert RestartOptions.__annotations__.keys() == engine_parameters._DEFAULTS.keys()


def test_an_unknown_parameter_is_refused():
    with pytest.raises(TypeError, match="n_componentz"):
        dpsvi.DPSVILDA(n_componentz=3)


@pytest.mark.skipif(np.__version__ < "2", reason="NumPy 1.26 has other annotations of arrays")
def test_mypy_reads_the_public_face(tmp_path):
    """mypy --strict finds nothing in a program that is right, and each line that is wrong."""
    example = ROOT / "tests" / "tools" / "typed_example.py"
    answer = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir",
         tmp_path, example],
        cwd=ROOT, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    found = {int(n) for n in re.findall(r"^\S+:(\d+): error", answer.stdout, re.M)}
    lines = enumerate(example.read_text("utf-8").splitlines(), 1)
    wrong = {number for number, line in lines if "# wrong" in line}
    assert found == wrong, answer.stdout + answer.stderr


def public_face():
    """Whose symbols users see: what `docs/api.md` lists, with the bases that this package has."""
    listed = re.findall(r"^   (\w[\w.]*)$", (ROOT / "docs" / "api.md").read_text("utf-8"), re.M)
    face = set()
    for name in {*dpsvi.__all__, *listed} - {"__version__"}:
        module, _, attribute = f"dpsvi.{name}".rpartition(".")
        found = getattr(importlib.import_module(module), attribute)
        for each in getattr(found, "__mro__", [found]):
            if each.__module__.startswith("dpsvi."):
                face |= {f"{each.__module__}.{each.__qualname__}", f"dpsvi.{name}"}
    return face


def test_pyright_knows_the_types_of_the_public_face():
    """At least 95 % of the symbols, as CONTRIBUTING says how to measure."""
    pyright = shutil.which("pyright", path=f"{Path(sys.executable).parent}{os.pathsep}{PATH}")
    if pyright is None:
        pytest.skip("pyright is not installed")
    answer = subprocess.run(
        [pyright, "--pythonpath", sys.executable, "--verifytypes", "dpsvi", "--ignoreexternal",
         "--outputjson"],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    face = public_face()
    symbols = {
        symbol["name"]: symbol["isTypeKnown"]
        for symbol in json.loads(answer.stdout)["typeCompleteness"]["symbols"]
        if symbol["isExported"] and {symbol["name"], symbol["name"].rpartition(".")[0]} & face
    }
    unknown = sorted(name for name, known in symbols.items() if not known)
    print(f"{len(symbols) - len(unknown)} of {len(symbols)} symbols have a known type")
    assert len(symbols) > 300 and len(unknown) < 0.05 * len(symbols), unknown
