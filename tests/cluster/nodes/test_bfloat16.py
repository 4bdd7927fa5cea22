"""Statistics that are sent in half the bytes."""

import numpy as np
import pytest
from reference.lda import FixedPasses, documents_of
from tools.node_jobs import K, job, lda

from dpsvi.cluster.transports import messages
from dpsvi.cluster.turns import take_turns
from dpsvi.training.schedules import robbins_monro


def test_bfloat16_statistics(corpus):
    """Half the bytes; rounding errors are not lost but sent later."""
    results, sizes = [], []
    for kind in ("float32", "bfloat16"):
        state, items = lda(corpus, "mean_field")
        work = job(state, items, n_passes=4, statistics=kind, schedule=robbins_monro(20, 0.6))
        master = take_turns(work, 2)
        results.append(state.natural()[:, :K].astype(np.float64))
        sizes.append(sum(e.n_bytes for e in master.exchanges))
    exact, rounded = results
    documents = documents_of(corpus)
    batches = [
        FixedPasses.batch(work.passes, epoch, i)
        for epoch in range(4) for i in range(work.passes.steps_a_pass)
    ]  # fmt: skip
    n_rows = [len(np.unique(np.concatenate([documents[d][0] for d in b]))) for b in batches]
    saved = sum(n_rows) * K * (4 - 2)
    assert sizes[0] - sizes[1] == pytest.approx(saved, abs=messages._ALIGN * len(batches))
    assert saved > 2 * messages._ALIGN * len(batches)
    assert 0 < np.abs(exact - rounded).sum() < 2e-3 * exact.sum()


def test_bfloat16_rests_decay_like_the_rows(corpus):
    """Errors of the first, large steps must not be added undiminished many steps later."""
    found = []
    for kind in ("float32", "bfloat16"):
        state, items = lda(corpus, "mean_field")
        take_turns(job(state, items, batch_size=1, n_passes=6, statistics=kind), 2)
        found.append(state.natural()[:, :K].astype(np.float64))
    exact, rounded = found
    assert 0 < np.abs(exact - rounded).sum() < 2e-2 * exact.sum()


def test_bfloat16_rounds_to_nearest_and_keeps_the_error():
    from dpsvi.cluster.nodes.kernels import merge_bfloat16, pack_bfloat16

    rng = np.random.default_rng(0)
    end, base = rng.exponential(size=(2, 50, 16)).astype(np.float32)
    touched, residual = np.arange(50, dtype=np.int32), np.zeros((50, 16), np.float32)
    change = np.empty((50, 16), np.uint16)
    total, rows = np.zeros((50, 16)), np.zeros((50, 16), np.float32)
    for _ in range(64):
        pack_bfloat16(end, base, touched, residual, change)
        merge_bfloat16(rows, touched, change, 1.0)
        total += end.astype(np.float64) - base
    one = np.abs(end - base)
    assert np.all(np.abs(residual) <= one * 2**-7 + 1e-6), "at most one rounding is open"
    np.testing.assert_allclose(rows + residual, total, rtol=1e-4, atol=1e-3)
