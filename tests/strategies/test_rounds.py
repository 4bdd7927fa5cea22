"""Strategies that go in rounds against dense replays: local SGD in all its forms, DiLoCo."""

from types import SimpleNamespace

import numpy as np
import pytest
from reference.strategies import ETA, assert_close, first_of, lda, steps_of

from dpsvi import engines
from dpsvi.cluster.ranks.prepare import for_workers
from dpsvi.cluster.turns import take_turns
from dpsvi.strategies.local_sgd import shares_of
from dpsvi.training.ledger import Ledger, StepRange
from dpsvi.training.schedules import constant
from experiments.known_results.clients import Clients

ROUNDS = ["local_sgd", "diloco", "fedavg", "hierarchical"]


def mean_of_round(job, corpus, v, n_workers, t, b_steps):
    """Where workers end that all begin at v: the mean; each makes the next `b_steps` steps."""
    steps, step = steps_of(job, corpus)
    ends = []
    for worker in range(n_workers):
        u = v
        first = t + worker * b_steps
        for batch, rate in [(batch, rate) for batch, rate, *_ in steps[first : first + b_steps]]:
            u = step(u, batch, rate)
        ends.append(u)
    return sum(ends) / n_workers


@pytest.mark.parametrize("b_steps", [1, 2])
@pytest.mark.parametrize("n_workers", [2, 4])
def test_local_sgd_is_its_equations(corpus, n_workers, b_steps):
    """In rounds the mean of all ends; nobody reads what others of the same round have made."""
    job = lda(corpus, strategy="local_sgd")._replace(local_steps=b_steps)
    v, n_steps = first_of(job), 2 * job.passes.steps_a_pass
    for t in range(0, n_steps, n_workers * b_steps):
        v = mean_of_round(job, corpus, v, n_workers, t, b_steps)
    master = take_turns(job, n_workers)
    assert master.parameters.version == n_steps / (n_workers * b_steps)
    assert all(exchange.staleness == 0 for exchange in master.exchanges)
    assert_close(job, v)


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("eta, schedule", [(0.7, None), (1.0, constant(0.4))])
def test_diloco_is_its_equations(corpus, momentum, eta, schedule):
    """Nesterov on the two parts of the mean displacement; eta is reduced where it must be."""
    n_workers = 2
    options = {"momentum": momentum, "outer_rate": eta}
    job = lda(corpus, schedule=schedule, strategy="diloco", strategy_options=options)
    steps, step = steps_of(job, corpus)
    v, c, velocity, reduced = first_of(job), 0.0, 0.0, 0
    for t in range(0, len(steps), n_workers):
        mean = mean_of_round(job, corpus, v, n_workers, t, 1)
        taken = np.mean([rate for _, rate in steps[t : t + n_workers]])
        found = mean - v + taken * (v - ETA)  # the statistics of the displacement
        c, velocity = momentum * c + taken, momentum * velocity + found
        decay, target = taken + momentum * c, found + momentum * velocity
        rate = min(eta, 1 / decay)
        reduced += rate < eta
        v = v + rate * (target - decay * (v - ETA))
        assert np.all(v >= ETA * 0.999)
    take_turns(job, n_workers)
    assert_close(job, v)
    assert bool(reduced) == (momentum == 0.9 and eta == 1.0)


def test_diloco_without_momentum_and_of_rate_1_is_local_sgd(corpus):
    found = []
    for cluster in ({"strategy": "local_sgd"},
                    {"strategy": "diloco",
                     "strategy_options": {"momentum": 0, "outer_rate": 1}}):  # fmt: skip
        job = lda(corpus, **cluster)
        take_turns(job, 3)
        found.append(job.state.natural())
    np.testing.assert_allclose(*found, rtol=1e-4, atol=1e-5)


