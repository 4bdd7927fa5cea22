"""Fits of LDA by an engine alone, and a toy model: the engine knows nothing of topics."""

import numpy as np

from dpsvi.base import Model
from dpsvi.engines import fit
from dpsvi.kernels.jit import as_items
from dpsvi.models.lda.model import make_model
from dpsvi.training.schedules import robbins_monro
from dpsvi.training.state import State

FLOAT = np.dtype(np.float32)
K, ALPHA, ETA = 5, 0.3, 0.05
SCHEDULE = robbins_monro(2.0, 0.7)


def lda(local_step, n_words, **options):
    options = dict(n_sweeps=5, tol=0.0) | options
    return make_model(n_words, K, ALPHA, ETA, local_step=local_step, **options)


def fit_lda(corpus, local_step="collapsed", n_passes=2, n_jobs=1, batch_size=32, **settings):
    rng = np.random.default_rng(3)
    model = lda(local_step, corpus.n_features)
    state = State.start(model, rng, n_jobs, corpus.n_items, corpus.nnz)
    items = as_items(corpus.offsets, corpus.index, corpus.value, FLOAT)
    settings = dict(schedule=SCHEDULE, engine="threads") | settings
    return fit(
        state, items, batch_size=batch_size, n_passes=n_passes, seed=3, n_jobs=n_jobs, **settings
    )


def count(shared, scale, hyper, items, batch, work):
    """One visit of item i adds 1 to row i, and i to the memory of the item."""
    n = 0
    for d in batch:
        shared.item_memory[d, 0] += 1
        work.touched[n] = d
        for k in range(work.stats.shape[1]):
            work.stats[n, k] = 1
        n += 1
    return n


def toy(local, n_items, real=FLOAT, hyper=0.0):
    """A model with as many rows as items, over items without values, and its start."""
    model = Model(
        name="toy", shape=(n_items, 3), prior=np.zeros(3, real), hyper=np.array([hyper]),
        init=lambda rng: np.zeros((n_items, 3), real), local=local, scratch=lambda longest: 0,
        item_memory=4, learner="incremental",
    )  # fmt: skip
    items = as_items(np.arange(n_items + 1), np.zeros(0), np.zeros(n_items), real)
    return model, items
