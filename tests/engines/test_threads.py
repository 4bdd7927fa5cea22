"""Several threads: they run at once, lose little and learn as well as one."""

import threading
import time

import numpy as np
import pytest
from reference.lda import FixedPasses, TopicCorpus
from tools.engine_fits import ALPHA, ETA, K, fit_lda, toy

from dpsvi import engines
from dpsvi.engines import fit
from dpsvi.models.lda.model import LOCAL_STEPS
from dpsvi.training.job import Job
from dpsvi.training.schedules import constant
from dpsvi.training.state import State


def wait_for_the_other(shared, scale, hyper, items, batch, work):
    """Item d raises flag d and waits until the flag of its partner is up, within limits."""
    for d in batch:
        partner = d + 1 if d % 2 == 0 else d - 1
        shared.item_memory[d, 0] = 1
        for _ in range(int(hyper[0])):
            shared.item_memory[d, 1] += 1
            if shared.item_memory[partner, 0] == 1:
                break
        shared.item_memory[d, 2] = shared.item_memory[partner, 0]
    return 0


def compute_for_long(shared, scale, hyper, items, batch, work):
    for d in batch:
        x = 0.5
        for _ in range(int(hyper[0])):
            x = 3.7 * x * (1 - x)
        shared.item_memory[d, 0] = x
    return 0


def test_two_threads_run_at_the_same_time():
    """Each of two items waits for the other: with a lock, or one after the other, neither ends."""
    model, items = toy(wait_for_the_other, 20, hyper=3e9)
    state = State.start(model, None, 2, 20)
    passes = FixedPasses(np.arange(20), 1, 1)
    engines.get("threads").fit(Job(state, items, passes, constant(0.5), 2))
    assert np.all(state.shared.item_memory[:, 2] == 1)


@pytest.mark.parametrize("engine", ["serial", "threads"])
def test_the_loop_does_not_hold_the_gil(engine):
    model, items = toy(compute_for_long, 4, hyper=5e7)
    state = State.start(model, None, 1, 4)
    ticks, ended = [], threading.Event()

    def tick():
        while not ended.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    settings = dict(schedule=constant(0.5), seed=0, engine=engine)
    fit(state, items, batch_size=4, n_passes=0, **settings)  # compiles
    ticker = threading.Thread(target=tick)
    ticker.start()
    start = time.perf_counter()
    fit(state, items, batch_size=4, n_passes=1, **settings)
    stop = time.perf_counter()
    ended.set()
    ticker.join()
    during = sum(start < t < stop for t in ticks)
    assert stop - start > 0.01, "too short to tell"
    assert during >= 3, "a Python thread should have had its turn"


@pytest.fixture(scope="module")
def zipf():
    """Many short documents over few words: the head of the vocabulary is in every batch."""
    return TopicCorpus(K, n_words=500, n_documents=6000, n_tokens=60, alpha=0.1, seed=1).corpus()


@pytest.mark.parametrize("n_words, bound", [(500, 0.05), (20_000, 0.01)])
def test_few_writes_are_lost(n_words, bound):
    """RACE by design: what over-writes lose, and what the column totals then drift by.

    Most is lost where all words are in every batch of both threads, on cores that really work
    side by side.  A thread that the system stops in the middle of a write undoes what others wrote
    meanwhile, however much that is: so the median counts.
    """
    corpus = TopicCorpus(K, n_words, n_documents=6000, n_tokens=60, alpha=0.1, seed=1).corpus()
    drifts, both_had_work = [], False
    for _ in range(9):
        state = fit_lda(corpus, n_passes=3, n_jobs=2, batch_size=16)
        shared = state.shared
        totals, found = shared.totals.sum(axis=0), shared.rows.sum(axis=0, dtype=np.float64)
        drifts.append(np.abs(totals - found)[:K].sum() / totals[:K].sum())
        both_had_work |= shared.totals[1].sum() > 0
    assert both_had_work and np.median(drifts) < bound

    state.recount()
    found = state.shared.rows.sum(axis=0, dtype=np.float64)
    assert np.array_equal(state.shared.totals.sum(axis=0), found)


@pytest.mark.parametrize("local_step", LOCAL_STEPS)
def test_two_threads_learn_as_well_as_one(zipf, local_step):
    """Bound per token of the training documents: within the spread of the order of documents."""
    from dpsvi.evaluation.completion import completion_perplexity

    def log_likelihood(**settings):
        state = fit_lda(zipf, local_step, n_passes=3, batch_size=16, **settings)
        lam = np.maximum(state.natural()[:, :K], ETA)
        return completion_perplexity(lam / lam.sum(axis=0), zipf, ALPHA).log_likelihood

    assert log_likelihood(n_jobs=2) == pytest.approx(log_likelihood(), abs=0.02)
