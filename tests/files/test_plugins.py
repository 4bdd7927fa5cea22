"""An installed package adds a model, an engine, a learner, a strategy, an environment.

The package lies in ``tests/files/plugins`` as an installer would have left it.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
PLUGINS = Path(__file__).parent / "plugins"


def with_package(folder, *arguments, cwd):
    """Run Python where what lies in `folder` is installed, too."""
    paths = [str(folder), str(ROOT), os.environ.get("PYTHONPATH", "")]
    return subprocess.run(
        [sys.executable, *map(str, arguments)], capture_output=True, text=True, cwd=cwd,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
    )  # fmt: skip


def python(*arguments, cwd):
    """Run Python where the package is installed."""
    found = with_package(PLUGINS, *arguments, cwd=cwd)
    assert found.returncode == 0, found.stderr
    return found.stdout


@pytest.fixture
def tosses(tmp_path, rng):
    """600 tosses of three coins, as a file; and the posterior means of their chances."""
    X = (rng.random((600, 3)) < [0.1, 0.5, 0.8]).astype(float)
    np.save(tmp_path / "tosses.npy", X)
    return tmp_path / "tosses.npy", (1 + X.sum(axis=0)) / (2 + len(X))


FIT = """
import sys, json, numpy as np, dpsvi
from dpsvi import DPSVICoins, VirtualCluster

assert "DPSVICoins" in dpsvi.__all__ and "DPSVICoins" in dir(dpsvi)
X = np.load(sys.argv[1])
batch = {"batch_size": len(X), "learning_rate": 1.0, "max_iter": 1}
exact = DPSVICoins(engine="calling_thread", **batch).fit(X)
exact.save("coins")
loaded = dpsvi.load("coins")
assert type(loaded) is DPSVICoins and np.array_equal(loaded.chances_, exact.chances_)
cluster = VirtualCluster(n_workers=2, strategy="halved")
halved = DPSVICoins(engine="simulated", cluster=cluster, batch_size=20, max_iter=20).fit(X)
serial = DPSVICoins(engine="serial", batch_size=20, random_state=0).fit(X)
same = DPSVICoins(engine="calling_thread", batch_size=20, random_state=0).fit(X)
assert np.array_equal(serial.chances_, same.chances_)
class OneByOne(DPSVICoins):
    _model = staticmethod(lambda *parts: DPSVICoins._model(*parts)._replace(learner="one_by_one"))

settings = {"batch_size": 20, "max_iter": 5, "random_state": 0}
for rates in ({}, {"learning_rate": 1.0}):  # of which the second forgets all at every step
    plain, stepwise = (c(**settings, **rates).fit(X) for c in (DPSVICoins, OneByOne))
    assert stepwise._state.model.learner == "one_by_one"
    np.testing.assert_allclose(stepwise.chances_, plain.chances_, rtol=1e-6)
for where in ({"engine": "calling_thread"}, {"engine": "simulated", "cluster": cluster}):
    stepwise = OneByOne(batch_size=20, max_iter=20, random_state=0, **where).fit(X)
    np.testing.assert_allclose(stepwise.chances_, exact.chances_, atol=0.03)
one = VirtualCluster(n_workers=1, strategy="halved")
half = DPSVICoins(engine="simulated", cluster=one, **batch).fit(X)
chances = [m.chances_.tolist() for m in (exact, halved)]
print(json.dumps([*chances, half._state.learned().sum()]))
"""


def test_from_python(tosses, tmp_path):
    path, expected = tosses
    exact, halved, mass = json.loads(python("-c", FIT, path, cwd=tmp_path))
    np.testing.assert_allclose(exact, expected, rtol=1e-12)
    np.testing.assert_allclose(halved, expected, atol=0.03)
    # One step of rate 1 would learn all tosses; half an update learns half of them.
    assert mass == pytest.approx(600 * 3 / 2)


def test_from_the_command_line(tosses, tmp_path):
    path, expected = tosses
    result = json.loads(
        python(
            "-m", "dpsvi", "fit", "coins", "--data", path, "--engine", "simulated",
            "--strategy", "halved", "--workers", 2, "--passes", 20, "--set", "batch_size=20",
            "--out", "run", "--json", "--quiet", cwd=tmp_path,
        )
    )  # fmt: skip
    assert result["model"] == "DPSVICoins"
    again = python(
        "-c", "import dpsvi; print(dpsvi.load('run').chances_.tolist())", cwd=tmp_path
    )  # fmt: skip
    np.testing.assert_allclose(json.loads(again), expected, atol=0.03)
    python(
        "-m", "dpsvi", "fit", "coins", "--data", path, "--engine", "calling_thread",
        "--out", "other", "--quiet", cwd=tmp_path,
    )  # fmt: skip
    assert "coins" in python("-m", "dpsvi", "fit", "--help", cwd=tmp_path)


ENVIRONMENT = """
import numpy as np
from dpsvi.rl import environments, generator

