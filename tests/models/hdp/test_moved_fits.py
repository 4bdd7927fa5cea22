"""Fits of the HDP whose topics are moved: resumed, saved, streamed, and of hard data."""

import warnings

import numpy as np
import pytest
from members.lda import degenerate

import dpsvi
from dpsvi import DPSVIHDP

pytestmark = pytest.mark.filterwarnings("ignore::dpsvi.errors.CorpusWarning")


def make(n_components=8, **options):
    defaults = dict(local_step="mean_field", restructure=True, batch_size=32, random_state=0)
    return DPSVIHDP(n_components, **(defaults | options))



def same(a, b):
    return np.array_equal(a.components_, b.components_) and np.array_equal(a.tables_, b.tables_)


@pytest.mark.parametrize("where", ["between parts", "in a part", "while topics move"])
@pytest.mark.parametrize("max_iter", [8, "auto"])
def test_a_fit_is_resumed_bit_for_bit(where, max_iter, X, tmp_path, monkeypatch):
    """With parts of 1, 1, 2, 4 or of 5, 5, 10, ... passes."""
    parts = {8: (2, 3), "auto": (5, 8)}[max_iter]
    settings = dict(max_iter=max_iter, engine="serial")
    whole, looks = make(30, **settings).fit(X), []
    assert sum(whole.moves_.values()) > 0
    move = DPSVIHDP._restructure

    def interrupt(event):
        looks.append(event)
        if where != "while topics move" and len(looks) == parts[where == "in a part"]:
            raise KeyboardInterrupt

    def restructure(self, items):
        move(self, items)
        if where == "while topics move" and len(looks) == parts[0]:
            raise KeyboardInterrupt

    monkeypatch.setattr(DPSVIHDP, "_restructure", restructure)
    settings |= dict(checkpoint_dir=tmp_path, checkpoint_seconds=0.0)
    part = make(30, callbacks=[interrupt], **settings)
    with pytest.raises(KeyboardInterrupt):
        part.fit(X)
    assert part.n_batch_iter_ < whole.n_batch_iter_ and np.isfinite(part.bound_)
    monkeypatch.setattr(DPSVIHDP, "_restructure", move)
    again = make(30, **settings).resume(X)
    assert same(again, whole) and again.moves_ == whole.moves_
    assert again.doc_concentration_ == whole.doc_concentration_


def test_save_and_load(X, tmp_path):
    model = make(30, max_iter=8).fit(X)
    assert sum(model.moves_.values()) > 0
    model.save(tmp_path)
    loaded = dpsvi.load(tmp_path)
    assert same(loaded, model) and loaded.restructure is True
    assert np.array_equal(loaded.transform(X), model.transform(X))
    a, b = model.partial_fit(X), loaded.partial_fit(X)
    np.testing.assert_allclose(b.components_, a.components_, rtol=1e-3, atol=1e-3)


def test_passes_and_streams_are_what_they_are_without(X):
    one, other = (make(max_iter=7, restructure=restructure) for restructure in (True, False))
    assert one.fit(X).n_iter_ == other.fit(X).n_iter_ == 7
    assert [h["epoch"] for h in one.history_] == [h["epoch"] for h in other.history_]
    streams = [make(restructure=r).partial_fit(X).partial_fit(X) for r in (True, False)]
    assert same(*streams)


CORPORA = degenerate(None)


@pytest.mark.parametrize("n_components", [1, 8])
@pytest.mark.parametrize("case", CORPORA)
def test_hard_corpora(case, n_components):
    X = CORPORA[case]["X"]
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = make(n_components, batch_size=2, max_iter=8).fit(X)
    assert np.all(np.isfinite(model.components_)) and np.all(model.components_ > 0)
    assert np.isfinite(model.tables_).all() and np.isfinite(model.bound_)
