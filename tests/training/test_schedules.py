"""Step sizes and rule (13)."""

import math

import numpy as np
import pytest

from dpsvi.training.schedules import LR_RULES, constant, of_stream, robbins_monro, scaled_rate

T = np.array([0, 1, 2, 10, 1000, 10**7])


@pytest.mark.parametrize(("offset", "decay"), [(1.0, 0.5), (10.0, 0.7), (1024.0, 1.0), (0.5, 0.9)])
@pytest.mark.parametrize("rate", [0.1, 1.0, 3.0])
def test_robbins_monro(offset, decay, rate):
    expected = [min(1.0, rate / math.pow(t + offset, decay)) for t in T]
    np.testing.assert_allclose(robbins_monro(offset, decay, rate)(T), expected, rtol=1e-14)


def test_robbins_monro_sums():
    """The sum diverges and the sum of squares converges (50) for a decay in (0.5, 1]."""
    rates = robbins_monro(1.0, 0.7)(np.arange(2**20))
    sums = [rates[2**i : 2 ** (i + 1)].sum() for i in range(8, 20)]
    squares = [(rates[2**i : 2 ** (i + 1)] ** 2).sum() for i in range(8, 20)]
    assert np.all(np.diff(sums) > 0)
    assert np.all(np.diff(squares) < 0)


def test_constant():
    assert np.array_equal(constant(0.25)(T), np.full(len(T), 0.25))


@pytest.mark.parametrize("sizes", [[20, 20, 20], [7, 13, 1, 19, 20], [1] * 60, [5, 15, 40]])
def test_a_stream_is_remembered_alike_however_it_is_cut(sizes):
    """After 60 items come three batches of 20: what is left, and what each of the last counts."""
    schedule, left, weights, done = robbins_monro(3.0, 0.7), 1.0, [], 60
    for n_items in sizes:
        size = min(n_items, 20)
        steps = np.arange(-(-n_items // size))
        for rate in of_stream(schedule, 20, done, size, first=5)(5 + steps):
            left *= 1 - rate
            weights = [weight * (1 - rate) for weight in weights] + [rate / size] * size
        done += n_items
    assert left == pytest.approx(np.prod(1 - schedule(np.array([3, 4, 5]))))
    np.testing.assert_allclose(weights[-20:], weights[-1])


@pytest.mark.parametrize("m", [1, 3])
@pytest.mark.parametrize("p", [1, 4])
@pytest.mark.parametrize("b", [1, 5])
def test_rule_13(m, p, b):
    kept = {
        rule: scaled_rate(0.2, master_batch=m, n_jobs=p, local_steps=b, rule=rule)
        for rule in LR_RULES
    }
    assert kept == {
        "per_T": pytest.approx(0.2 / math.sqrt(m * p * b), rel=1e-15),
        "per_sample": 0.2,
        "constant": 0.2,
    }


@pytest.mark.parametrize("m", [2, 4])
def test_rule_13_where_the_master_averages(m):
    """gamma = 1/M: the local rate eta is M times the rate rho of the sum; other gammas stay."""
    mean = dict(master_batch=m, n_jobs=2, local_steps=3, global_rate=1 / m)
    kept = {rule: scaled_rate(0.1, rule=rule, **mean) for rule in LR_RULES}
    assert kept == {
        "per_T": pytest.approx(0.1 * m / math.sqrt(m * 2 * 3)),
        "per_sample": pytest.approx(0.1 * m),
        "constant": 0.1,
    }
    damped = mean | {"global_rate": 0.9 / m}
    assert scaled_rate(0.1, **damped) == pytest.approx(0.1 / math.sqrt(m * 2 * 3))


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: robbins_monro(0.0, 0.7), "learning_offset.*> 0.*0.0"),
        (lambda: robbins_monro(math.nan, 0.7), "learning_offset.*nan"),
        (lambda: robbins_monro(math.inf, 0.7), "learning_offset.*inf"),
        (lambda: robbins_monro(1.0, 0.0), "learning_decay.*0.0"),
        (lambda: robbins_monro(1.0, 1.01), "learning_decay.*1.01"),
        (lambda: robbins_monro(1.0, math.nan), "learning_decay.*nan"),
        (lambda: robbins_monro(1.0, 0.7, 0.0), "rate.*0.0"),
        (lambda: constant(0.0), "learning_rate.*0.0"),
        (lambda: constant(1.5), "learning_rate.*1.5"),
        (lambda: constant(math.nan), "learning_rate.*nan"),
        (lambda: scaled_rate(0.1, rule="sqrt"), "lr_rule.*per_T.*sqrt"),
    ],
)
def test_refused(make, named):
    with pytest.raises(ValueError, match=named):
        make()
