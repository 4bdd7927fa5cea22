"""The folder of checkpoints: what a process that was killed has left there."""

import numpy as np

from dpsvi import DPSVIGaussianMixture
from dpsvi.training.checkpoint import CheckpointFolder, read_newest
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
