"""Batches of small data: that the table says what was measured."""

import json

import numpy as np
import pytest

from dpsvi import DPSVIGaussianMixture, DPSVIPoissonFactorization
from experiments import small_data


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


@pytest.mark.parametrize("model, draw", small_data.MODELS.items())
def test_data_of_every_model(model, draw):
    named = list(draw(0))
    assert len({name for name, _, _ in named}) == len(named) > 2
    for _, size, data in named:
        assert size > 1 and data.ndim == 2 and np.isfinite(data).all()
    if model is DPSVIPoissonFactorization:
        assert all(np.all(data == np.round(data)) for _, _, data in named)
