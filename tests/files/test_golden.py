"""A model folder of every release still opens; see `golden/`."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dpsvi import DPSVILDA

FOLDERS = sorted((Path(__file__).parent / "golden").glob("*/lda"))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.parent.name)
def test_saved_by_a_release(folder):
    """Fitted to 30 documents of Poisson counts over 6 words, K = 2."""
    model = DPSVILDA.load(folder)
    assert model.vocabulary_ == ("sun", "rain", "snow", "wind", "fog", "hail")
    assert model.components_.shape == (2, 6) and np.all(model.components_ > 0)
    theta = model.transform(np.array([[4, 0, 0, 1, 0, 0]]))
    np.testing.assert_allclose(theta, [[0.8085, 0.1915]], atol=1e-3)
    assert model.n_iter_ == 3 and model.get_params()["batch_size"] == 8


def test_there_is_one_for_this_release():
    assert FOLDERS


@pytest.mark.parametrize(
    "folder", sorted(FOLDERS[0].parent.parent.glob("*/checkpoint")), ids=lambda f: f.parent.name
)
def test_checkpoint_of_a_release_is_resumed(folder, tmp_path):
    """Taken after 6 of 24 steps; with the steps of then the fit ends where it would have ended."""
    shutil.copytree(folder, tmp_path / "run")
    tests = Path(__file__).parents[1]
    paths = [str(tests), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, tests / "tools/as_release_0_1.py", tmp_path / "run"],
        env=os.environ | {
            "NUMBA_CACHE_DIR": str(tmp_path / "code"), "PYTHONPATH": os.pathsep.join(paths),
        },
        stdout=subprocess.PIPE, check=True, text=True,
    )  # fmt: skip
    found = json.loads(done.stdout)
    assert found["steps"] == 24
    assert found["items"] == [60, 120, 180, 240], "0.1.0 said docs"
    assert found["close"], "to 1 % of each number"
