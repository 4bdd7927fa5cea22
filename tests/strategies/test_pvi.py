"""Partitioned variational inference: its equations, its fixed points, what a lost worker leaves."""

from functools import partial

import numpy as np
import pytest
from reference.lda import documents_of, svi
from reference.strategies import ALPHA, ETA, K, assert_close, first_of, lda, steps_of

from dpsvi import DPSVIGaussianMixture, VirtualCluster
from dpsvi.cluster.turns import take_turns
from dpsvi.cluster.virtual import Timing
from dpsvi.training.ledger import Ledger
from dpsvi.training.schedules import constant, robbins_monro


@pytest.mark.parametrize("n_workers", [1, 2, 4])
@pytest.mark.parametrize("damping, schedule", [
    (1.0, robbins_monro(50.0, 0.7)), (1.0, constant(0.2)), (0.5, constant(0.2)),
])  # fmt: skip
@pytest.mark.parametrize("synchronous", [False, True])
def test_pvi_is_its_equations(corpus, n_workers, schedule, damping, synchronous):
    options = {"synchronous": synchronous, "damping": damping}
    job = lda(corpus, schedule=schedule, strategy="pvi", strategy_options=options)
    v = first_of(job)
    steps, step = steps_of(job, corpus)
    seen, factors = [v] * n_workers, [(v - ETA) / n_workers] * n_workers
    for t, (batch, rate) in enumerate(steps):
        k, n = t % n_workers, n_workers
        if synchronous and k == 0:
            seen = [v] * n  # of a new round
        w, kept = seen[k], (1 - rate) ** n
        statistics = step(w, batch, rate) - ETA - (1 - rate) * (w - ETA)
        change = kept * factors[k] + (1 - kept) / (n * rate) * statistics - factors[k]
        v, factors[k] = v + damping * change, factors[k] + damping * change
        if not synchronous:
            seen[k] = v
    master = take_turns(job, n_workers)
    assert_close(job, v)
    if n_workers > 1:
        state = master.strategy.state()
        for worker, expected in enumerate(factors):
            found = state[f"scale_{worker}"] * state[f"rows_{worker}"][:, :K].T
            assert np.abs(found - expected).sum() < 2e-4 * expected.sum()


def test_a_fixed_point_is_one_of_batch_inference(corpus):
    """Two workers with a half of the documents each, and steps of whole halves."""
    job = lda(corpus, strategy="pvi", sharding="shard")
    passes = Ledger(200, 100, 150, 5, 2)
    job = job._replace(passes=passes, schedule=constant(0.3))
    take_turns(job, 2)
    v = first_of(job)
    documents = documents_of(corpus)
    batch = svi("mean_field", documents, v, ALPHA, ETA, [np.arange(200)], [1.0], n_sweeps=5)
    assert np.abs(batch - v).sum() < 1e-3 * v.sum()


@pytest.mark.parametrize("options", [
    {}, {"synchronous": True}, {"damping": 0.5}, {"synchronous": True, "damping": 0.5},
], ids=str)  # fmt: skip
def test_pvi_equals_batch_inference(options):
    """To one part in a million, a mixture in float64 of two workers with a half of the points."""
    rng = np.random.default_rng(0)
    means = np.array([[0.0, 0.0], [5.0, 0.0], [0.0, 5.0]])
    X = means[rng.integers(3, size=300)] + rng.normal(size=(300, 2))
    mixture = partial(DPSVIGaussianMixture, 3, random_state=0, most_blind=None)
    batch = mixture(engine="serial", learning_rate=1.0, batch_size=300, max_iter=300).fit(X)
    cluster = VirtualCluster(
        n_workers=2, timing=Timing(step=1.0, value=0.0), sharding="shard", strategy="pvi",
        strategy_options=options,
    )  # fmt: skip
    found = mixture(
        engine="simulated", cluster=cluster, learning_rate=0.5, batch_size=150, max_iter=300,
    ).fit(X)  # fmt: skip
    expected = batch._state.natural()
    assert expected.dtype == np.float64
    np.testing.assert_allclose(found._state.natural(), expected, rtol=1e-6)


def test_a_factor_has_the_weight_of_its_documents(corpus):
    first, second = (np.arange(200) % 2 == part for part in range(2))
    tokens = corpus.to_csr().toarray().astype(float)
    tokens = np.array([tokens[part].sum() for part in (first, second)])
    job = lda(corpus, n_passes=30, strategy="pvi", sharding="shard")
    job = job._replace(passes=Ledger(200, 10, 30, 5, 2), schedule=constant(0.05))
    master = take_turns(job, 2)
    state = master.strategy.state()
    held = [(state[f"scale_{k}"] * state[f"rows_{k}"]).sum() for k in (0, 1)]
    np.testing.assert_allclose(held, np.roll(tokens, 1), rtol=0.05)


def test_the_factor_of_a_lost_worker_goes_to_the_others(corpus):
    """Before and after, the factors sum to the parameters; and all passes are made."""
    job = lda(corpus, 6, constant(0.1), strategy="pvi")
    gaps = []

    def look(master, turns):
        if turns == 30:
            master.lose(2, "killed")
        state, parameters = master.strategy.state(), master.parameters
        workers = [name.removeprefix("scale_") for name in state if name.startswith("scale_")]
        held = sum(state[f"scale_{k}"] * state[f"rows_{k}"].astype(float) for k in workers)
        v = parameters.scale * parameters.state.shared.rows
        gaps.append(np.abs(held - v).sum() / v.sum())
        assert len(workers) == 3 - (turns >= 30)

    master = take_turns(job, 3, look)
    assert max(gaps) < 1e-5
    assert job.state.items == 6 * 200 and list(master.lost) == [2]
