"""A number of steps B that is steered by the share of waiting."""

import pytest

from dpsvi.cluster.nodes.steering import Steering


@pytest.mark.parametrize("share", [0.1, 0.3])
@pytest.mark.parametrize("message", [0.01, 0.3])
def test_a_steered_b_waits_as_long_as_it_was_told(share, message):
    """Twenty steps a second, exchanges with a part that grows as the root of B."""
    steering = Steering(share)
    for _ in range(40):
        b = steering.steps(1)
        waited, seconds = message + 0.1 * b**0.5, 0.05 * b
        steering.learn(1, waited, seconds)
    assert waited / (waited + seconds) == pytest.approx(share, rel=0.2)
    assert steering.steps(2) == Steering(share).steps(2), "every worker has its own"


def test_a_steered_b_stays_in_its_range():
    steering = Steering(0.1)
    for _ in range(30):
        steering.learn(1, 1e9, 1.0)
        steering.learn(2, 0.0, 1.0)
    assert steering.steps(1) == 1024 and steering.steps(2) == 1
