"""Rates that staleness makes too large."""

import numpy as np
import pytest
from tools.node_jobs import ETA, corpus_alike, job, lda, perplexity

from dpsvi import engines
from dpsvi.cluster.turns import take_turns
from dpsvi.errors import UnstableError
from dpsvi.strategies.displacement import stable_below
from dpsvi.training.schedules import constant


def test_stable_rates():
    """x_{t+1} = x_t - a x_{t-D} shrinks just below the bound and grows just above it."""
    for delay in range(5):
        for factor, stable in ((0.95, True), (1.05, False)):
            a, x = factor * stable_below(delay), [1.0] * (delay + 1)
            for _ in range(2000):
                x.append(x[-1] - a * x[-1 - delay])
            assert (max(map(abs, x[-20:])) < 1e-3) == stable


def test_the_displacement_refuses_or_reduces_an_unstable_rate(corpus, caplog):
    """Six workers with rate 0.7: a = 0.7 is above the 0.285 that staleness 5 allows."""
    settings = dict(schedule=constant(0.7), strategy="displacement")
    with pytest.raises(UnstableError, match=r"staleness \d.*less than \d.\d+ is stable"):
        take_turns(job(*lda(corpus, "mean_field"), strict=True, **settings), 6)
    serial, items = lda(corpus, "mean_field")
    engines.get("serial").fit(job(serial, items, n_passes=4, **settings))
    state, items = lda(corpus, "mean_field")
    report = {}
    take_turns(job(state, items, n_passes=4, report=report, **settings), 6).report()
    assert "it is reduced" in caplog.text
    assert report["reduced"] > 0.9 * report["global_steps"], "in all but the first steps"
    assert np.all(state.natural() >= np.float32(ETA)), "still a Dirichlet parameter"
    assert perplexity(state, corpus) < perplexity(serial, corpus) < 0.7 * corpus_alike(corpus)


def test_the_decay_strategy_stays_valid_at_any_staleness(corpus):
    state, items = lda(corpus, "mean_field")
    take_turns(job(state, items, schedule=constant(0.9), n_passes=4), 16)
    assert np.all(state.natural() >= np.float32(ETA))
    tokens = state.natural().sum(dtype=np.float64) - ETA * np.prod(state.model.shape)
    assert tokens == pytest.approx(corpus.n_tokens, rel=0.3)
