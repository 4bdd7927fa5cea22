"""Fits that are made again in the order in which a master heard of its workers."""

import numpy as np
import pytest
from tools.node_jobs import job, problem

from dpsvi import VirtualCluster
from dpsvi.cluster.turns import replay, take_turns
from dpsvi.cluster.virtual import Timing
from dpsvi.engines import simulated
from dpsvi.training.ledger import Ledger

UNEVEN = Timing(step=1e-4, value=0.0, spread=(1.0, 1.2, 9.0))  # so that workers do not go in turn


@pytest.mark.parametrize("options", [
    dict(), dict(strategy="displacement"), dict(master_batch=2), dict(prefetch=True),
    dict(strategy="local_sgd"), dict(sharding="shard"),
], ids=str)  # fmt: skip
def test_a_replay_ends_with_the_same_bits(options, corpus):
    """In any order, here of workers that take turns and of a virtual cluster whose times vary."""
    mixed, alike = [], []
    for seed in range(3):
        state, items = problem("collapsed", corpus)
        first = job(state, items, local_steps=2)
        report = {}
        cluster = VirtualCluster(n_workers=3, timing=UNEVEN, seed=seed, **options)
        simulated.fit(first._replace(report=report, cluster=cluster))
        again, _ = problem("collapsed", corpus)
        second = first._replace(
            state=again, passes=Ledger(corpus.n_items, first.passes.batch_size, 2, 5), report={},
            cluster=VirtualCluster(n_workers=3, replay=report["order"], **options),
        )  # fmt: skip
        simulated.fit(second)
        np.testing.assert_array_equal(again.natural(), state.natural())
        assert second.report["staleness"] == report["staleness"]
        mixed.append(report["order"])
        alike.append(state.natural())
    if options.get("strategy") != "local_sgd":  # rounds end alike in whatever order
        assert mixed[0] != mixed[1] and (alike[0] != alike[1]).any(), "the order decides"


def test_workers_in_turn_are_replayed(corpus):
    state, items = problem("mean_field", corpus)
    master = take_turns(job(state, items), 3)
    again, items = problem("mean_field", corpus)
    replay(job(again, items), 3, master.order)
    np.testing.assert_array_equal(again.natural(), state.natural())


def test_what_cannot_be_replayed_is_refused(corpus):
    state, items = problem("mean_field", corpus)
    order = take_turns(job(state, items), 2).order
    for wrong in (order[:-3], [1] * len(order)):
        other, _ = problem("mean_field", corpus)
        with pytest.raises(ValueError, match="another fit was replayed"):
            replay(job(other, items), 2, wrong)
    for more in (
        dict(n_jobs=2), dict(local_steps=None),
        dict(cluster=VirtualCluster(n_workers=2, replay=order, waiting=0.1)),
        dict(cluster=VirtualCluster(n_workers=2, replay=order, strategy="push_sum")),
    ):
        told = job(state, items)._replace(cluster=VirtualCluster(n_workers=2, replay=order))
        with pytest.raises(ValueError, match="replay needs a master, one thread"):
            simulated.fit(told._replace(**more))
    with pytest.raises(ValueError, match="a rank in replay"):
        VirtualCluster(n_workers=2, replay=[1, 3])
