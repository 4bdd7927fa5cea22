"""Averaged parameters against dense SVI in NumPy, written from the paper."""

import numpy as np
import pytest
from reference.lda import documents_of, natural_step, statistics

from dpsvi import DPSVILDA
from dpsvi.averaging import Averaged
from dpsvi.engines import fit
from dpsvi.kernels.jit import as_items
from dpsvi.models.lda.model import make_model
from dpsvi.training.ledger import Passes, Work
from dpsvi.training.schedules import constant
from dpsvi.training.state import State
from experiments.averaging import main

K, ALPHA, ETA, RATE, BATCH, SEED = 4, 0.3, 0.05, 0.1, 10, 7
FLOAT = np.dtype(np.float32)


def test_against_slow_svi(corpus, rng):
    """Three passes of 6 steps, a look after every second; what is seen after two passes counts."""
    corpus = corpus.select(slice(0, 60))
    first = rng.exponential(size=(K, corpus.n_features)).astype(np.float32)
    model = make_model(
        corpus.n_features, K, ALPHA, ETA, local_step="mean_field", n_sweeps=5, tol=0.0
    )
    rows = np.zeros(model.shape, np.float32)
    rows[:, :K] = first.T
    averaged = Averaged(start=2)
    fit(
        State.resume(model, rows, 1), as_items(corpus.offsets, corpus.index, corpus.value, FLOAT),
        schedule=constant(RATE), batch_size=BATCH, n_passes=3, seed=SEED, observe_every=1 / 3,
        observer=averaged,
    )  # fmt: skip

    documents, passes, lam, seen = documents_of(corpus), Passes(60, BATCH, 3, SEED), ETA + first, []
    for epoch in range(3):
        for step in range(6):
            batch = [documents[d] for d in passes.items(Work(epoch, 0, step, step + 1, 0))]
            stats, _ = statistics("mean_field", batch, lam, ALPHA, n_sweeps=5)
            lam = natural_step(lam, ETA, stats, RATE, 60 / BATCH)
            if epoch == 2 and step % 2:
                seen.append(lam)
    assert averaged.n == len(seen) == 3
    np.testing.assert_allclose(averaged.mean[:, :K].T, np.mean(seen, axis=0), rtol=2e-4)
    assert not np.allclose(lam, np.mean(seen, axis=0), rtol=2e-2), "there was something to average"


def test_less_noise_from_the_same_documents(corpus):
    """At a constant rate the mean predicts better than where the fit happens to end."""
    averaged = Averaged(start=2)
    lda = DPSVILDA(
        K, engine="serial", n_jobs=1, batch_size=BATCH, max_iter=6, learning_rate=0.3,
        evaluate_every=0.1, random_state=0, callbacks=[averaged],
    ).fit(corpus)  # fmt: skip
    mean = averaged.fitted(lda)
    assert averaged.n == 40
    np.testing.assert_allclose(mean.components_, averaged.mean[:, :K].T, rtol=1e-5)
    assert mean.perplexity(corpus) < lda.perplexity(corpus)
    assert mean.transform(corpus).shape == (corpus.n_items, K)


def test_nothing_to_average(corpus):
    averaged = Averaged(start=5)
    lda = DPSVILDA(K, max_iter=1, random_state=0, callbacks=[averaged]).fit(corpus)
    with pytest.raises(ValueError, match="nothing was averaged"):
        averaged.fitted(lda)
    with pytest.raises(ValueError, match="start"):
        Averaged(start=-1)


def test_the_command(corpus, tmp_path):
    matrix = corpus.to_csr().tocoo()
    lines = [str(n) for n in (*matrix.shape, matrix.nnz)]
    entries = zip(matrix.row, matrix.col, matrix.data, strict=True)
    lines += [f"{d + 1} {w + 1} {c:g}" for d, w, c in entries]
    path = tmp_path / "docword.tiny.txt"
    path.write_text("\n".join(lines) + "\n")
    main(["--corpus", str(path), "--documents", "100", "--seeds", "1", "--out", str(tmp_path)])
    table = (tmp_path / "averaging.md").read_text()
    assert table.count("\n| ") == 9 and "| 10 | 0.05 |" in table
