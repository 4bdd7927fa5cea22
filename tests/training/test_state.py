"""The lazily decayed, row-sparse step is the dense natural-gradient step (52)."""

import math

import numpy as np
import pytest
from reference.lda import natural_step

from dpsvi import learners
from dpsvi.base import Model
from dpsvi.training.schedules import constant, robbins_monro
from dpsvi.training.state import State

V, K, N, S = 40, 16, 500, 20
PRIOR = 0.05
natural = learners.get("natural").tables


def toy_model(real, first):
    """A model without local step: rows and a prior."""
    return Model(
        name="toy", shape=(V, K), prior=np.full(K, PRIOR, real), hyper=np.zeros(0),
        init=lambda rng: first, local=None, scratch=lambda longest: 0,
    )  # fmt: skip


def batches(rng, n_steps):
    """Touched rows and their statistics; about a third of the rows in each step."""
    for _ in range(n_steps):
        touched = rng.permutation(V)[: rng.integers(1, V // 2)]
        yield touched, rng.exponential(size=(len(touched), K))


RATES = {
    "constant": constant(0.2),
    "robbins_monro": robbins_monro(1.0, 0.7),  # its first rate is 1
    "forgets everything": constant(1.0),
    "tiny": constant(1e-6),
    "almost 1": constant(0.999),
    "1 in between": lambda t: np.where(np.asarray(t) % 7 == 3, 1.0, 0.05),
}


@pytest.mark.parametrize("real", [np.float32, np.float64])
@pytest.mark.parametrize("name", RATES)
def test_lazy_step_is_the_dense_step(name, real, rng):
    """Step by step, over many renormalisations; the tables are made for several steps ahead."""
    first = rng.exponential(size=(V, K)).astype(real)
    state = State.start(toy_model(real, first), rng, n_threads=2)
    dense = PRIOR + first.astype(np.float64)
    steps = list(batches(rng, 60))
    rtol = 60 * np.finfo(real).eps  # one rounding a step
    ahead, renormalised, largest = 0, 0, dense.max()
    for t, (touched, stats) in enumerate(steps):
        if not ahead:
            if t:
                state.renormalise()
                renormalised += 1
            rates = RATES[name](np.arange(t, len(steps)))
            sizes = np.full(len(rates), S)
            scales, gains, ahead = natural(state.model, rates, state.scale, sizes, N)
            start = t
        gain = gains[t - start]
        state.shared.rows[touched] += real(gain) * stats.astype(real)
        state.shared.totals[t % 2] += gain * stats.sum(axis=0)
        state.scale = scales[t - start + 1]
        ahead -= 1

        full = np.zeros((V, K))
        full[touched] = stats
        dense = natural_step(dense, PRIOR, full, RATES[name](np.array([t]))[0], N / S)
        # At rho = 1 one rounding error of what was there before stays.
        atol = np.finfo(real).eps * largest
        largest = max(largest, dense.max())
        np.testing.assert_allclose(state.natural(), dense, rtol=rtol, atol=atol)
        sums = V * PRIOR + state.scale * state.shared.totals.sum(axis=0)
        np.testing.assert_allclose(sums, dense.sum(axis=0), rtol=rtol, atol=V * atol)
    if name in ("forgets everything", "almost 1", "1 in between"):
        assert renormalised > 5, "the test is to cross renormalisations"


@pytest.mark.parametrize("scale", [1.0, 1e-3])
def test_tables(scale):
    rates = np.array([0.1, 0.5, 0.25])
    sizes = np.array([20, 20, 5])  # the last batch of a pass may be short
    scales, gains, n = natural(toy_model(np.float32, None), rates, scale, sizes, 100)
    assert n == 3
    np.testing.assert_allclose(scales, scale * np.array([1, 0.9, 0.45, 0.3375]), rtol=1e-14)
    expected = rates / (scale * np.array([0.9, 0.45, 0.3375])) * 100 / sizes
    np.testing.assert_allclose(gains, expected, rtol=1e-14)


def test_tables_of_an_incremental_model():
    scales, gains, n = learners.get("incremental").tables(
        toy_model(np.float32, None), np.array([0.1, 1.0]), 0.5, np.array([10, 10]), 100
    )
    assert n == 2
    assert np.array_equal(scales, [0.5, 0.5, 0.5]), "nothing decays"
    assert np.array_equal(gains, [2.0, 2.0]), "a change is added as it is"


@pytest.mark.parametrize("real", [np.float32, np.float64])
@pytest.mark.parametrize("rate", [1e-4, 0.3, 0.9, 0.9999, 1.0])
def test_a_segment_ends_before_the_rows_overflow(rate, real):
    """Every count up to 2^31 - 1 of 100 million items stays finite, and steps are made."""
    n_steps = 100_000
    scales, gains, n = natural(
        toy_model(real, None), np.full(n_steps, rate), 1.0, np.ones(n_steps, int), 1
    )
    assert 1 <= n <= n_steps
    assert len(scales) == len(gains) + 1 == n + 1
    assert np.all(scales > 0) and np.all(np.diff(scales) < 0)
    assert np.all(np.isfinite((gains * 2.0**31 * 1e8).astype(real)))
    if rate < 1:
        decays = (n + 1) * -math.log1p(-rate)
        assert n == n_steps or decays > 10, "renormalising costs a pass over all parameters"


def test_renormalise_keeps_the_parameters_and_ends_drift(rng):
    rows = rng.exponential(size=(V, K)).astype(np.float32)
    state = State.resume(toy_model(np.float32, None), rows, n_threads=3)
    state.scale = 0.125
    state.shared.totals[:] = rng.exponential(size=(3, K))  # as if writes had been lost
    lam = state.natural()
    state.renormalise()
    assert state.scale == 1.0
    assert np.array_equal(state.natural(), lam)
    np.testing.assert_array_equal(
        state.shared.totals.sum(axis=0), state.shared.rows.sum(axis=0, dtype=np.float64)
    )


def test_resume_keeps_parameters_and_clock(rng):
    rows = rng.exponential(size=(V, K)).astype(np.float32)
    state = State.resume(toy_model(np.float32, None), rows, n_threads=2, step=7, items=140)
    assert (state.step, state.items, state.scale) == (7, 140, 1.0)
    assert np.array_equal(state.natural(), np.float32(PRIOR) + rows)
    np.testing.assert_allclose(
        state.shared.totals.sum(axis=0), rows.sum(axis=0, dtype=np.float64), rtol=1e-12
    )


def test_settle_takes_a_single_row_from_its_totals(rng):
    """Threads over-write each other in the row, never in their own totals."""
    rows = rng.exponential(size=(V, K))
    state = State.resume(toy_model(np.float64, None), rows.copy(), n_threads=2)
    state.settle()
    assert np.array_equal(state.shared.rows, rows), "several rows are left alone"
    one = State.resume(toy_model(np.float64, None)._replace(shape=(1, K)), rows[:1].copy(), 2)
    one.shared.totals[1] += 2.0
    one.settle()
    np.testing.assert_allclose(one.shared.rows, rows[:1] + 2, rtol=1e-15)
