"""Every strategy with every learner: it learns, or is refused with the reason.

With nodes that take turns in memory, and in virtual time.  ``engines/test_mpi.py`` runs every
strategy over MPI, ``learners/test_learners.py`` compares every learner with its equations.
"""

import numpy as np
import pytest

from dpsvi import Cluster, VirtualCluster, engines, learners, strategies
from dpsvi.base import Model
from dpsvi.cluster.ranks.prepare import for_workers
from dpsvi.cluster.turns import peers_take_turns, take_turns
from dpsvi.cluster.virtual import Network, Timing
from dpsvi.kernels.jit import as_items
from dpsvi.training.job import Job
from dpsvi.training.ledger import Ledger
from dpsvi.training.schedules import constant
from dpsvi.training.state import State

N_WORKERS, N_ITEMS, N_ROWS, BATCH, PENALTY = 3, 480, 8, 4, 0.25
FLOAT = np.dtype(float)
X = np.random.default_rng(0).normal(2.0, 0.2, size=(N_ITEMS, N_ROWS, 2))


def statistics(shared, scale, hyper, items, batch, work):
    """Those of the items, of all rows."""
    work.touched[:N_ROWS] = np.arange(N_ROWS)
    work.stats[:N_ROWS] += X[batch].sum(axis=0)
    return N_ROWS


def downhill(shared, scale, hyper, items, batch, work):
    """Minus the gradient of the squared distances to the items, halved."""
    n = statistics(shared, scale, hyper, items, batch, work)
    work.stats[:n] -= len(batch) * scale * shared.rows
    return n


# What a learner gets for a local step, what it is to find after a pass, and how near it comes: the
# sum over all items at a rate, the same exactly, the minimum with a penalty.
PROBLEMS = {
    "natural": (statistics, X.sum(axis=0), 0.1),
    "incremental": (statistics, X.sum(axis=0), 1e-12),
    "gradient": (downhill, X.mean(axis=0) / (1 + PENALTY), 0.1),
}


def problem(learner, cluster):
    """A job of one pass, which suits strategies that count an item each time it is seen."""
    local, _, _ = PROBLEMS[learner]
    model = Model(
        name="toy", shape=(N_ROWS, 2), prior=np.zeros(2, FLOAT), hyper=np.zeros(1), local=local,
        init=lambda rng: np.zeros((N_ROWS, 2), FLOAT), scratch=lambda longest: 0, learner=learner,
        weight_decay=PENALTY, compiled=False,
    )  # fmt: skip
    items = as_items(np.zeros(N_ITEMS + 1), [], [], FLOAT)
    return Job(
        State.start(model, None, 1), items, Ledger(N_ITEMS, BATCH, 1, 0), constant(0.05),
        local_steps=1, cluster=cluster,
    )  # fmt: skip


def in_memory(learner, strategy):
    job = problem(learner, Cluster(strategy=strategy))
    job = for_workers(job, job.cluster, N_WORKERS)
    star = strategies.get(strategy).topology == "star"
    (take_turns if star else peers_take_turns)(job, N_WORKERS)
    return job.state


def in_virtual_time(learner, strategy):
    """Messages take half as long as a step, and one worker is twice as slow as the others."""
    cluster = VirtualCluster(
        strategy=strategy, n_workers=N_WORKERS, timing=Timing(step=1.0, value=0.0),
        network=Network(latency=0.5), stragglers=(0.4, 2.0),
    )  # fmt: skip
    job = problem(learner, cluster)
    engines.get("simulated").fit(job)
    return job.state


def refusal(strategy, learner):
    """Why a strategy cannot serve a learner, or None, as both say of themselves."""
    strategy, learner = strategies.get(strategy), learners.get(learner)
    if learner.COUNTS_ONCE and not strategy.incremental:
        return "each change must count exactly once"
    if not learner.ESTIMATES and strategy.topology == "star" and strategy.one_pass:
        return "adds the statistics of items, and toy has none"
    return None


@pytest.mark.parametrize("transport", [in_memory, in_virtual_time])
@pytest.mark.parametrize("learner", learners.names())
@pytest.mark.parametrize("strategy", strategies.names())
def test_a_combination_learns_or_is_refused(strategy, learner, transport):
    if (why := refusal(strategy, learner)) is not None:
        with pytest.raises(ValueError, match=why) as refused:
            transport(learner, strategy)
        assert repr(strategy) in str(refused.value) and learner in str(refused.value)
        return
    state = transport(learner, strategy)
    _, truth, far = PROBLEMS[learner]
    np.testing.assert_allclose(state.natural(), truth, rtol=far)
    assert state.items == N_ITEMS and state.step == N_ITEMS // BATCH


@pytest.mark.parametrize("learner", learners.names())
def test_every_learner_is_served(learner):
    """With a master and without."""
    serving = [name for name in strategies.names() if refusal(name, learner) is None]
    assert {strategies.get(name).topology for name in serving} == {"star", "peers"}
