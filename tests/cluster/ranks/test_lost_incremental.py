"""A worker is killed while it makes incremental passes."""

from pathlib import Path

import numpy as np
import pytest
import tools
from tools.mpi_incremental import mixture, points
from tools.mpiexec import launch, needs

import dpsvi

pytestmark = [pytest.mark.fault, pytest.mark.mpi]


@needs("openmpi")
def test_others_begin_to_remember_anew(tmp_path):
    program = Path(tools.__file__).parent / "mpi_incremental.py"
    run = launch(
        "openmpi", 4, "-m", "mpi4py", program, tmp_path, options=["--with-ft", "ulfm"]
    )  # fmt: skip
    assert run.wait() == 0, run.err
    assert run.err.count("with it what it remembered of its items; 2 workers are left") == 1
    model, serial = dpsvi.load(tmp_path), mixture(engine="serial").fit(points())
    assert model._state.learned().reshape(3, -1)[:, 0].sum() == pytest.approx(300, rel=1e-9)
    assert model.lower_bound_ == pytest.approx(serial.lower_bound_, rel=1e-6)
    np.testing.assert_allclose(np.sort(model.weights_), np.sort(serial.weights_), rtol=1e-4)
    assert model.n_iter_ in (20, 21)
