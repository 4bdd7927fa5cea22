"""Windows of long sequences."""

import numpy as np
import pytest
from tools.hmm_cases import ascent, chains

import dpsvi
from dpsvi import DPSVIHMM
from dpsvi.kernels.hyper import pack
from dpsvi.kernels.jit import compile_local
from dpsvi.models.hmm.local import options_of
from dpsvi.models.hmm.sequences import windows
from dpsvi.training.items import count, dense_items
from dpsvi.training.task import make_works


def run_local(hmm, items):
    """Statistics of all items, less the ends of what no item begins."""
    model = hmm._state.model
    hyper = pack(options_of(model.hyper)._replace(marked=items.marked))
    model = hmm._model(model.shape, model.prior, hyper)
    batch = np.arange(count(items.items), dtype=np.int32)
    (work,) = make_works(model, items.items, len(batch), 1)
    work.totals[:] = hmm._state.shared.totals.sum(axis=0)
    local = compile_local(model.local, model.real)
    local(hmm._state.shared, hmm._state.scale, hyper, items.items, batch, work)
    return work.stats[0].copy()


class Whole:
    marked = 0

    def __init__(self, X, offsets):
        self.items = dense_items(X, offsets)


class Windows:
    marked = 1

    def __init__(self, X, offsets, window, buffer):
        self.items = windows(X, offsets, window, buffer)


@pytest.fixture
def fitted(rng):
    """A model, and sequences of which some are long."""
    X, lengths, _ = chains(rng, [700, 3, 150, 1])
    hmm = DPSVIHMM(3, random_state=0, max_iter=3, batch_size=2).fit(X, lengths=lengths)
    return hmm, X, np.concatenate([[0], np.cumsum(lengths)])


def test_windows_with_long_buffers_count_everything_once(fitted):
    """So the mean of lam-hat over windows is lam-hat of the chains: nothing to scale apart."""
    hmm, X, offsets = fitted
    whole = run_local(hmm, Whole(X, offsets))
    for window in (1, 7, 100, 10_000):
        parts = Windows(X, offsets, window, 1000)
        assert count(parts.items) == sum(-(-n // window) for n in np.diff(offsets))
        np.testing.assert_allclose(run_local(hmm, parts), whole, rtol=1e-9, atol=1e-8)
        bounds, _ = hmm._infer(hmm._state, parts.items, 1)
        assert bounds.sum() == pytest.approx(hmm.score(X, lengths=np.diff(offsets)), rel=1e-10)


def test_short_buffers_cost_what_the_chain_remembers(fitted):
    hmm, X, offsets = fitted
    whole = run_local(hmm, Whole(X, offsets))
    errors = [
        np.abs(run_local(hmm, Windows(X, offsets, 20, buffer)) - whole).max() / whole.max()
        for buffer in (1, 5, 20)
    ]
    assert 1e-2 > errors[0] > 3 * errors[1] > 0 and errors[2] < 1e-6


def test_windows_are_even_and_stay_in_their_sequence(rng):
    X = rng.normal(size=(24, 2))
    items = windows(X, np.array([0, 11, 12, 24]), window=5, buffer=2)
    rows = [part.reshape(-1, 3) for part in np.split(items.value, items.offsets[1:-1])]
    inside = [int((part[:, 0] % 2).sum()) for part in rows]
    assert inside == [3, 4, 4, 1, 4, 4, 4]
    assert [len(part) for part in rows] == [5, 8, 6, 1, 6, 8, 6]
    assert [int((part[:, 0] >= 2).sum()) for part in rows] == [1, 0, 0, 1, 1, 0, 0]
    np.testing.assert_array_equal(np.concatenate([p[p[:, 0] % 2 == 1, 1:] for p in rows]), X)


def test_windows_of_one_long_chain_find_what_the_whole_finds():
    X, _, z = chains(np.random.default_rng(1), [12_000])
    held_out, _, _ = chains(np.random.default_rng(2), [2000])
    whole = ascent(max_iter=40).fit(X)
    parts = DPSVIHMM(3, window=100, buffer=20, batch_size=8, max_iter=5, random_state=0).fit(X)
    order = np.argmin(np.linalg.norm(parts.means_[:, None] - whole.means_, axis=2), axis=0)
    np.testing.assert_allclose(parts.means_[order], whole.means_, atol=0.05)
    np.testing.assert_allclose(parts.transmat_[order][:, order], whole.transmat_, atol=0.02)
    assert parts.score(held_out) == pytest.approx(whole.score(held_out), rel=2e-3)
    assert parts.lower_bound_ == pytest.approx(whole.lower_bound_, rel=2e-3)


def test_windowed_models_survive_saving(rng, tmp_path):
    X, _, _ = chains(rng, [400])
    hmm = DPSVIHMM(3, window=50, max_iter=3, random_state=0).fit(X)
    hmm.save(tmp_path)
    again = dpsvi.load(tmp_path).partial_fit(X)
    assert again.lower_bound_ == pytest.approx(hmm.partial_fit(X).lower_bound_)


def test_windows_of_another_length(rng):
    X, lengths, _ = chains(rng, [100, 200])
    hmm = DPSVIHMM(2, window=50, warm_start=True, random_state=0, max_iter=1)
    hmm.fit(X, lengths=lengths)
    steps = hmm.n_batch_iter_
    hmm.set_params(window=10, batch_size=10).fit(X, lengths=lengths)
    assert hmm.n_batch_iter_ == steps + 3


def test_sizes_must_stay(rng):
    X, lengths, _ = chains(rng, [10, 20])
    hmm = DPSVIHMM(2, random_state=0).partial_fit(X, lengths=lengths)
    with pytest.raises(ValueError, match="window was None when the fit started, got 5"):
        hmm.set_params(window=5).partial_fit(X, lengths=lengths)
