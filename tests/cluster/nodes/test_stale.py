"""Updates that are stale, against eq. (4) in float64: what the master makes of them."""

import numpy as np
import pytest
from reference.lda import FixedPasses, documents_of, svi
from tools.node_jobs import ALPHA, ETA, STRATEGIES, K, job, lda

from dpsvi.cluster.turns import take_turns
from dpsvi.models.lda.model import LOCAL_STEPS
from dpsvi.training.schedules import constant, robbins_monro


def asysg(corpus, local_step, first, n_workers, batches, rates, strategy):
    """AsySG (p = B = 1) by eq. (4), dense and in float64: worker t mod n made step t."""
    v, seen = first.astype(np.float64), [first.astype(np.float64)] * n_workers
    for t, (batch, rate) in enumerate(zip(batches, rates, strict=True)):
        w = seen[t % n_workers]
        u = svi(local_step, documents_of(corpus), w, ALPHA, ETA, [batch], [rate], n_sweeps=5)
        if strategy == "displacement":
            v = v + (u - w)
        else:
            v = ETA + (1 - rate) * (v - ETA) + (u - ETA - (1 - rate) * (w - ETA))
        seen[t % n_workers] = v
    return v


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("local_step", LOCAL_STEPS)
@pytest.mark.parametrize("n_workers", [2, 4])
def test_one_step_a_turn_is_asysg(corpus, local_step, n_workers, strategy):
    state, items = lda(corpus, local_step)
    first = state.natural()[:, :K].T
    work = job(state, items, schedule=robbins_monro(50.0, 0.7), strategy=strategy)
    steps = range(work.passes.steps_a_pass)
    batches = [FixedPasses.batch(work.passes, epoch, step) for epoch in range(2) for step in steps]
    rates = work.schedule(np.arange(len(batches)))
    expected = asysg(corpus, local_step, first, n_workers, batches, rates, strategy)
    master = take_turns(work, n_workers)
    found = state.natural()[:, :K].T
    np.testing.assert_allclose(found, expected, rtol=5e-3, atol=5e-3)
    assert np.abs(found - expected).sum() < 2e-4 * expected.sum()
    later = [e.staleness for e in master.exchanges[n_workers:-n_workers]]
    assert set(later) == {n_workers - 1}


@pytest.mark.parametrize("rate", [1.0, 0.5])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_m_updates_are_one_global_step(corpus, strategy, rate):
    """M = n = 2: both start from the same v; sum (gamma 1) and mean (gamma 1/2)."""
    state, items = lda(corpus, "mean_field")
    first = state.natural()[:, :K].T.astype(np.float64)
    work = job(
        state, items, schedule=constant(0.1), n_passes=1, strategy=strategy, master_batch=2,
        global_rate=rate, batch_size=100,
    )  # fmt: skip
    ends = [
        svi("mean_field", documents_of(corpus), first, ALPHA, ETA,
            [FixedPasses.batch(work.passes, 0, i)], [0.1], n_sweeps=5)
        for i in range(2)
    ]  # fmt: skip
    master = take_turns(work, 2)
    assert master.parameters.version == 1 and len(master.exchanges) == 2
    if strategy == "displacement":
        expected = first + rate * sum(end - first for end in ends)
    else:
        a, expected = 1 - rate * 0.1, first
        for end in ends:
            expected = ETA + a * (expected - ETA) + rate * (end - ETA - 0.9 * (first - ETA))
    np.testing.assert_allclose(state.natural()[:, :K].T, expected, rtol=2e-3, atol=1e-3)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_stale_updates_across_a_fold_of_the_scale(corpus, strategy):
    """The same fit, with the master's scale folded in before every update or hardly ever."""
    results = []
    for often in (False, True):
        state, items = lda(corpus, "mean_field")
        work = job(state, items, schedule=constant(0.05), strategy=strategy)

        def fold(master, turns, often=often):
            if often:
                master.parameters.renormalise()

        take_turns(work, 3, fold)
        results.append(state.natural())
    np.testing.assert_allclose(*results, rtol=1e-3, atol=1e-4)
