"""The actor-critic under a real mpiexec."""

import json

import numpy as np
import pytest
from tools.mpiexec import EVERY_MPI

from dpsvi import VirtualCluster
from dpsvi.rl import ActorCritic

pytestmark = pytest.mark.mpi

SMALL = dict(hidden=(16,), n_games=2, n_moves=4)


@pytest.fixture
def fit(ranks, tmp_path):
    """A callable: what each rank got of a fit."""

    def fit(kind, n, moves, params, cluster, faults=None, lost=()):
        told = json.dumps(params), json.dumps(cluster)
        ranks(kind, n, "mpi_actor_critic", tmp_path / "fit", moves, *told, faults=faults)
        found = [n for n in range(n) if n not in lost]
        return [json.loads((tmp_path / f"fit-{rank}.json").read_text()) for rank in found]

    return fit


@pytest.mark.parametrize("kind", EVERY_MPI)
@pytest.mark.parametrize("params, cluster", [
    (dict(local_steps=2, learning_rate=0.004), {}),
    (dict(environment="gymnasium:CartPole-v1", local_steps=2, learning_rate=0.004), {}),
    (dict(algorithm="da3c", n_games=8, learning_rate=0.002), {}),
    (dict(algorithm="paac", n_games=8), {}),
    (dict(algorithm="gala", learning_rate=0.002), {}),
], ids=lambda value: value.get("algorithm", value.get("environment", "hsa2c")))  # fmt: skip
def test_three_ranks_learn(kind, params, cluster, fit):
    ranks = fit(kind, 3, 200_000, params, cluster)
    for rank in ranks:
        assert rank["parameters"] == ranks[0]["parameters"], "all ranks hold the same network"
        assert rank["moves"] >= 200_000
    assert max(ranks[0]["scores"]) > 60  # who has learned nothing is below 30
    if params.get("algorithm") != "gala":
        assert ranks[0]["workers"] == [1, 2]


@pytest.mark.parametrize("kind", EVERY_MPI)
def test_one_worker_that_sends_every_step_is_the_sequential_algorithm(kind, fit):
    """B = p = n = M = 1 of Alg. 8 and 9, over MPI."""
    params = dict(local_steps=1, **SMALL)
    ranks = fit(kind, 2, 2_000, params, {"strategy": "displacement"})
    alone = ActorCritic(engine="serial", random_state=0, **SMALL).fit(2_000)
    np.testing.assert_allclose(ranks[0]["parameters"], alone.parameters_, atol=1e-4)
    assert ranks[0]["n_exchanges"] == 250


@pytest.mark.parametrize("kind", EVERY_MPI)
@pytest.mark.parametrize("params", [dict(), dict(algorithm="paac")], ids=str)
def test_a_fit_of_three_ranks_is_replayed_in_virtual_turns(kind, params, fit):
    """From the order in which the master heard of them, to the same bits."""
    told = dict(local_steps=2, **SMALL, **params)
    ranks = fit(kind, 3, 4_000, told, {})
    order = ranks[0]["order"]
    assert set(order) == {0, 1, 2} and len(order) > 200, "0 is the master, where it answers"
    cluster = VirtualCluster(n_workers=2, replay=order)
    again = ActorCritic(engine="simulated", random_state=0, cluster=cluster, **told).fit(4_000)
    np.testing.assert_array_equal(again.parameters_, np.float32(ranks[0]["parameters"]))
    assert len(again.exchanges_["exchanges"]) == ranks[0]["n_exchanges"]
    assert [entry["score"] for entry in again.history_] == ranks[0]["scores"]


@pytest.mark.parametrize("kind", EVERY_MPI)
def test_longer_local_work_needs_fewer_exchanges(kind, fit):
    """As many steps in a sixteenth of the exchanges."""
    ranks = fit(kind, 2, 64 * 8 * 16, dict(local_steps=16, **SMALL), {})
    assert ranks[0]["n_exchanges"] == 64
