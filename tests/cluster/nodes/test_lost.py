"""Workers that are lost, break or have another problem: no item is lost or doubled."""

import json

import numpy as np
import pytest
from tools.node_jobs import BATCH, job, lda, toy

from dpsvi.cluster import Cluster
from dpsvi.cluster.nodes.problem import check_same, describe
from dpsvi.cluster.nodes.worker import Worker
from dpsvi.cluster.transports.memory import Memory
from dpsvi.cluster.transports.messages import deliver
from dpsvi.cluster.turns import exchange, receive, take_turns
from dpsvi.errors import DivergedError, DpsviError, LostRankError
from dpsvi.training.ledger import Ledger
from dpsvi.training.state import State


@pytest.mark.parametrize("n_shards", [1, 3])
@pytest.mark.parametrize("prefetch", [False, True])
@pytest.mark.parametrize("lost", [{}, {7: 2}, {0: 1, 9: 3}])
@pytest.mark.parametrize("local_steps", [1, 4, None])
def test_no_item_is_lost_or_doubled(n_shards, prefetch, lost, local_steps):
    """In every pass, on any number of workers, with workers lost on the way."""
    state, items = toy(203)
    work = job(
        state, items, n_passes=3, n_shards=n_shards, prefetch=prefetch, local_steps=local_steps,
        batch_size=5,
    )  # fmt: skip

    def lose(master, turns):
        if turns in lost:
            master.lose(lost[turns], "it was told to")

    master = take_turns(work, 3, lose)
    assert np.all(state.natural() == 3)
    assert state.items == 3 * 203 and work.passes.finished
    assert set(master.lost) == set(lost.values())


def break_at_seven(shared, scale, hyper, items, batch, work):
    n = 0
    for d in batch:
        work.touched[n] = items.index[items.offsets[d]]
        for k in range(work.stats.shape[1]):
            work.stats[n, k] = hyper[0] if d == 7 else 1
        n += 1
    return n


def test_statistics_that_are_no_numbers_never_reach_the_master():
    state, items = toy(50, break_at_seven, hyper=np.nan)
    with pytest.raises(DivergedError, match="NaN or infinite"):
        take_turns(job(state, items, batch_size=2), 2)
    assert np.all(np.isfinite(state.natural()))


def test_a_worker_with_another_problem_is_named(corpus):
    work = job(*lda(corpus, "collapsed"))
    from dpsvi.cluster.nodes.master import Master

    master = Master(work, 1)
    other = Worker(work._replace(passes=Ledger(150, BATCH, 2, 5)))
    memory = Memory({0: master, 3: other})
    with pytest.raises(DpsviError, match=r"rank 3 .*items is 150 there, 200 on rank 0"):
        exchange(other, memory.at(3), lambda: receive(master, memory.at(0)))


def of_model(work, **change):
    """The same parameters, of another model."""
    return {"state": State(work.state.model._replace(**change), work.state.shared)}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda work: {"cluster": Cluster(strategy="displacement")}, "strategy is displacement"),
        (lambda work: {"cluster": Cluster(statistics="bfloat16")}, "statistics is bfloat16"),
        (lambda work: {"schedule": lambda t: 2 * work.schedule(t)}, "rates of steps is"),
        (lambda work: of_model(work, prior=2 * work.state.model.prior), "sum of the prior is"),
        (lambda work: of_model(work, hyper=2 * work.state.model.hyper), "sum of hyper is"),
    ],
)
def test_what_would_not_be_seen_in_the_data_is_compared(corpus, change, named):
    work = job(*lda(corpus, "collapsed"))
    mine, theirs = describe(work), describe(work._replace(**change(work)))
    check_same(mine, 0, 3, describe(work))
    with pytest.raises(DpsviError, match=f"rank 3 fits another problem: {named} .* on rank 0"):
        check_same(mine, 0, 3, json.loads(json.dumps(theirs)))  # as it comes in a message


def test_peers_begin_with_the_same_parameters(corpus):
    """Those with a master may begin as they like: they get its own."""
    work, other = (job(*lda(corpus, "collapsed")) for _ in range(2))
    other.state.shared.rows[:] *= 2
    check_same(describe(work), 0, 1, describe(other))
    mine, theirs = (
        describe(each._replace(cluster=Cluster(strategy="push_sum"))) for each in (work, other)
    )
    with pytest.raises(DpsviError, match="rank 1 .*: first parameters is"):
        check_same(mine, 0, 1, theirs)


def test_a_worker_too_many_is_refused(corpus):
    work = job(*lda(corpus, "collapsed"))
    late = Worker(work)

    def join(master, turns):
        if turns == 5:
            for _, hello in late.turn():
                master.take(4, deliver(hello, late.pool, master.pool))

    with pytest.raises(DpsviError, match="rank 4 joins a fit for 3 workers, who are all there"):
        take_turns(work, 3, join)


def test_the_last_worker_cannot_be_lost(corpus):
    def lose(master, turns):
        if turns == 3:
            master.lose(1, "killed")
            master.lose(2, "killed")

    with pytest.raises(LostRankError, match="no worker is left"):
        take_turns(job(*lda(corpus, "collapsed")), 2, lose)
