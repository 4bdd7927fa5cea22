"""``dpsvi warmup``: what it compiles no later fit compiles, whatever the model."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dpsvi
from dpsvi import models
from dpsvi.__main__ import main
from dpsvi.kernels.code_cache import MARK

PACKAGE = Path(dpsvi.__file__).parent
PLUGINS = Path(__file__).parents[1] / "files" / "plugins"

COUNTED = """
import sys
from numba.core.event import install_recorder
from dpsvi.__main__ import main

with install_recorder("numba:compile") as recorder:
    code = main(sys.argv[1:])
print(f"compile events: {len(recorder.buffer)}", file=sys.stderr)
sys.exit(code)
"""


def python(*arguments, root=PACKAGE.parent, **environment):
    """Standard output and error of another process."""
    found = subprocess.run(
        [sys.executable, *map(str, arguments)], capture_output=True, text=True,
        cwd=PLUGINS, env=os.environ | {"PYTHONPATH": str(root), **environment},
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    return found.stdout, found.stderr


def contents(folder):
    """Size and time of every file."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in files}


@pytest.mark.slow
def test_a_fit_after_it_compiles_nothing(tmp_path, rng):
    """With defaults, held-out points, several threads; in another process than the warm-up."""
    cache = tmp_path / "cache"
    said, _ = python("-m", "dpsvi", "warmup", "gaussian_mixture", NUMBA_CACHE_DIR=str(cache))
    assert said.startswith("gaussian_mixture: compiled in ")
    assert said.endswith(f"the compiled code is under {cache}\n")
    before = contents(cache)
    assert {path.suffix for path in before if path.name != MARK} == {".nbi", ".nbc"}
    np.save(tmp_path / "points.npy", rng.normal(size=(300, 3)).astype(np.float32))
    data, run = ["--data", tmp_path / "points.npy"], tmp_path / "run"
    for argv in (
        ["fit", "gaussian_mixture", *data, "--out", run, "--threads", "2", "--held-out", "60"],
        ["predict", run, *data, "--out", tmp_path / "found.npy", "--method", "predict_proba"],
        ["evaluate", run, *data],
    ):
        _, error = python("-c", COUNTED, *argv, NUMBA_CACHE_DIR=str(cache))
        assert "compile events: 0" in error, argv
    assert contents(cache) == before


@pytest.mark.slow
def test_every_model_warms_up(capsys):
    """Even where all is compiled, each makes all of its fits; what follows compiles nothing."""
    assert main(["warmup", "--json"]) == 0
    capsys.readouterr()
    assert main(["warmup"]) == 0
    *lines, last = capsys.readouterr().out.splitlines()
    assert [line.partition(": was compiled before, ")[0] for line in lines] == models.names()
    assert last.startswith("the compiled code is under ")
    assert main(["warmup", "hmm", "lda", "hmm", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["models"]
    assert [(one["model"], one["compiled"]) for one in found] == [("hmm", 0), ("lda", 0)]


def test_a_model_of_another_package():
    path = os.pathsep.join([str(PLUGINS), str(PACKAGE.parent)])
    said, _ = python("-m", "dpsvi", "warmup", "coins", root=path)
    assert said.startswith("coins: ")


def test_an_unknown_model(capsys):
    with pytest.raises(SystemExit) as error:
        main(["warmup", "svm"])
    assert error.value.code == 2
    assert "got 'svm'" in capsys.readouterr().err


def test_a_cache_folder_that_cannot_be_written(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    copy = tmp_path / "copy"
    shutil.copytree(PACKAGE, copy / "dpsvi", ignore=shutil.ignore_patterns("__pycache__"))
    code = "from dpsvi.commands import warmup\nfrom dpsvi.kernels import code_cache\n"
    code += "print(warmup._where(code_cache.folder()))"
    said, _ = python("-c", code, root=copy, NUMBA_CACHE_DIR=str(file))
    assert said == (
        f"the compiled code is under {copy / 'dpsvi'}, for NUMBA_CACHE_DIR, {file}, cannot be "
        "written\n"
    )


def test_where_no_code_can_be_kept(tmp_path):
    """It says so, and what is compiled for one process works."""
    copy = tmp_path / "dpsvi"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [copy, *(path for path in copy.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").write_text("no folder, so nobody can write there, not even root")
    nowhere = {"HOME": os.devnull, "XDG_CACHE_HOME": os.devnull, "NUMBA_CACHE_DIR": ""}
    said, _ = python("-m", "dpsvi", "warmup", root=tmp_path, **nowhere)
    assert said.startswith("nothing was compiled, for it cannot be kept: neither the folder of")
    code = "import dpsvi.corpus.parse, dpsvi.kernels.jit as jit, numpy as np\n"
    code += "a = np.zeros(3); jit.kernel(lambda x: x.sum())(a); print(dpsvi.__file__)"
    said, error = python("-c", code, root=tmp_path, **nowhere)
    assert Path(said.strip()).parent == copy
    assert error.count("compiled code cannot be kept, so every process compiles it") == 1
    code = "import sys\nfrom dpsvi.__main__ import main\n"
    code += "sys.exit(main(['fit', 'lda', '--corpus', 'nowhere.txt', '--out', 'x']) != 3)"
    _, error = python("-c", code, root=tmp_path, **nowhere)
    assert "compiled code cannot be kept" in error and "nowhere.txt" in error
    assert "Traceback" not in error and "Logging error" not in error