game = environments.get("coin")
state, random = np.empty(game.N_STATE), np.zeros(1, np.uint64)
generator.seed(random, 1)
game.reset(state, random)
print(*sorted({game.step(state, 1, random)[0] for _ in range(100)}), *environments.names())
"""


def test_an_environment(tmp_path):
    found = python("-c", ENVIRONMENT, cwd=tmp_path).split()
    assert found[:2] == ["0.0", "1.0"] and {"coin", "cartpole"} <= set(found[2:])


# --- packages that are wrong ---------------------------------------------------------------------


def installed(folder, part, entry, module, source=None):
    """Leave a package in `folder` that offers one entry point, as an installer would."""
    info = folder / "wrong-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: wrong\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[dpsvi.{part}]\n{entry} = {module}\n")
    if source is not None:
        (folder / f"{module.partition('.')[0]}.py").write_text(source)


def with_it(folder, *arguments):
    """Run Python where that package is installed."""
    return with_package(folder, *arguments, cwd=folder)


@pytest.mark.parametrize(("part", "taken"), [("models", "lda"), ("engines", "threads")])
def test_a_name_of_the_package_cannot_be_taken(tmp_path, part, taken):
    installed(tmp_path, part, taken, "thief")
    code = f"from dpsvi import {part}; print({part}.get({taken!r}))"
    for arguments in (("-c", code), ("-m", "dpsvi", "fit", "lda", "--help")):
        done = with_it(tmp_path, *arguments)
        assert done.returncode == 0, "ours is taken"
        assert (
            f"entry point {taken!r} of dpsvi.{part}, thief, of the package 'wrong', cannot take the"
            f" name of dpsvi.{part}.{taken}" in done.stderr
        )


@pytest.mark.parametrize(
    ("module", "source", "said"),
    [
        ("nowhere", None, "cannot be read: there is no such module"),
        ("nowhere.model", None, "cannot be read: No module named 'nowhere'"),
        ("here", "x = 1\n", "model 'wrong' has no line ESTIMATOR ="),
        ("here.model", "import sys\nsys.exit(7)\n", "cannot be read: 7"),
    ],
)
def test_a_model_that_cannot_be_read_stops_no_other(tmp_path, tosses, module, source, said):
    installed(tmp_path, "models", "wrong", module, source)
    done = with_it(
        tmp_path, "-m", "dpsvi", "fit", "gaussian_mixture", "--data", tosses[0], "--passes", 1,
        "--out", tmp_path / "run", "--quiet",
    )  # fmt: skip
    assert done.returncode == 0 and said in done.stderr and "it is left out" in done.stderr
    assert "Traceback" not in done.stderr
    code = "import dpsvi; dpsvi.DPSVILDA; assert 'wrong' not in dpsvi.models.names(); print(1)"
    done = with_it(tmp_path, "-c", f"{code}; dpsvi.models.get('wrong')")
    assert done.stdout == "1\n" and done.returncode == 1
    assert "ContractError: " in done.stderr and "'wrong'" in done.stderr


@pytest.mark.parametrize("part", ["models", "engines", "learners", "strategies"])
@pytest.mark.parametrize("source", ["import nothing_of_that_name\n", "def (\n", "x = 1\n"])
def test_a_module_that_is_not_what_it_must_be(tmp_path, part, source):
    installed(tmp_path, part, "wrong", "here", source)
    done = with_it(tmp_path, "-c", f"from dpsvi import {part}; {part}.get('wrong')")
    (last,) = done.stderr.strip().splitlines()[-1:]
    assert "ContractError: entry point 'wrong' of dpsvi." in last and "package 'wrong'" in last
    assert ("does not define" if source == "x = 1\n" else "cannot be imported") in last


def test_an_engine_that_makes_no_step_is_told(tmp_path, tosses):
    source = "from dpsvi.base import Engine\nENGINE = Engine(lambda job: False)\n"
    installed(tmp_path, "engines", "idle", "here", source)
    done = with_it(
        tmp_path, "-m", "dpsvi", "fit", "gaussian_mixture", "--data", tosses[0], "--engine", "idle",
        "--out", tmp_path / "run", "--quiet",
    )  # fmt: skip
    assert done.returncode == 1 and "engine 'idle' made none of" in done.stderr
