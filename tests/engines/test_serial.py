"""One thread: serial SVI and the same bits by every engine."""

import math

import numpy as np
import pytest
from reference.lda import documents_of, svi
from tools.engine_fits import ALPHA, ETA, FLOAT, K, fit_lda, lda

from dpsvi import engines
from dpsvi.engines import fit
from dpsvi.kernels.jit import as_items
from dpsvi.models.lda.model import LOCAL_STEPS
from dpsvi.training.ledger import Ledger, StepRange
from dpsvi.training.schedules import constant, robbins_monro
from dpsvi.training.state import State

ENGINES = engines.names()


@pytest.mark.parametrize("local_step", LOCAL_STEPS)
@pytest.mark.parametrize("local_steps", [None, 1, 3])
def test_one_thread_is_serial_bit_for_bit(corpus, local_step, local_steps):
    a, b, again = (
        fit_lda(corpus, local_step, engine=engine, local_steps=local_steps)
        for engine in ("serial", "threads", "threads")
    )
    assert a.step == b.step == 2 * math.ceil(corpus.n_items / 32)
    assert a.items == b.items == 2 * corpus.n_items
    for other in (b, again):
        assert np.array_equal(a.natural(), other.natural())
        assert np.array_equal(a.shared.totals, other.shared.totals)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("local_step", LOCAL_STEPS)
def test_several_steps_against_slow_svi(corpus, rng, engine, local_step):
    """Two passes of 13 steps, the last of a pass short; the first rates are clipped at 1."""
    corpus = corpus.select(slice(0, 124))
    passes = Ledger(corpus.n_items, 10, 2, seed=7)
    orders = [passes.items(StepRange(epoch, 0, 0, 13, 0)) for epoch in range(2)]
    schedule = robbins_monro(0.5, 0.6)
    batches = [order[i : i + 10] for order in orders for i in range(0, len(order), 10)]
    first = rng.exponential(size=(K, corpus.n_features)).astype(np.float32)
    expected = svi(
        local_step, documents_of(corpus), ETA + first, ALPHA, ETA, batches,
        schedule(np.arange(len(batches))), n_sweeps=5,
    )  # fmt: skip

    model = lda(local_step, corpus.n_features)
    rows = np.zeros(model.shape, np.float32)
    rows[:, :K] = first.T
    state = State.resume(model, rows, 1)
    items = as_items(corpus.offsets, corpus.index, corpus.value, FLOAT)
    fit(
        state, items, schedule=schedule, batch_size=10, n_passes=2, seed=7, engine=engine,

    )  # fmt: skip
    lam = state.natural()[:, :K].T
    np.testing.assert_allclose(lam, expected, rtol=2e-3, atol=1e-3)
    assert np.abs(lam - expected).sum() < 1e-4 * expected.sum()
    assert state.step == len(batches)


@pytest.mark.parametrize("total_items", [None, 1000])
def test_batches_stand_for_all_items(corpus, total_items):
    """At rate 1 the parameters hold N/S times the tokens of the last batch."""
    corpus = corpus.select(slice(0, 50))
    state = fit_lda(
        corpus, schedule=constant(1.0), batch_size=50, n_passes=1, total_items=total_items
    )
    tokens = corpus.n_tokens * (total_items or 50) / 50
    found = state.natural().sum(dtype=np.float64) - ETA * np.prod(state.model.shape)
    assert found == pytest.approx(tokens, rel=1e-5)


@pytest.mark.parametrize("local_steps", [None, 3])
@pytest.mark.parametrize("rate", [0.05, 0.9])
def test_long_fits_stay_in_range(corpus, rate, local_steps):
    """Undone, the decay of these steps would be e^-200 to e^-9000."""
    state = fit_lda(
        corpus, schedule=constant(rate), batch_size=1, n_passes=10, local_steps=local_steps
    )
    assert state.step == 4000 and 1e-14 < state.scale <= 1
    tokens = state.natural().sum(dtype=np.float64) - ETA * np.prod(state.model.shape)
    assert tokens == pytest.approx(corpus.n_tokens, rel=0.3), "the last 1/rate documents, times N"
    sums = state.scale * state.shared.totals.sum(axis=0)
    rows = state.scale * state.shared.rows.sum(axis=0, dtype=np.float64)
    np.testing.assert_allclose(sums, rows, rtol=1e-4)


def test_a_step_touches_the_rows_of_its_batch_only(known):
    """Words that no document of the pass holds keep their stored rows, bit for bit."""
    full = known.corpus()
    chosen = full.select(slice(0, 8))
    model = lda("mean_field", full.n_features)
    rows = np.zeros(model.shape, np.float32)
    rows[:, :K] = np.random.default_rng(1).exponential(size=(full.n_features, K))
    state = State.resume(model, rows.copy(), 1)
    items = as_items(chosen.offsets, chosen.index, chosen.value, FLOAT)
    fit(
        state, items, schedule=constant(0.1), batch_size=4, n_passes=1,
        seed=0, local_steps=1,
    )  # fmt: skip
    seen = np.unique(chosen.index)
    others = np.setdiff1d(np.arange(full.n_features), seen)
    assert len(others) > 10 and state.scale == pytest.approx(0.81)
    assert np.array_equal(state.shared.rows[others], rows[others])
    assert np.all(state.shared.rows[seen].sum(axis=1) > rows[seen].sum(axis=1))
