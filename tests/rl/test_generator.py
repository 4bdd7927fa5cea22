"""The stream of random numbers against SplitMix64 written with Python's integers."""

import numpy as np
from scipy import stats

from dpsvi.rl import generator

MASK = (1 << 64) - 1


def splitmix64(state):
    """Endless 64-bit numbers."""
    while True:
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        yield z ^ (z >> 31)


def stream(number):
    random = np.zeros(1, np.uint64)
    generator.seed(random, number)
    return random


def test_the_numbers_of_the_reference():
    known = splitmix64(1234567)  # these three are in print
    assert [next(known) for _ in range(3)] == [
        6457827717110365317, 3203168211198807973, 9817491932198370423,
    ]  # fmt: skip
    random = np.array([1234567], np.uint64)
    reference = splitmix64(1234567)
    for _ in range(1000):
        assert generator.uniform(random) == (next(reference) >> 11) / 2**53
        assert generator.below(random, 10) == (next(reference) >> 32) * 10 >> 32


def test_uniform_and_below_are_so():
    random = stream(7)
    drawn = np.array([generator.uniform(random) for _ in range(20_000)])
    assert drawn.min() >= 0 and drawn.max() < 1
    assert stats.kstest(drawn, "uniform").pvalue > 0.001
    assert {generator.below(random, 1) for _ in range(100)} == {0}
    for n in (2, 3, 6):
        counts = np.bincount([generator.below(random, n) for _ in range(20_000)])
        assert len(counts) == n
        assert stats.chisquare(counts).pvalue > 0.001


def test_neighbouring_seeds_have_nothing_in_common():
    first = {stream(number)[0] for number in range(1000)}
    assert len(first) == 1000
    pairs = np.array([[generator.uniform(stream(k)), generator.uniform(stream(k + 1))]
                      for k in range(2000)])  # fmt: skip
    assert abs(np.corrcoef(pairs.T)[0, 1]) < 0.08
    one, two = stream(3), stream(3)
    assert [generator.uniform(one) for _ in range(5)] == [generator.uniform(two) for _ in range(5)]
