"""The folder of checkpoints: what a process that was killed has left there."""

import os

import numpy as np
import pytest

from dpsvi import DPSVIGaussianMixture
from dpsvi.training.checkpoint import CheckpointFolder, newest_name, read_newest
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
