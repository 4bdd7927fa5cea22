"""A model folder of every release still opens; see `golden/`."""

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
