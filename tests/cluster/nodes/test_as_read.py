"""Decay within a worker: exact, or of what a thread has read, as in line 8 of Alg. 4."""

import numpy as np
import pytest
from tools.node_jobs import PROBLEMS, STRATEGIES, job, mixture, problem

from dpsvi import engines
from dpsvi.cluster.turns import take_turns
from dpsvi.training.schedules import constant, robbins_monro


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("n_workers", [1, 3])
def test_one_thread_decays_what_it_has_read(corpus, name, strategy, n_workers):
    """p = 1: nothing is stale within a worker, so both forms of line 8 of Alg. 4 are one."""
    found = []
    for local_decay in ("exact", "as_read"):
        state, items = problem(name, corpus)
        work = job(
            state, items, schedule=robbins_monro(20.0, 0.7), local_steps=4, strategy=strategy,
            local_decay=local_decay,
        )  # fmt: skip
        take_turns(work, n_workers)
        found.append((state.natural(), state.scale * state.shared.totals.sum(axis=0)))
    for exact, as_read in zip(*found, strict=True):
        np.testing.assert_allclose(as_read, exact, rtol=1e-3, atol=1e-3 * np.abs(exact).mean())


@pytest.mark.parametrize("name", PROBLEMS)
def test_threads_that_decay_what_they_have_read_learn_as_well(corpus, name):
    """Real threads, whose writes race; the parameters stay in the domain of the model."""
    found = []
    for local_decay in ("exact", "as_read"):
        state, items = problem(name, corpus)
        state.shared = state.shared._replace(totals=np.vstack([state.shared.totals] * 4))
        state.recount()
        work = job(
            state, items, schedule=constant(0.02), local_steps=4, n_jobs=4, n_passes=10,
            local_decay=local_decay,
        )  # fmt: skip
        take_turns(work, 2)
        assert not state.model.nonnegative or np.all(state.natural() >= state.model.prior)
        found.append(state.natural())
    exact, as_read = found
    assert np.abs(as_read - exact).sum() < 0.25 * np.abs(exact).sum()


def test_a_single_row_is_read_and_over_written(corpus):
    """In the exact form its threads read totals that lose nothing; here it is the row itself."""
    from dpsvi.cluster.virtual import Timing, VirtualCluster

    counts = {}
    for local_decay in ("exact", "as_read"):
        for lost in (0.0, 0.2):
            state, items = mixture()
            cluster = VirtualCluster(
                timing=Timing(step=1.0, value=0.0, lost=lost), local_decay=local_decay
            )
            work = job(state, items, schedule=constant(0.05), n_jobs=3, local_steps=4)
            engines.get("simulated").fit(work._replace(cluster=cluster))
            counts[local_decay, lost] = state.natural()
    assert np.array_equal(counts["exact", 0.0], counts["exact", 0.2])
    assert not np.allclose(counts["as_read", 0.0], counts["as_read", 0.2], rtol=1e-3)
    assert not np.allclose(counts["as_read", 0.0], counts["exact", 0.0], rtol=1e-6)
    np.testing.assert_allclose(counts["as_read", 0.0], counts["exact", 0.0], rtol=0.1, atol=5)
