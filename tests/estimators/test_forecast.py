"""How long a fit will take, and how much memory."""

import tracemalloc

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture

from dpsvi import DPSVILDA, DPSVIGaussianMixture, DPSVIHierarchicalRegressor, forecast
from dpsvi.estimators import forecast as module


def test_a_short_fit_is_made_to_its_end(rng):
    X = rng.normal(size=(500, 3))
    model = DPSVIGaussianMixture(4, max_iter=6, n_init=3, random_state=0)
    before = model.get_params()
    expected = forecast(model, X)
    assert expected.passes == pytest.approx(6)
    assert 0 < expected.seconds < 60
    assert not hasattr(model, "means_") and model.get_params() == before


def test_the_memory_of_a_fit(rng):
    """The topics are there twice or more, and not many times; a second fit counts like a first."""
    X = rng.poisson(0.01, size=(300, 40_000))
    model = DPSVILDA(50, max_iter=1000, random_state=0)
    found = [forecast(model, X, seconds=0.01) for _ in range(2)]
    topics = 4 * 50 * 40_000
    for one in found:
        assert one.passes < 1000
        assert 2 * topics < one.memory < 12 * topics
    assert found[0].memory == pytest.approx(found[1].memory, rel=0.05)


def test_who_traces_memory_goes_on(rng):
    X, model = rng.normal(size=(200, 3)), DPSVIGaussianMixture(2, max_iter=2)
    tracemalloc.start()
    try:
        kept = np.ones(10**6)
        assert 0 < forecast(model, X).memory < kept.nbytes
        assert tracemalloc.get_traced_memory()[0] >= kept.nbytes
    finally:
        tracemalloc.stop()


def test_looks_take_little_of_a_short_pass(monkeypatch, rng):
    """Each costs more than a step: a hundred in a pass of one batch made it ten times as long."""
    run, seen = module._run, []
    monkeypatch.setattr(module, "_run", lambda *given: seen.append(given[3]) or run(*given))
    forecast(DPSVIGaussianMixture(2, max_iter=5), rng.normal(size=(20, 2)), seconds=1000)
    assert seen == [0.01, 1.0]


def test_early_stopping_does_not_end_the_trial(rng):
    """Held-out items are scored at each look, so that looks decide when a fit ends."""
    model = DPSVIGaussianMixture(2, max_iter=40, validation_size=0.5, early_stopping=True)
    expected = forecast(model, rng.normal(size=(60, 2)), seconds=1000)
    assert expected.passes == 40


def test_texts_that_come_once():
    texts = ["sun sea sand"] * 20 + ["snow ice frost"] * 20
    assert forecast(DPSVILDA(2, max_iter=2), iter(texts)).passes == 2


def test_later_passes_are_as_fast_as_the_second_half_of_the_trial(monkeypatch, rng):
    seen = [(0.0, 0.0), (0.5, 4.0), (1.0, 5.0), (1.5, 5.5), (2.0, 6.0)]
    monkeypatch.setattr(module, "_run", lambda *given: seen)
    model = DPSVIGaussianMixture(2, max_iter=10, n_init=2)
    found = forecast(model, rng.normal(size=(20, 2)))
    assert found.passes == 2
    assert found.seconds == pytest.approx(2 * (6.0 + 8 * (2.0 / 1.5)))


def test_with_a_target(rng):
    X, groups = rng.normal(size=(60, 2)), np.repeat(np.arange(6), 10)
    assert forecast(DPSVIHierarchicalRegressor(max_iter=2), X, X[:, 0], groups=groups).passes == 2


@pytest.mark.parametrize(
    "changes, seconds, message",
    [({}, 0, "seconds"), ({"engine": "mpi"}, 1, r"engine .* one of \['serial', 'threads'\]")],
)
def test_refused(changes, seconds, message, rng):
    model = DPSVIGaussianMixture(2).set_params(**changes)
    with pytest.raises(ValueError, match=message):
        forecast(model, rng.normal(size=(20, 2)), seconds=seconds)


def test_other_estimators_are_refused(rng):
    with pytest.raises(TypeError, match="a variational model of dpsvi, got GaussianMixture"):
        forecast(GaussianMixture(), rng.normal(size=(20, 2)))
