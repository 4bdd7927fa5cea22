"""A model folder of every release still opens; see `golden/`."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from reference.lda import TopicCorpus

from dpsvi import DPSVILDA
from dpsvi.models.lda import estimator

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
def test_checkpoint_of_a_release_is_resumed(folder, tmp_path, monkeypatch):
    """Taken after 6 of 24 steps; the fit ends near where it would have ended.

    Releases differ in how many iterations a document is given, so it is seven here, as in these,
    and in how much of a document is left out for a word, so that words differ by a few percent.
    """
    default = estimator.DEFAULTS["collapsed"]._replace(more_sweeps=1.0)
    monkeypatch.setitem(estimator.DEFAULTS, "collapsed", default)
    corpus = TopicCorpus(3, n_words=40, n_documents=60, n_tokens=30, alpha=0.1, seed=0).corpus()
    settings = dict(n_components=3, batch_size=10, max_iter=4, random_state=0)
    shutil.copytree(folder, tmp_path / "run")
    again = DPSVILDA(**settings, checkpoint_dir=tmp_path / "run").resume(corpus)
    assert again.n_batch_iter_ == 24
    assert [entry["items"] for entry in again.history_] == [60, 120, 180, 240], "0.1.0 said docs"
    whole = DPSVILDA(**settings).fit(corpus)
    tokens = corpus.value.sum()
    assert again.components_.sum() == pytest.approx(whole.components_.sum(), rel=1e-2)
    assert np.abs(again.components_ - whole.components_).sum() < 0.05 * tokens
