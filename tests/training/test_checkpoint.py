"""The folder of checkpoints: what a process that was killed has left there."""

import json
import os
import shutil

import numpy as np
import pytest

from dpsvi import (
    DPSVILDA,
    DPSVIGaussianMixture,
    DPSVIHierarchicalProbit,
    DPSVIHierarchicalRegressor,
    as_corpus,
)
from dpsvi.errors import ModelFormatError
from dpsvi.training.checkpoint import CheckpointFolder, newest_name, read_newest
from dpsvi.training.items import are_equal, dense_items, fingerprint
from dpsvi.training.job import Snapshot
from dpsvi.training.ledger import Ledger


def test_a_step_is_written_again_after_a_kill(tmp_path, rng):
    """It came after the second checkpoint of a step, before the first one, set aside, had gone."""
    X = rng.normal(size=(50, 2))
    state = DPSVIGaussianMixture(2, max_iter=1, random_state=0).fit(X)._state
    folder = CheckpointFolder(tmp_path, 0.0)
    snapshot = Snapshot(state, Ledger(50, 10, 1, 0), 0.0)
    path = folder.write(snapshot)
    aside = path.with_name(f".{path.name}.old")
    aside.mkdir()
    (aside / "model.json").write_text("{}")
    state.shared.rows[...] += 1
    assert folder.write(snapshot) == path
    assert sorted(found.name for found in path.parent.iterdir()) == ["latest", path.name]
    np.testing.assert_array_equal(read_newest(tmp_path).arrays["rows"], state.shared.rows)


@pytest.mark.parametrize("latest", [None, b"", b".\n", b"../..\n", b"gone\n", b"\xff\xfe"])
def test_checkpoints_are_found_where_nothing_names_the_newest(tmp_path, latest):
    """Else they would count as none, and a new fit would replace them."""
    for k, name in enumerate(["step-00000020", "step-00000010"]):
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (k, k))
    if latest is not None:
        (tmp_path / "latest").write_bytes(latest)
    assert newest_name(tmp_path) == "step-00000010"
    (tmp_path / "latest").write_text("step-00000020\n")
    assert newest_name(tmp_path) == "step-00000020"


def test_of_a_damaged_checkpoint_the_error_names_the_one_before(tmp_path, rng):
    X = rng.normal(size=(50, 2))
    settings = dict(checkpoint_dir=tmp_path, checkpoint_seconds=0.0, batch_size=10, random_state=0)
    DPSVIGaussianMixture(2, max_iter=3, **settings).fit(X)
    folder = tmp_path / "checkpoints"
    newest = newest_name(folder)
    content = bytearray((folder / newest / "model.safetensors").read_bytes())
    content[-1] ^= 1
    (folder / newest / "model.safetensors").write_bytes(content)
    again = DPSVIGaussianMixture(2, max_iter=4, **settings)
    with pytest.raises(ModelFormatError, match=f"{newest}.*SHA-256.*resume goes on from step-"):
        again.resume(X)
    shutil.rmtree(folder / newest)
    assert again.resume(X).history_[-1]["items"] == 200


def test_words_of_other_names_are_other_data(tmp_path):
    counts = np.random.default_rng(0).poisson(1.0, (60, 3))
    settings = dict(checkpoint_dir=tmp_path, checkpoint_seconds=0.0, random_state=0)
    DPSVILDA(2, max_iter=2, **settings).fit(as_corpus(counts, ("sun", "rain", "snow")))
    again = DPSVILDA(2, max_iter=3, **settings)
    with pytest.raises(ModelFormatError, match="words or columns have other names"):
        again.resume(as_corpus(counts, ("sun", "snow", "rain")))
    assert again.resume(counts).n_iter_ == 3, "without names the numbers tell"


def test_labels_of_other_names_are_other_data(tmp_path, rng):
    """Of groups and classes, which a fit knows as numbers only."""
    X, groups, y = rng.normal(size=(60, 1)), np.repeat([1, 2, 3], 20), np.tile([0, 1], 30)
    for i, (estimator, other) in enumerate((
        (DPSVIHierarchicalRegressor, {"groups": groups + 1}),
        (DPSVIHierarchicalRegressor, {"groups": np.repeat(["a", "b", "c"], 20)}),
        (DPSVIHierarchicalProbit, {"groups": groups + 1}),
        (DPSVIHierarchicalProbit, {"y": y + 1}),
    )):  # fmt: skip
        settings = dict(checkpoint_dir=tmp_path / str(i), checkpoint_seconds=0.0, random_state=0)
        given = {"X": X, "y": y, "groups": groups}
        estimator(max_iter=2, **settings).fit(**given)
        again = estimator(max_iter=3, **settings)
        with pytest.raises(ModelFormatError, match="groups or classes have other names"):
            again.resume(**given | other)
        assert again.resume(**given | {"groups": groups.astype(float)}).n_iter_ == 3


@pytest.mark.parametrize("size", [7, 5_000, 500_000])
def test_items_are_known_again_but_for_rounding(size, rng):
    X = rng.normal(size=(size, 1))
    X[3] = np.nan
    known = json.loads(json.dumps(fingerprint(dense_items(X))))

    def known_again(X, offsets=None):
        return are_equal(fingerprint(dense_items(X, offsets)), known)

    for same in (X.astype(np.float32), np.where(X == 0, -0.0, X), np.nextafter(X, 9)):
        assert known_again(same.astype(float))
    nothing = [fingerprint(dense_items(sign * X[:0])) for sign in (1.0, -0.0)]
    assert are_equal(*nothing)
    others = [X[::-1], X[:-1], np.nan_to_num(X), 1.001 * X, np.roll(X, 1), np.abs(X)]
    assert not any(map(known_again, others))
    assert not known_again(X, np.array([0, 1, size]))
    if size < 64 * 4096:  # of larger ones only blocks are looked at
        X[size // 2 + 1] += 0.1
        assert not known_again(X)


def test_a_regression_is_resumed_with_another_type_of_its_target(tmp_path, rng):
    groups = np.repeat(np.arange(30), 8)
    X, y = rng.normal(size=(240, 2)), rng.normal(size=240).astype(np.float32)
    settings = dict(checkpoint_dir=tmp_path, checkpoint_seconds=0.0, random_state=0)
    DPSVIHierarchicalRegressor(max_iter=2, **settings).fit(X, y, groups=groups)
    again = DPSVIHierarchicalRegressor(max_iter=3, **settings)
    assert again.resume(X, y.astype(float), groups=groups).n_iter_ == 3
