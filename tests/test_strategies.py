"""Strategies on in-memory peers: Alg. 1-2 acted out, against eq. (4) written densely."""

import numpy as np
import pytest

from dpsvi.fit import fit
from dpsvi.jit import as_items
from dpsvi.models.lda_steps.model import FLOAT, make_model
from dpsvi.schedules import constant
from dpsvi.strategies.displacement import Displacement
from dpsvi.svi import State

N_WORDS, N_TOPICS, RATE = 40, 3, 0.2


@pytest.fixture(scope="module")
def items():
    counts = np.random.default_rng(3).poisson(0.4, (32, N_WORDS))
    counts[:, 0] += 1  # no empty document
    doc, word = np.nonzero(counts)
    offsets = np.searchsorted(doc, np.arange(33))
    return as_items(offsets, word, counts[doc, word], FLOAT)


def model():
    return make_model(
        N_WORDS, N_TOPICS, 0.1, 0.05, local_step="mean_field", n_sweeps=10, tol=1e-3
    )


def work(rows, items, seed, batch_size=4):
    """One worker: pull, one pass of local steps, push."""
    state = State.resume(model(), rows.copy(), n_threads=1)
    rng = np.random.default_rng(seed)
    fit(state, items, schedule=constant(RATE), batch_size=batch_size, n_passes=1, rng=rng)
    return state


@pytest.fixture(scope="module")
def start():
    return State.start(model(), np.random.default_rng(0), 1).shared.rows


def test_update_is_the_displacement(items, start):
    state = work(start, items, seed=1)
    update = state.update_since(start, 1.0)
    end = state.scale * state.shared.rows
    rebuilt = update.decay * start
    rebuilt[update.touched] += update.change
    np.testing.assert_allclose(rebuilt, end, rtol=1e-5, atol=1e-6)
    assert update.decay == pytest.approx((1 - RATE) ** 8)


def test_update_carries_only_touched_rows(items, start):
    first = as_items(items.offsets[:3], items.index, items.value, FLOAT)
    words = np.unique(items.index[: items.offsets[2]])
    update = work(start, first, seed=1).update_since(start, 1.0)
    assert set(update.touched) == set(words)


def test_one_worker_alone_is_its_own_state(items, start):
    """M = 1, no delay, gamma = 1: the global parameters become the worker's."""
    state = work(start, items, seed=2)
    rows = start.copy()
    Displacement()(rows, [start], [state.update_since(start, 1.0)])
    np.testing.assert_allclose(rows, state.scale * state.shared.rows, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("rate", [1.0, 0.5, 0.25])
def test_stale_displacements_against_equation_4(items, start, rate):
    """Two workers read v0; the second is merged one global step late."""
    ends = [work(start, items, seed) for seed in (5, 6)]
    updates = [state.update_since(start, 1.0) for state in ends]
    rows = start.copy()
    for update in updates:
        Displacement(rate)(rows, [start], [update])
    expected = start.astype(np.float64)
    for state in ends:
        expected += rate * (state.scale * state.shared.rows.astype(np.float64) - start)
    np.testing.assert_allclose(rows, expected, rtol=1e-4, atol=1e-4)
    together = start.copy()
    Displacement(rate)(together, [start, start], updates)
    np.testing.assert_allclose(together, rows, rtol=1e-5, atol=1e-5)
