"""DOWNPOUR against a dense replay."""

import numpy as np
import pytest
from reference.strategies import ETA, assert_close, first_of, lda, steps_of

from dpsvi.cluster.turns import take_turns
from dpsvi.training.schedules import constant, robbins_monro


@pytest.mark.parametrize("n_workers", [1, 2, 5])
@pytest.mark.parametrize("schedule", [robbins_monro(50.0, 0.7), constant(0.05)])
def test_downpour_is_its_equations(corpus, n_workers, schedule):
    """Each of the workers, in turn, adds how far it came from what it had read."""
    job = lda(corpus, schedule=schedule, strategy="downpour")
    v = first_of(job)
    steps, step = steps_of(job, corpus)
    seen = [v] * n_workers
    for t, (batch, rate) in enumerate(steps):
        w = seen[t % n_workers]
        v = np.maximum(v + step(w, batch, rate) - w, ETA)
        seen[t % n_workers] = v
    master = take_turns(job, n_workers)
    assert_close(job, v)
    assert master.strategy.reduced == 0


def test_downpour_is_the_displacement_strategy_of_rate_1_bit_for_bit(corpus):
    found = []
    for strategy in ("downpour", "displacement"):
        job = lda(corpus, schedule=constant(0.6), strategy=strategy)
        assert take_turns(job, 6).strategy.reduced > 0, "as stable as that"
        found.append(job.state.natural())
    assert np.array_equal(*found)