def test_federated_averaging_weighs_clients_by_their_items(corpus):
    """Shards of 98 and 97 documents, one local pass a round: so many items count in the mean."""
    some = corpus.select(slice(0, 195))
    job = lda(some, 3, constant(0.1), strategy="local_sgd", sharding="shard")
    job = for_workers(job, job.cluster, 2)._replace(local_steps=10, schedule=constant(0.1))
    master = take_turns(job, 2)
    rounds = [master.exchanges[i : i + 2] for i in range(0, len(master.exchanges), 2)]
    assert len(rounds) == 3 and all({e.worker for e in pair} == {1, 2} for pair in rounds)
    assert [sorted(e.n_items for e in pair) for pair in rounds] == [[97, 98]] * 3


@pytest.mark.parametrize("fraction, n_drawn", [(0.1, 1), (0.5, 2), (1.0, 4)])
def test_federated_averaging_is_its_equations(corpus, fraction, n_drawn):
    """Some of four clients a round, as drawn; each goes on in its own shard."""
    options, n, rate = {"fraction": fraction}, 4, 0.2
    job = lda(corpus, 3, constant(rate), strategy="fedavg", strategy_options=options)
    job = job._replace(passes=Ledger(200, 10, 3, 5, n), local_steps=2)
    v, (_, step) = first_of(job), steps_of(job, corpus)
    works = {
        k: [StepRange(epoch, k % n, first, min(first + 2, 5), 0)
            for epoch in range(3) for first in (0, 2, 4)] for k in range(1, n + 1)
    }  # fmt: skip
    sizes, n_rounds = [], 0
    while any(works.values()):
        able = [k for k in works if works[k]]
        draws = np.random.default_rng([n, n_rounds])
        ends, counts = [], []
        for k in draws.choice(able, min(n_drawn, len(able)), replace=False):
            items, u = job.passes.items(work := works[k].pop(0)), v
            for batch in np.split(items, np.arange(10, len(items), 10)):
                u = step(u, batch, rate)
            ends.append(u)
            counts.append(10 * work.n_steps)
        v = np.average(ends, axis=0, weights=counts)
        sizes.append(len(ends))
        n_rounds += 1
    master = take_turns(job, n)
    assert master.parameters.version == n_rounds and max(sizes) == n_drawn
    assert all(exchange.staleness == 0 for exchange in master.exchanges)
    assert_close(job, v)


