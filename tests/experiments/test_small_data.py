"""Batches of small data, and streams of them: that the tables say what was measured."""

import json

import numpy as np
import pytest

from dpsvi import DPSVIGaussianMixture, DPSVIPoissonFactorization
from experiments import portions, small_data


def blobs(seed):
    rng = np.random.default_rng(seed)
    yield "blobs", 2, rng.normal(size=(80, 2)) + 6 * rng.integers(2, size=(80, 1))


def test_from_end_to_end(tmp_path, monkeypatch):
    monkeypatch.setattr(small_data, "MODELS", {DPSVIGaussianMixture: blobs})
    small_data.main(["--seeds", "2", "--out", str(tmp_path)])
    rows = json.loads((tmp_path / "small_data.json").read_text())["rows"]
    assert len(rows) == 2 * (1 + len(small_data.STEPS_A_PASS))
    page = (tmp_path / "small_data.md").read_text()
    whole, first = (
        np.mean([[row["bound"], row["score"]] for row in rows if row["way"] == way], axis=0)
        for way in ("256 items", "5 steps")
    )
    shown = "{:.3f} / {:.3f} | {:+.3f} / {:+.3f}".format(*whole, *(first - whole))
    assert f"| DPSVIGaussianMixture | blobs | 60 | 2 | {shown} |" in page


def test_portions_from_end_to_end(tmp_path, monkeypatch):
    monkeypatch.setattr(small_data, "MODELS", {DPSVIGaussianMixture: blobs})
    portions.main(["--seeds", "2", "--out", str(tmp_path)])
    rows = json.loads((tmp_path / "portions.json").read_text())["rows"]
    whole = np.random.default_rng(1).permutation(next(blobs(1))[2])
    stream = DPSVIGaussianMixture(2, batch_size=256, random_state=1, n_jobs=1)
    for some in np.split(whole[20:], [40]):
        stream.partial_fit(some)
    assert rows[1]["scores"]["40, 256"] == stream.score(whole[:20])
    means = [np.mean([row["scores"][way] for row in rows]) for way in rows[0]["scores"]]
    assert len(means) == 1 + len(portions.PORTIONS) * len(portions.BATCHES)
    shown = " | ".join(f"{value:.3f}" for value in means)
    page = (tmp_path / "portions.md").read_text()
    assert f"| DPSVIGaussianMixture | blobs | 60 | 2 | {shown} |" in page


@pytest.mark.parametrize("model, draw", small_data.MODELS.items())
def test_data_of_every_model(model, draw):
    named = list(draw(0))
    assert len({name for name, _, _ in named}) == len(named) > 2
    for _, size, data in named:
        assert size > 1 and data.ndim == 2 and np.isfinite(data).all()
    if model is DPSVIPoissonFactorization:
        assert all(np.all(data == np.round(data)) for _, _, data in named)
