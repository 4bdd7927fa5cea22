"""SDA-Bayes: the statistics of all items, each once, whatever the rates are."""

import numpy as np
import pytest
from reference.strategies import BATCH, ETA, assert_close, first_of, lda, steps_of

from dpsvi import VirtualCluster, engines
from dpsvi.cluster.turns import take_turns
from dpsvi.cluster.virtual import Timing
from dpsvi.training.schedules import constant, robbins_monro


@pytest.mark.parametrize("n_workers", [1, 3])
@pytest.mark.parametrize("n_passes", [1, 2])
@pytest.mark.parametrize("schedule", [robbins_monro(50.0, 0.7), constant(0.9)])
def test_sda_is_its_equations(corpus, n_workers, n_passes, schedule):
    """Each batch at what its worker had read; the first rows are gone after a pass."""
    job = lda(corpus, n_passes, schedule, strategy="sda")
    guess, (steps, step) = first_of(job) - ETA, steps_of(job, corpus)
    found, left = 0.0, 1.0
    seen = [first_of(job)] * n_workers
    for t, (batch, _) in enumerate(steps):
        everything = step(seen[t % n_workers], batch, 1.0) - ETA
        found = found + BATCH / 200 * everything
        left = max(0.0, left - BATCH / 200)
        seen[t % n_workers] = ETA + found + left * guess
    take_turns(job, n_workers)
    assert_close(job, ETA + found)
    assert (job.state.natural() - ETA)[:, :4].sum() == pytest.approx(
        n_passes * corpus.value.sum(), rel=1e-3
    )


def test_what_has_been_fitted_is_kept(corpus):
    """A second fit of the same parameters adds its items to those of the first."""
    job = lda(corpus, 1, strategy="sda")
    for _ in range(2):
        take_turns(job, 2)
        job = lda(corpus, 1, strategy="sda")._replace(state=job.state)
    tokens = (job.state.natural() - ETA)[:, :4].sum()
    assert tokens == pytest.approx(2 * corpus.value.sum(), rel=1e-3)


def test_more_than_one_pass_is_warned_of(corpus, caplog):
    cluster = VirtualCluster(n_workers=2, timing=Timing(step=1.0, value=0.0), strategy="sda")
    for n_passes in (1, 2):
        engines.get("simulated").fit(lda(corpus, n_passes)._replace(cluster=cluster))
        assert ("is for one pass over the data, not 2: items that are seen again" in caplog.text
                ) == (n_passes == 2)  # fmt: skip


def test_updates_are_single_steps(corpus):
    job = lda(corpus, 1, strategy="sda")._replace(local_steps=8)
    master = take_turns(job, 2)
    assert {exchange.n_steps for exchange in master.exchanges} == {1}
    assert np.all(job.state.natural()[:, :4] >= ETA * 0.999)