@pytest.mark.parametrize("fraction, epochs", [(0.7, 1), (0.7, 3), (1.0, 2)])
def test_federated_averaging_of_unequal_clients_is_its_equations(corpus, fraction, epochs):
    """Three clients with documents of their own kind, 30, 50 and 120: E passes of each a round."""
    rate, n_passes = 0.1, 6
    own = np.split(np.argsort(corpus.to_csr().toarray()[:, :30].sum(axis=1)), [30, 80])
    options = {"fraction": fraction, "epochs": epochs}
    job = lda(corpus, schedule=constant(rate), strategy="fedavg", strategy_options=options)
    job = job._replace(passes=Clients(own, 1, 10, n_passes, 5), local_steps=12)
    v, (_, step) = first_of(job), steps_of(job, corpus)
    left, n_rounds, reported = {1: n_passes, 2: n_passes, 3: n_passes}, 0, []
    while able := [k for k in left if left[k]]:
        draws = np.random.default_rng([3, n_rounds])
        chosen = draws.choice(able, min(round(fraction * 3), len(able)), replace=False)
        ends, seen = dict.fromkeys(chosen, v), dict.fromkeys(chosen, 0)
        for _ in range(epochs):
            for k in [k for k in chosen if left[k]]:
                shard = k % 3
                work = StepRange(n_passes - left[k], shard, 0, len(own[shard]) // 10, 0)
                for batch in np.split(job.passes.items(work), work.n_steps):
                    ends[k] = step(ends[k], batch, rate)
                left[k] -= 1
                seen[k] += len(own[shard])
        v = np.average([ends[k] for k in chosen], axis=0, weights=[seen[k] for k in chosen])
        n_rounds += 1
        reported.append(len(chosen))
    master = take_turns(job, 3)
    assert master.strategy.state()["n_rounds"] == n_rounds
    assert max(reported) == round(fraction * 3) and job.state.items == n_passes * 200
    assert_close(job, v)


def test_the_clients_of_a_round_set_the_rates(corpus):
    """The mean of two of twenty clients moves by a half of what each of them moves."""
    job = lda(corpus, schedule=constant(0.1), strategy="fedavg")
    job = for_workers(job, job.cluster, 20)
    assert job.schedule(np.array([0]))[0] == pytest.approx(1 - 0.9**2)


def test_post_local_sgd_begins_with_single_steps(corpus):
    """Rounds of one step in the first half of the passes, then of four; as recorded, replayed."""
    job = lda(corpus, 4, strategy="local_sgd", strategy_options={"post_local": 0.5})
    job = job._replace(local_steps=4)
    v, (steps, step) = first_of(job), steps_of(job, corpus)
    master, t, sizes = take_turns(job, 2), 0, []
    for i in range(0, len(master.exchanges), 2):
        ends, counts = [], []
        for exchange in sorted(master.exchanges[i : i + 2], key=lambda e: e.worker):
            u = v
            for batch, rate in steps[t : t + exchange.n_steps]:
                u = step(u, batch, rate)
            t += exchange.n_steps
            ends.append(u)
            counts.append(exchange.n_items)
        sizes.append(exchange.n_steps)
        v = np.average(ends, axis=0, weights=counts)
    assert sizes[:20] == [1] * 20 and set(sizes[22:-1]) == {4}
    assert_close(job, v)


@pytest.mark.parametrize("every", [1, 3])
def test_hierarchical_local_sgd_is_its_equations(corpus, every):
    """Workers 1 and 3, and 2 and 4, in each round; all four in every third one."""
    options = {"groups": 2, "every": every}
    job = lda(corpus, 3, strategy="hierarchical", strategy_options=options)
    first, (steps, step) = first_of(job), steps_of(job, corpus)
    groups, reported = [first, first], []
    for n_round, t in enumerate(range(0, len(steps), 4), 1):
        ends = [step(groups[(k + 1) % 2], *steps[t + k]) for k in range(4)]
        groups = [(ends[1] + ends[3]) / 2, (ends[0] + ends[2]) / 2]
        reported.append(sum(groups) / 2)
        if n_round % every == 0:
            groups = [reported[-1]] * 2
    take_turns(job, 4)
    assert_close(job, reported[-1])


def test_one_group_is_local_sgd(corpus):
    found = []
    for cluster in ({"strategy": "local_sgd"},
                    {"strategy": "hierarchical", "strategy_options": {"groups": 1}}):  # fmt: skip
        job = lda(corpus, **cluster)
        take_turns(job, 3)
        found.append(job.state.natural())
    np.testing.assert_allclose(*found, rtol=1e-4, atol=1e-5)


def test_weights_are_shares_of_items():
    updates = [SimpleNamespace(n_items=n) for n in (30, 10)]
    np.testing.assert_allclose(shares_of(updates), [0.75, 0.25])


@pytest.mark.parametrize("strategy", ROUNDS)
def test_one_worker_of_a_round(corpus, strategy):
    """Alone, local SGD is serial SVI to the bit; DiLoCo is not."""
    ours, theirs = (lda(corpus, 4, constant(0.2), strategy=strategy) for _ in range(2))
    take_turns(ours, 1)
    engines.get("serial").fit(theirs)
    assert np.array_equal(ours.state.natural(), theirs.state.natural()) == (strategy != "diloco")


@pytest.mark.parametrize("strategy, options", [
    *((name, {}) for name in ROUNDS), ("fedavg", {"fraction": 0.5, "epochs": 3}),
    ("pvi", {"synchronous": True}),
])  # fmt: skip
def test_a_round_goes_on_without_a_lost_worker(corpus, strategy, options):
    """Dropped in the middle of a round, with others waiting: no hang, and no step is lost."""
    job = lda(corpus, 4, strategy=strategy, strategy_options=options)
    dropped = {5: 2, 12: 4}

    def drop(master, turns):
        if turns in dropped:
            master.lose(dropped[turns], "killed")

    master = take_turns(job, 4, drop)
    assert sorted(master.lost) == [2, 4] and master.passes.finished
    assert job.state.items == 4 * 200
