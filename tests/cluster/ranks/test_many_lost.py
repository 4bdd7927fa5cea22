"""Ranks learn who is lost, however many are: no message is too short for them."""

import queue
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from tools.node_jobs import job, toy

from dpsvi.cluster.nodes.master import Master
from dpsvi.cluster.ranks import follow
from dpsvi.cluster.ranks.gossip import gossip
from dpsvi.cluster.ranks.world import World
from dpsvi.cluster.transports.messages import Pool, deliver
from dpsvi.training.signals import Deferred

LOST = set(range(3, 1003))


@pytest.mark.parametrize("reason, parameters", [("done", True), ("diverged: NaN", False)])
def test_a_worker_learns_from_the_last_message_of_the_master(reason, parameters):
    work = job(*toy(20))
    here, pool, sent = World(1, 1003), Pool(), []
    last = deliver(Master(work, 1).stop_message(reason, LOST, parameters), Pool(), pool)
    channel = SimpleNamespace(
        send=lambda rank, message: sent.append(message.header["kind"]),
        receive=lambda check: (0, last), close=lambda seconds: None,
    )  # fmt: skip
    try:
        follow._follow(work, here, pool, channel, Deferred())
    except follow.DivergedError:
        assert not parameters
    assert here.lost == LOST and sent == ["hello", "bye"]


def test_peers_learn_from_rank_0(monkeypatch):
    """Two ranks that are left of many, in two threads; their messages go through queues."""
    boxes = {rank: queue.SimpleQueue() for rank in (0, 1)}

    class Queues:
        """What :class:`dpsvi.cluster.transports.channel.Channel` does, without MPI."""

        def __init__(self, here, pool, watch):
            self.rank, self.pool, self.lost = here.rank, pool, {}

        def send(self, rank, message):
            boxes[rank].put((self.rank, deliver(message, self.pool, self.pool)))

        def poll(self):
            while not boxes[self.rank].empty():
                yield boxes[self.rank].get()

        def newly_lost(self):
            return {}

        def rest(self, pause):
            time.sleep(0.001)
            return pause

        def close(self, seconds):
            pass

    monkeypatch.setattr(World, "channel", lambda here, *given: Queues(here, *given))
    worlds = [World(0, 2, lost=set(LOST)), World(1, 2)]
    jobs = [job(*toy(20), strategy="push_sum") for _ in worlds]
    heartbeat = SimpleNamespace(silent=None)

    def fit(rank):
        gossip(jobs[rank], worlds[rank], heartbeat, Deferred())

    threads = [threading.Thread(target=fit, args=[rank], daemon=True) for rank in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert worlds[0].lost == worlds[1].lost == LOST
    assert np.array_equal(*(job.state.natural() for job in jobs))
