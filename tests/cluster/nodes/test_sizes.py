"""How many bytes an exchange has."""

import numpy as np
import pytest
from reference.lda import TopicCorpus
from tools.node_jobs import ALPHA, ETA, FLOAT, K, job

from dpsvi.cluster.transports import messages
from dpsvi.cluster.turns import take_turns
from dpsvi.kernels.jit import as_items
from dpsvi.models.lda.model import make_model
from dpsvi.training.state import State


def test_an_exchange_costs_by_its_rows(corpus):
    """V = 20,000 rows, 30 of them used: no message may grow with V."""
    wide = TopicCorpus(K, 30, 60, 20, 0.1, seed=0).corpus()
    model = make_model(20_000, K, ALPHA, ETA, local_step="collapsed", n_sweeps=3, tol=0.0)
    state = State.start(model, np.random.default_rng(0), 1)
    items = as_items(wide.offsets, wide.index, wide.value, FLOAT)
    master = take_turns(job(state, items, n_passes=1), 2)
    most = 30 * (2 * 4 * model.shape[1] + 4) + 3 * 4096
    assert all(0 < e.n_bytes < most for e in master.exchanges)


@pytest.mark.parametrize("n_workers", [1, 2])
@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
def test_padding_is_not_sent(corpus, kind, n_workers):
    """17 topics have 32 columns: of the 90 rows, each way, 17 numbers travel."""
    model = make_model(90, 17, ALPHA, ETA, local_step="mean_field", n_sweeps=3, tol=0.0)
    state = State.start(model, np.random.default_rng(0), 1)
    assert model.shape == (90, 32)
    items = as_items(corpus.offsets, corpus.index, corpus.value, FLOAT)
    work = job(state, items, n_passes=2, batch_size=100, statistics=kind)
    master = take_turns(work, n_workers)
    sizes = 4 + (4 if kind == "float32" else 2)
    # Three headers, the numbers of the rows in each message, totals each way, hyper.
    others = 3 * (messages._HEADER + 90 * 4) + (2 * 32 + 40) * 8 + 8 * messages._ALIGN
    found = max(e.n_bytes for e in master.exchanges)
    assert 90 * 17 * sizes < found < 90 * 17 * sizes + others < 90 * 32 * sizes
    assert not state.shared.rows[:, 17:].any() and np.all(state.shared.rows[:, :17] > 0)
