"""What dense replays of strategies begin with: a small LDA, its steps in float64; a toy."""

import numpy as np

from dpsvi import Cluster
from dpsvi.base import Model
from dpsvi.kernels.jit import as_items
from dpsvi.models.lda.model import make_model
from dpsvi.training.job import Job
from dpsvi.training.ledger import Ledger
from dpsvi.training.schedules import constant, robbins_monro
from dpsvi.training.state import State
from reference.lda import FixedPasses, count_visits, documents_of, svi

FLOAT = np.dtype(np.float32)
K, ALPHA, ETA, BATCH = 4, 0.3, 0.05, 10


def lda(corpus, n_passes=2, schedule=None, **cluster):
    model = make_model(corpus.n_features, K, ALPHA, ETA, local_step="mean_field", n_sweeps=5, tol=0)
    state = State.start(model, np.random.default_rng(0), 1)
    items = as_items(corpus.offsets, corpus.index, corpus.value, FLOAT)
    passes = Ledger(len(items.offsets) - 1, BATCH, n_passes, 5)
    return Job(
        state, items, passes, schedule or robbins_monro(50.0, 0.7), local_steps=1,
        cluster=Cluster(**cluster),
    )  # fmt: skip


def steps_of(job, corpus):
    """Batch and rate of every step, and a step of dense serial SVI in float64."""
    numbers = range(job.passes.steps_a_pass)
    epochs = range(job.passes.n_passes)
    batches = [FixedPasses.batch(job.passes, epoch, i) for epoch in epochs for i in numbers]
    rates = job.schedule(np.arange(len(batches)))

    def step(w, batch, rate):
        documents = documents_of(corpus)
        return svi("mean_field", documents, w, ALPHA, ETA, [batch], [rate], n_sweeps=5)

    return list(zip(batches, rates, strict=True)), step


def first_of(job):
    return job.state.natural()[:, :K].T.astype(np.float64)


def assert_close(job, expected):
    found = job.state.natural()[:, :K].T
    np.testing.assert_allclose(found, expected, rtol=5e-3, atol=5e-3)
    assert np.abs(found - expected).sum() < 2e-4 * expected.sum()


def nodes_batches(job, n_nodes):
    """Batches of each node, in the order in which it makes them: a part of every pass."""
    n_steps = job.passes.steps_a_pass
    cuts = np.linspace(0, n_steps, n_nodes + 1).round().astype(int)
    return [
        [FixedPasses.batch(job.passes, epoch, step)
         for epoch in range(job.passes.n_passes) for step in range(begin, end)]
        for begin, end in zip(cuts[:-1], cuts[1:], strict=True)
    ]  # fmt: skip


def nothing(shared, scale, hyper, items, batch, work):
    """A local step that finds nothing."""
    return 0


def toy(n_items, additive, n_passes, rate, local=count_visits, real=FLOAT, **cluster):
    """All parameters are the same number; a step is a pass, its target is 1."""
    model = Model(
        name="toy", shape=(n_items, 3), prior=np.zeros(3, real), hyper=np.zeros(1),
        init=lambda rng: np.zeros((n_items, 3), real), local=local, scratch=lambda longest: 0,
        learner="incremental" if additive else "natural",
    )  # fmt: skip
    items = as_items(np.arange(n_items + 1), np.arange(n_items), np.ones(n_items), real)
    return Job(
        State.start(model, None, 1), items, Ledger(n_items, n_items, n_passes, 0), constant(rate),
        local_steps=1, cluster=Cluster(**cluster),
    )  # fmt: skip
