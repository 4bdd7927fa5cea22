"""How many steps a worker is given at a time."""

import numpy as np
import pytest
from reference.lda import TopicCorpus

from dpsvi import DPSVILDA, VirtualCluster, strategies
from dpsvi.cluster import Cluster
from dpsvi.cluster.nodes.allotment import LOCAL_STEPS, Allotment
from dpsvi.cluster.virtual import Timing
from dpsvi.kernels.jit import as_items
from dpsvi.models.lda.model import make_model
from dpsvi.training.job import Job
from dpsvi.training.ledger import Ledger
from dpsvi.training.schedules import of_parts, robbins_monro
from dpsvi.training.state import State

FLOAT = np.dtype(np.float32)


def allotment(n_steps=20_000, *, most_blind=0.3, start=10_000, rate=0.1, **fields):
    """Of a fit that has come to step `start` of a pass of so many, its rates small enough."""
    model = make_model(3, 2, 0.1, 0.1, local_step="collapsed", n_sweeps=5, tol=0.0)
    state = State.start(model, np.random.default_rng(0), 1)
    items = as_items(np.zeros(n_steps + 1, int), [], [], FLOAT)
    passes = Ledger(n_steps, 1, 5, 0, 1)
    passes.grant(0, start)
    job = Job(state, items, passes, robbins_monro(1.0, 0.99, rate), most_blind=most_blind, **fields)
    job = job if job.cluster is not None else job._replace(cluster=Cluster())
    return Allotment(job, strategies.get("decay")())


@pytest.mark.parametrize("n_workers", [1, 2, 8])
def test_the_default_is_large(n_workers):
    assert allotment().steps(1, n_workers) == LOCAL_STEPS


@pytest.mark.parametrize("n_workers", [1, 2, 8])
def test_no_more_than_half_a_pass_is_in_flight(n_workers):
    given = n_workers * allotment(800, start=700).steps(1, n_workers)
    assert 0.9 * 400 <= given <= 400


def test_without_a_bound_on_the_rates_less_is_in_flight():
    """Constant rates: nothing else keeps the steps that do not see each other few."""
    free = allotment(800, most_blind=None, start=700)
    assert free.steps(1, 2) == 40
    assert free.steps(1, 1) == 400, "nobody is there whose steps it could miss"


@pytest.mark.parametrize("n_workers", [2, 8, 16])
def test_large_rates_bound_the_steps_that_a_worker_does_not_see(n_workers):
    early = allotment(start=200, rate=1.0)
    rate = robbins_monro(1.0, 0.99)(np.array([200]))[0]
    unseen = (n_workers - 1) * early.steps(1, n_workers) * rate
    assert 0.15 < unseen <= 0.3


@pytest.mark.parametrize("n_workers", [2, 8, 64])
@pytest.mark.parametrize("start", [20, 200, 2000, 10_000])
def test_while_the_rate_of_a_cut_batch_is_large_less_is_in_flight(start, n_workers):
    """What a worker does not see weighs less, the larger the rate of a whole batch is."""
    parts, rate = 8, 0.3
    cut = allotment(start=start, rate=rate, parts=parts)
    of_step = float(robbins_monro(1.0, 0.99, rate)(np.array([start]))[0])
    most = 0.3 * min(1.0, 0.01 / (parts * of_step))
    unseen = (n_workers - 1) / n_workers * cut.room(n_workers) * of_step
    assert most / 2 <= unseen <= most or cut.room(n_workers) == 1
    assert cut.room(n_workers) <= allotment(start=start, rate=rate).room(n_workers)


def test_rates_that_fall_no_further_do_not_bound_what_is_in_flight():
    """The rates of short corpora stay large; a worker would wait in all of their fit."""
    falling = robbins_monro(1.0, 0.99, 0.3, least=0.02)
    rooms = []
    for start, parts in ((20, 8), (5000, 8), (5000, 1)):
        one = allotment(start=start, parts=parts)
        one.job = one.job._replace(schedule=of_parts(falling, 8))
        rooms.append(one.room(2))
    assert 1 < 4 * rooms[0] < rooms[1] == rooms[2]


def test_a_slow_worker_gets_fewer_steps():
    one = allotment()
    for seconds in (0.1, 1.0):
        for worker, slower in ((1, 1), (2, 10), (3, 1)):
            one.learn(worker, 100, 0.5, slower * seconds)
    assert one.steps(1, 4) == one.steps(3, 4) == LOCAL_STEPS
    assert one.steps(2, 4) == LOCAL_STEPS // 10
    assert one.steps(4, 4) == LOCAL_STEPS, "nothing is known of it"


