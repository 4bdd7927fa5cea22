"""What the master counts, lets out and sends ahead."""

import time

import pytest
from tools.node_jobs import (
    job,
    lda,
)

from dpsvi.cluster.nodes.worker import Worker
from dpsvi.cluster.transports import messages
from dpsvi.cluster.transports.memory import Memory
from dpsvi.cluster.turns import exchange, receive, take_turns


def test_nobody_waits_for_an_evaluation(corpus):
    """It is no part of the training time, so it is not of the waiting either."""
    looks, started = [], time.perf_counter()

    def observer(event):
        looks.append(event.step)
        time.sleep(0.5)

    master = take_turns(job(*lda(corpus, "collapsed"), observer=observer), 1)
    assert len(looks) == 2
    rest = time.perf_counter() - started - 2 * 0.5
    assert sum(e.waited for e in master.exchanges) <= rest and master.seconds <= rest


def test_updates_that_wait_for_others_are_in_flight(corpus):
    """With M = 8 many steps would not see each other, however large the rate is."""
    work, most = job(*lda(corpus, "collapsed"), n_passes=4, master_batch=8, most_blind=0.3), []

    def look(master, turns):
        flying = [grant.work for grant in master._answers.grants.being_made()]
        flying += [grant.work for grant, *_ in master._collected]
        most.append(sum(each.n_steps for each in flying) / master._allotment.room(2))

    take_turns(work, 2, look)
    assert max(most) <= 1


@pytest.mark.parametrize("prefetch", [False, True])
def test_prefetched_rows_are_in_the_message(corpus, prefetch, monkeypatch):
    """Read later, from the master's own, they would keep it from merging meanwhile."""
    from dpsvi.cluster.nodes.master import Master
    from dpsvi.cluster.transports.window import Window

    monkeypatch.setattr(messages, "SHARED_FROM", 0)
    work = job(*lda(corpus, "collapsed"), prefetch=prefetch)
    window = Window.like(work.state.shared.rows, 2, {1})
    master, worker = Master(work, 1, window=window), Worker(work)
    memory = Memory({0: master, 1: worker})
    exchange(worker, memory.at(1), lambda: exchange(master, memory.at(0)))
    receive(worker, memory.at(1))
    _, ask = next(worker.turn())
    memory.at(1).send(0, ask)
    receive(master, memory.at(0))
    ((_, answer),) = master.turn()
    assert ("base" in answer.arrays) == prefetch == (not window.busy)


def test_messages_that_wait_are_merged_before_anybody_reads(corpus, monkeypatch):
    """Else each reader would keep the master from merging the next one: they would read in turn."""
    from dpsvi.cluster.nodes.master import Master
    from dpsvi.cluster.transports.window import Window

    monkeypatch.setattr(messages, "SHARED_FROM", 0)
    work = job(*lda(corpus, "collapsed"), local_steps=1, most_blind=None)
    window = Window.like(work.state.shared.rows, 3, {1, 2})
    master = Master(work, 2, window=window)
    workers = {rank: Worker(work) for rank in (1, 2)}
    memory = Memory({0: master, **workers})

    def say():
        for rank, worker in workers.items():
            exchange(worker, memory.at(rank))

    say()  # hello
    exchange(master, memory.at(0))
    say()  # which rows they want
    exchange(master, memory.at(0))
    assert window.busy and not master.exchanges
    say()  # what they have changed
    assert not window.busy, "they have read"
    receive(master, memory.at(0))
    assert len(master.exchanges) == 2 and not window.busy
    answers = master.turn()
    assert [rank for rank, _ in answers] == [1, 2] and window.busy
    window.end(1)
    assert window.busy, "both may read now"
    assert master.order == [1, 2, 0] * 3
