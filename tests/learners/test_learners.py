"""Learners: each is its equation, on every engine; nobody else knows their names."""

import ast
from pathlib import Path

import numpy as np
import pytest

from dpsvi import Cluster, VirtualCluster, engines, learners
from dpsvi.base import Model
from dpsvi.cluster.virtual import Timing
from dpsvi.engines import fit
from dpsvi.kernels.jit import as_items
from dpsvi.training.ledger import Ledger, StepRange
from dpsvi.training.state import State

N, K, S, N_PASSES, SEED = 24, 3, 4, 3, 5
PRIOR, DECAY = 0.5, 0.3
CLUSTERS = {"mpi": Cluster(), "simulated": VirtualCluster(timing=Timing(step=1.0, value=0.0))}


def local(shared, scale, hyper, items, batch, work):
    """Row of item d: its value, less a tenth of what is there."""
    n = 0
    for d in batch:
        work.touched[n] = d
        for k in range(work.stats.shape[1]):
            work.stats[n, k] += items.value[d] - 0.1 * scale * shared.rows[d, k]
        n += 1
    return n


# The step of each learner on dense parameters.
STEPS = {
    "natural": lambda v, stats, rate: (1 - rate) * v + rate * (PRIOR + N / S * stats),
    "incremental": lambda v, stats, rate: v + stats,
    "gradient": lambda v, stats, rate: (1 - rate * DECAY) * v + rate / S * stats,
}


def schedule(t):
    return 0.4 / (1.0 + np.asarray(t)) ** 0.3


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("engine", engines.names())
@pytest.mark.parametrize("learner", learners.names())
def test_every_learner_on_every_engine(learner, engine, compiled, rng):
    prior = 0.0 if learner == "gradient" else PRIOR
    first, values = rng.normal(size=(N, K)), rng.normal(size=N)
    model = Model(
        name="toy", shape=(N, K), prior=np.full(1, prior), hyper=np.zeros(0), local=local,
        scratch=lambda longest: 0, learner=learner, weight_decay=DECAY, compiled=compiled,
    )  # fmt: skip
    items = as_items(np.arange(N + 1), np.arange(N), values, np.dtype(float))
    state = State.resume(model, first.copy(), 1)
    fit(
        state, items, schedule=schedule, batch_size=S, n_passes=N_PASSES, seed=SEED, engine=engine,
        local_steps=2, cluster=CLUSTERS.get(engine),
    )  # fmt: skip

    dense, passes, steps = prior + first, Ledger(N, S, N_PASSES, SEED), N // S
    for t in range(N_PASSES * steps):
        work = StepRange(t // steps, 0, t % steps, t % steps + 1, 0)
        stats = np.zeros((N, K))
        chosen = passes.items(work)
        stats[chosen] = values[chosen, None] - 0.1 * (dense - prior)[chosen]
        dense = STEPS[learner](dense, stats, schedule(t))
    assert state.step == N_PASSES * steps
    np.testing.assert_allclose(state.natural(), dense, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("real", [np.float32, np.float64])
@pytest.mark.parametrize("penalty", [0.0, 1e-6, 0.9, 10.0])
def test_a_penalty_does_not_outgrow_the_numbers(penalty, real):
    """Millions of steps of decay are cut into segments whose gains stay finite."""
    model = Model(
        name="toy", shape=(N, K), prior=np.zeros(1, real), hyper=np.zeros(0), local=local,
        scratch=lambda longest: 0, learner="gradient", weight_decay=penalty,
    )  # fmt: skip
    rates = np.full(10**6, 0.09)
    scales, gains, n = learners.get("gradient").tables(model, rates, 1.0, np.full(10**6, S), N)
    assert len(scales) == len(gains) + 1 == n + 1
    np.testing.assert_allclose(scales[1:] / scales[:-1], 1 - 0.09 * penalty, rtol=1e-12)
    np.testing.assert_allclose(gains * scales[1:], 0.09 / S, rtol=1e-12)
    assert np.isfinite((gains * 1e20).astype(real)).all()


def test_a_penalty_that_would_change_signs_is_refused():
    model = Model(
        name="toy", shape=(N, K), prior=np.zeros(1), hyper=np.zeros(0), local=local,
        scratch=lambda longest: 0, learner="gradient", weight_decay=5.0,
    )  # fmt: skip
    with pytest.raises(ValueError, match=r"must be < 1, got 0.2 \* 5"):
        learners.get("gradient").tables(model, np.array([0.1, 0.2]), 1.0, np.ones(2), N)


def test_unknown_learner():
    with pytest.raises(ValueError, match=r"learner must be one of .*gradient.*got 'magic'"):
        learners.get("magic")


def test_nobody_else_names_a_learner():
    package = Path(learners.__file__).parent.parent
    names = set(learners.names())
    for part in ["engines", "cluster", "strategies", "training"]:
        for path in sorted((package / part).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                assert not (isinstance(node, ast.Constant) and node.value in names), path