def test_of_few_steps_none_is_lost_to_a_worker_that_is_hardly_slower():
    one = allotment(16, start=8)
    before = one.steps(1, 4)
    for worker, pace in ((1, 96), (2, 100), (3, 101), (4, 70)):
        one.learn(worker, pace, 0.5, 1.0)
    assert before == 2
    assert [one.steps(worker, 4) for worker in (1, 2, 3, 4)] == [2, 2, 2, 1]


def test_a_lost_worker_is_no_measure_of_the_others():
    one = allotment()
    for worker, steps in ((1, 100), (2, 100), (3, 500), (4, 500), (5, 500)):
        one.learn(worker, steps, 0.5, 1.0)
    assert one.steps(1, 5) == round(LOCAL_STEPS / 5)
    for worker in (3, 4, 5):
        one.forget(worker)
    assert one.steps(1, 2) == LOCAL_STEPS


def test_what_is_asked_for_is_given():
    one = allotment(800, n_jobs=3, local_steps=100)
    one.learn(1, 100, 0.5, 1.0)
    one.learn(2, 100, 0.5, 10.0)
    assert one.steps(1, 2) == one.steps(2, 2) == 300


@pytest.fixture(scope="module")
def corpus():
    return TopicCorpus(4, n_words=90, n_documents=960, n_tokens=20, alpha=0.1, seed=1).corpus()


def fit(corpus, **params):
    return DPSVILDA(
        4, batch_size=4, max_iter=2, random_state=0, doc_topic_prior=0.1, topic_word_prior=0.1,
        learning_decay=0.6, **params,
    ).fit(corpus)  # fmt: skip


def test_the_report_says_which_b_and_p_were_used(corpus, caplog):
    """And a warning that they were not those that were asked for, and why."""
    cluster = VirtualCluster(n_workers=4, timing=Timing(step=1e-2, value=1e-5))
    found = fit(corpus, engine="simulated", cluster=cluster, n_jobs=2, local_steps=16).exchanges_
    steps = sum(e.n_steps for e in found["exchanges"])
    assert steps == 2 * 240
    assert min(found["local_steps"]) == 1 and 16 not in found["local_steps"]
    assert found["withheld"] > 0
    assert sum(found["threads"].values()) == len(found["exchanges"])
    assert set(found["threads"]) == {1, 2}
    assert caplog.text.count("most_blind=None gives all") == 1
    assert "local_steps=16 of 2 threads each are 32 steps, but a worker of 4 gets" in caplog.text


@pytest.mark.parametrize("n_workers", [1, 5])
def test_b_and_p_are_used_where_nothing_is_to_bound_them(corpus, caplog, n_workers):
    cluster = VirtualCluster(n_workers=n_workers, timing=Timing(step=1e-2, value=1e-5))
    found = fit(
        corpus, engine="simulated", cluster=cluster, n_jobs=4, local_steps=12, most_blind=None
    ).exchanges_
    assert found["local_steps"] == {12.0: 10} and found["threads"] == {4: 10}
    assert found["withheld"] == 0 and "most_blind" not in caplog.text


def test_threads_that_did_not_work_are_reported(corpus, caplog):
    free = fit(corpus, n_jobs=2, local_steps=10, most_blind=None)
    assert free.exchanges_["threads"] == {2: 480} and "most_blind" not in caplog.text
    bound = fit(corpus, n_jobs=2, local_steps=10)
    found = bound.exchanges_["threads"]
    alone = np.sum(bound._schedule()(np.arange(480)) > 0.3 / 2)
    assert found == {1: alone, 2: 480 - alone} and 0 < alone < 480
    assert "local_steps=10 of 2 threads each, but 1 at a time" in caplog.text


@pytest.mark.parametrize("learning_rate", [None, 0.01])
def test_a_slow_rank_does_not_set_the_pace_of_a_short_fit(learning_rate):
    """Three passes only: whoever holds the last steps must not hold many (times simulated)."""
    corpus = TopicCorpus(4, n_words=90, n_documents=4000, n_tokens=20, alpha=0.1, seed=1).corpus()

    def seconds(stragglers):
        cluster = VirtualCluster(
            n_workers=4, stragglers=stragglers, timing=Timing(step=1e-2, value=1e-5)
        )
        lda = DPSVILDA(
            4, engine="simulated", cluster=cluster, max_iter=3, batch_size=4, random_state=0,
            learning_rate=learning_rate, doc_topic_prior=0.1, topic_word_prior=0.1,
        ).fit(corpus)  # fmt: skip
        return lda.exchanges_["seconds"]

    assert seconds((0.25, 10.0)) < seconds((0.0, 1.0)) / 0.7
