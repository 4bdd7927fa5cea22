"""Elastic averaging: its synchronous form, with momentum, and where each of them is stable."""

import numpy as np
import pytest
from reference.strategies import ETA, K, assert_close, first_of, lda, steps_of

from dpsvi.cluster.turns import take_turns
from dpsvi.training.schedules import constant


def nesterov(x, change, taken, momentum, m):
    """Where x goes by ``d + delta m``, both parts of which are reduced if they forget too much."""
    c, velocity = m
    found = change + taken * (x - ETA)
    c, velocity = momentum * c + taken, momentum * velocity + found
    decay, target = taken + momentum * c, found + momentum * velocity
    rate = min(1.0, 1 / decay)
    return x + rate * (target - decay * (x - ETA)), (c, velocity)


@pytest.mark.parametrize("n_workers", [1, 3])
@pytest.mark.parametrize("synchronous", [False, True])
@pytest.mark.parametrize("momentum, schedule", [(0.0, None), (0.5, None), (0.9, constant(0.3))])
def test_elastic_averaging_is_its_equations(corpus, n_workers, synchronous, momentum, schedule):
    options = {"alpha": 0.3, "momentum": momentum, "synchronous": synchronous}
    job = lda(corpus, 3, schedule, strategy="elastic", strategy_options=options)
    centre = first_of(job)
    steps, step = steps_of(job, corpus)
    replicas, velocities = [centre] * n_workers, [(0.0, 0.0)] * n_workers
    together = n_workers if synchronous else 1
    for t in range(0, len(steps), together):
        old, moved = centre, 0.0
        for i, (batch, rate) in enumerate(steps[t : t + together], t):
            k = i % n_workers
            x = step(replicas[k], batch, rate)
            x, velocities[k] = nesterov(
                replicas[k], x - replicas[k], rate, momentum, velocities[k]
            )  # fmt: skip
            replicas[k], moved = x - 0.3 * (x - old), moved + 0.3 * (x - old)
        centre = old + moved
        assert np.all(centre >= ETA * 0.999)
    master = take_turns(job, n_workers)
    assert_close(job, centre)
    for worker, expected in enumerate(replicas, 1):
        state = master.strategy.state()
        rows = state[f"scale_{worker}"] * state[f"rows_{worker}"][:, :K].T + ETA
        assert np.abs(rows - expected).sum() < 2e-4 * expected.sum()
    if synchronous:
        assert all(exchange.staleness == 0 for exchange in master.exchanges)


def round_robin(eta, alpha, n, pull_first):
    """What one worker after the other makes of (x_1, ..., x_n, centre), with targets of 0."""
    whole = np.eye(n + 1)
    for i in range(n):
        one = np.eye(n + 1)
        stepped = 1 - eta
        if pull_first:  # the authors': both from the same point
            one[i, i], one[i, n] = 1 - eta - alpha, alpha
            one[n, i], one[n, n] = alpha, 1 - alpha
        else:
            one[i, i], one[i, n] = (1 - alpha) * stepped, alpha
            one[n, i], one[n, n] = alpha * stepped, 1 - alpha
        whole = one @ whole
    return np.abs(np.linalg.eigvals(whole)).max()


@pytest.mark.parametrize("n", [1, 4])
@pytest.mark.parametrize("alpha", [0.05, 0.3, 0.6, 0.7, 0.95])
@pytest.mark.parametrize("eta", [0.01, 0.5, 0.9, 1.0])
def test_every_rate_is_stable(n, alpha, eta):
    """Also beyond the bound of the authors' form, which is sharp."""
    assert round_robin(eta, alpha, n, pull_first=False) <= 1
    bound = (4 - 2 * eta) / (4 - eta)
    assert (round_robin(eta, alpha, n, pull_first=True) <= 1) == (alpha <= bound)


def test_a_centre_that_would_take_too_much_is_refused(corpus):
    options = {"alpha": 0.4, "synchronous": True}
    job = lda(corpus, strategy="elastic", strategy_options=options)
    with pytest.raises(ValueError, match="stable for alpha < 1 / n, got 0.4 for 3 workers"):
        take_turns(job, 3)
    assert take_turns(job, 2).passes.finished


def test_a_round_goes_on_without_a_lost_worker(corpus):
    job = lda(corpus, 4, strategy="elastic", strategy_options={"synchronous": True})

    def drop(master, turns):
        if turns == 5:
            master.lose(2, "killed")

    master = take_turns(job, 3, drop)
    assert master.passes.finished and job.state.items == 4 * 200
