"""One worker of a master is serial SVI, bit for bit."""

import numpy as np
import pytest
from tools.node_jobs import PROBLEMS, STRATEGIES, job, lda, problem

from dpsvi import engines
from dpsvi.cluster.turns import take_turns
from dpsvi.training.schedules import constant


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("local_steps", [1, 3])
def test_one_worker_is_serial_svi_bit_for_bit(corpus, name, strategy, local_steps):
    """n = M = p = 1: with B = 1 serial SVI, with more Hogwild on one thread."""
    ours, theirs = problem(name, corpus), problem(name, corpus)
    master = take_turns(job(*ours, local_steps=local_steps, strategy=strategy), 1)
    engines.get("serial").fit(job(*theirs, local_steps=local_steps))
    assert ours[0].step == theirs[0].step == 40 and ours[0].items == 400
    assert np.array_equal(ours[0].natural(), theirs[0].natural())
    mine, other = (s.scale * s.shared.totals.sum(axis=0) for s in (ours[0], theirs[0]))
    np.testing.assert_allclose(mine, other, rtol=1e-12)
    assert {e.staleness for e in master.exchanges} == {0}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_one_worker_stays_serial_where_scales_are_folded_in(corpus, strategy):
    ours, theirs = lda(corpus, "collapsed"), lda(corpus, "collapsed")
    settings = dict(schedule=constant(0.5), n_passes=5)
    take_turns(job(*ours, strategy=strategy, **settings), 1)
    engines.get("serial").fit(job(*theirs, **settings))
    assert np.array_equal(ours[0].natural(), theirs[0].natural())


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_engine_alone_is_serial_svi_bit_for_bit(corpus, name):
    pytest.importorskip("mpi4py.MPI", exc_type=ImportError)
    ours, theirs = problem(name, corpus), problem(name, corpus)
    engines.get("mpi").fit(job(*ours, local_steps=2))
    engines.get("serial").fit(job(*theirs, local_steps=2))
    assert np.array_equal(ours[0].natural(), theirs[0].natural())
