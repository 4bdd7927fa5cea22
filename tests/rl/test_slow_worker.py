"""A worker that is ten times slower, in virtual time: whom it holds up, and what is learned."""

from collections import Counter

import pytest

from dpsvi import VirtualCluster
from dpsvi.cluster.virtual import Network, Timing
from dpsvi.rl import ActorCritic

MOVES, UNTRAINED = 150_000, 60
TIMING, LINK = Timing(step=1e-4, value=0.0), Network(bandwidth=1.25e9, latency=1e-6)


def fitted(slower, **told):
    """An agent of three workers, the slow one last, and updates of each in a virtual second."""
    cluster = VirtualCluster(
        n_workers=3, timing=TIMING, network=LINK, stragglers=(1 / 3 * (slower > 1), slower)
    )
    agent = ActorCritic(engine="simulated", cluster=cluster, n_games=8, random_state=0, **told)
    agent.fit(MOVES)
    made = Counter(exchange.worker for exchange in agent.exchanges_["exchanges"])
    return agent, [made[rank] / agent.exchanges_["seconds"] for rank in (1, 2, 3)]


@pytest.mark.parametrize("told", [
    dict(algorithm="hsa2c", local_steps=4), dict(algorithm="da3c"),
], ids=lambda told: told["algorithm"])  # fmt: skip
def test_the_others_go_on_and_learn(told):
    _, even = fitted(1.0, **told)
    agent, rates = fitted(10.0, **told)
    for rank in (0, 1):
        assert rates[rank] > 0.9 * even[rank], "it is as fast as without the slow one"
    assert 0.05 * even[2] < rates[2] < 0.2 * even[2]
    assert max(agent.exchanges_["staleness"]) >= 10, "its updates are old"
    assert agent.evaluate(100).mean() > UNTRAINED


def test_those_in_step_wait_for_it():
    """The bound above would not hold for an algorithm that waits."""
    _, even = fitted(1.0, algorithm="paac")
    _, rates = fitted(10.0, algorithm="paac")
    assert max(rates) < 0.3 * min(even)
