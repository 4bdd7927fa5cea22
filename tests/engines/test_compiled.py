"""Every engine runs the compiled local step of topic models: none falls back to the interpreter."""

import json
from unittest.mock import patch

import numpy as np
import pytest
from members import SECOND
from tools.mpiexec import EVERY_MPI
from tools.only_compiled import KINDS, compiled_alone, fit

from dpsvi import VirtualCluster, engines
from dpsvi.models.lda import estimator
from dpsvi.models.lda.model import make_model

HERE = {
    "serial": {"engine": "serial"},
    "threads": {"engine": "threads", "n_jobs": 2},
    "simulated": {
        "engine": "simulated", "cluster": VirtualCluster(n_workers=2, timing=SECOND), "n_jobs": 2
    },
    "simulated, no master": {
        "engine": "simulated",
        "cluster": VirtualCluster(n_workers=2, strategy="push_sum", timing=SECOND),
    },
}  # fmt: skip
CASES = [
    (engine, kind) for engine in HERE for kind in KINDS
    if engine != "simulated, no master" or not kind.endswith("kept")
]  # fmt: skip


def not_compiled(*args, **kwargs):
    return make_model(*args, **kwargs)._replace(compiled=False)


def test_no_engine_is_left_out():
    assert {options["engine"] for options in HERE.values()} | {"mpi"} == set(engines.names())


@pytest.mark.parametrize(("engine", "kind"), CASES)
def test_the_compiled_step_does_all_the_work(engine, kind):
    with compiled_alone():
        lda = fit(kind, **HERE[engine])
    assert lda.n_batch_iter_ >= 4 * (300 // 64)
    if engine == "serial":
        assert np.array_equal(lda.components_, fit(kind, **HERE[engine]).components_)


@pytest.mark.parametrize("engine", HERE)
def test_a_step_in_the_interpreter_would_be_noticed(engine):
    with compiled_alone(), patch.object(estimator, "make_model", not_compiled):
        with pytest.raises(AssertionError, match="in the interpreter"):
            fit("collapsed", **HERE[engine])


@pytest.mark.mpi
@pytest.mark.parametrize("kind", EVERY_MPI)
def test_all_ranks_run_the_compiled_step(kind, ranks, tmp_path):
    ranks(kind, 3, "only_compiled", tmp_path / "fit")
    for rank in range(3):
        found = json.loads((tmp_path / f"fit-{rank}.json").read_text())
        assert found.keys() == KINDS.keys()
        assert min(found.values()) >= 4 * (300 // 64)
