"""Streams in portions: that the table says what was measured."""

import json

import numpy as np

from dpsvi import DPSVIGaussianMixture
from experiments import portions


def blobs(seed):
    rng = np.random.default_rng(seed)
    yield "blobs", 2, rng.normal(size=(80, 2)) + 6 * rng.integers(2, size=(80, 1))


def test_from_end_to_end(tmp_path, monkeypatch):
    monkeypatch.setattr(portions, "MODELS", {DPSVIGaussianMixture: blobs})
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
