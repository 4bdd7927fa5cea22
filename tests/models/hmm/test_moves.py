"""States that are moved: where a bad start ends, and that no move lowers the bound."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from dpsvi import DPSVIHMM
from dpsvi.estimators.between_parts import KINDS
from dpsvi.families.mixtures.restructuring import Restructuring
from dpsvi.models.hmm import emissions
from dpsvi.training.items import count

LENGTHS = [60] * 10


def chain(rng):
    """Three states, far apart, that last about 10 steps."""
    y = np.repeat(rng.integers(3, size=60), 10)
    centers = np.array([[0.0, 0.0], [20.0, 0.0], [29.0, 0.0]])
    return centers[y] + rng.normal(size=(len(y), 2)), y


@pytest.fixture
def bad_start(monkeypatch):
    """Two states in the first cluster, the two other clusters in one state."""

    def which(X):
        return np.where(X[:, 0] > 10, 2, X[:, 1] > 0).astype(int)

    def cluster(points, n_clusters, rng, n_init=1, weight=None):
        return SimpleNamespace(labels_=which(points), predict=which)

    monkeypatch.setattr(emissions, "cluster", cluster)


@pytest.mark.parametrize(
    "more",
    [
        dict(engine="serial"), dict(engine="threads", n_jobs=2), dict(covariance_type="diag"),
        dict(window=20), dict(max_iter="auto"),
    ],
    ids=str,
)  # fmt: skip
def test_a_bad_start_is_mended(more, rng, bad_start):
    X, y = chain(rng)
    settings = dict(max_iter=12, random_state=0) | more
    stuck = DPSVIHMM(3, **settings).fit(X, lengths=LENGTHS)
    assert adjusted_rand_score(y, stuck.predict(X, LENGTHS)) < 0.8
    mended = DPSVIHMM(3, restructure=True, **settings).fit(X, lengths=LENGTHS)
    assert adjusted_rand_score(y, mended.predict(X, LENGTHS)) == 1.0
    assert mended.moves_["birth"] == 1 and mended.lower_bound_ > stuck.lower_bound_


@pytest.mark.parametrize("kind", ["points", "gaps", "windows", "symbols", "missing symbols"])
def test_no_move_lowers_the_bound(kind, rng, monkeypatch):
    """The sample is all there is here; what is not taken leaves everything, to the bit."""
    looks, move = [], Restructuring._restructure

    def look(self, items):
        bound = self._lower_bound(self._state, items, count(items))
        return self._state, self._state.natural(), bound, sum(self.moves_.values())

    def restructure(self, items):
        before = look(self, items)
        move(self, items)
        looks.append((before, look(self, items)))

    monkeypatch.setattr(Restructuring, "_restructure", restructure)
    X, y = chain(rng)
    params = {}
    if kind == "windows":
        params = dict(window=15, buffer=5)
    elif kind == "gaps":
        X[rng.random(X.shape) < 0.1] = np.nan
        params = dict(covariance_type="diag")
    elif kind != "points":
        X = (2 * y + (rng.random(len(y)) < 0.3))[:, None].astype(float)
        X[rng.random(X.shape) < (0.1 if kind == "missing symbols" else 0.0)] = np.nan
        params = dict(emission="categorical")
    for seed in range(3):
        hmm = DPSVIHMM(5, max_iter=8, random_state=seed, restructure=True, **params)
        hmm.fit(X, lengths=LENGTHS)
    assert len(looks) == 3 * 3 and any(after[-1] > before[-1] for before, after in looks)
    for (state, lam, bound, n), (new_state, new_lam, new_bound, new_n) in looks:
        if new_n > n:
            assert new_bound > bound
        else:
            assert new_state is state and np.array_equal(new_lam, lam)


def test_a_good_fit_is_left_as_it_is(rng):
    X, y = chain(rng)
    hmm = DPSVIHMM(3, max_iter=8, random_state=0, restructure=True).fit(X, lengths=LENGTHS)
    assert adjusted_rand_score(y, hmm.predict(X, LENGTHS)) == 1.0
    assert hmm.moves_ == dict.fromkeys(KINDS, 0)
