"""Moves of components: what is proposed, what is taken, and what a fit makes of it."""

import numpy as np
import pytest
from members import SECOND
from sklearn.metrics import adjusted_rand_score

from dpsvi import DPSVIDPMixture, DPSVIGaussianMixture, VirtualCluster
from dpsvi.estimators.between_parts import KINDS
from dpsvi.families.mixtures import estimator, restructuring
from dpsvi.families.mixtures.moves import _split, proposals
from dpsvi.training.items import count

MIXTURES = pytest.mark.parametrize("mixture", [DPSVIGaussianMixture, DPSVIDPMixture])
CENTERS = np.array([[0.0, 0.0], [20.0, 0.0], [29.0, 0.0]])


def clusters(rng, n=120):
    y = np.repeat([0, 1, 2], n)
    return CENTERS[y] + rng.normal(size=(3 * n, 2)), y


@pytest.fixture
def bad_start(monkeypatch):
    """Two components in the first cluster, the two other clusters in one component."""

    def first(X, n_components, init_params, rng, weight=None):
        which = np.where(X[:, 0] > 10, 2, X[:, 1] > 0)
        return np.eye(n_components)[which.astype(int)]

    monkeypatch.setattr(estimator, "first_responsibilities", first)


def followed(monkeypatch):
    """ELBOs before and after the moves of each part, and the states."""
    looks, move = [], restructuring.Restructuring._restructure

    def look(self, items):
        state = self._state
        bound = self._lower_bound(state, items, count(items))
        return state, state.natural(), (state.step, state.items), bound, sum(self.moves_.values())

    def restructure(self, items):
        before = look(self, items)
        move(self, items)
        looks.append((before, look(self, items)))

    monkeypatch.setattr(restructuring.Restructuring, "_restructure", restructure)
    return looks


# --- proposals --------------------------------------------------------------------------------


def test_proposals_move_responsibilities_and_lose_none(rng):
    X, _ = clusters(rng)
    resp = rng.dirichlet(np.ones(4), size=len(X))
    resp[:, 3] = 0.0
    resp /= resp.sum(axis=1, keepdims=True)
    before, found = resp.copy(), {}
    for kind, new in proposals(resp, X):
        np.testing.assert_allclose(new.sum(axis=1), 1.0)
        found.setdefault(kind, []).append((new.sum(axis=0) > 0).sum())
    assert np.array_equal(resp, before)
    assert list(found) == list(KINDS)
    assert set(found["merge"]) == set(found["delete"]) == {2} and set(found["birth"]) == {4}


def test_the_components_most_alike_are_merged_first(rng):
    X, y = clusters(rng)
    resp = np.eye(3)[y] * 0.9
    resp[y == 1, 2] += 0.1
    resp[y == 2, 1] += 0.1
    resp[y == 0, 0] += 0.1
    kind, new = next(proposals(resp, X))
    assert kind == "merge" and not new[:, 2].any()
    np.testing.assert_allclose(new[:, 1], (y > 0).astype(float))


def test_a_birth_without_room_merges_two_others(rng):
    X, y = clusters(rng)
    resp = np.eye(3)[np.where(y > 0, 2, X[:, 1] > 0)]
    kind, new = list(proposals(resp, X))[-2]  # of births, the likelier one
    assert kind == "birth"
    assert adjusted_rand_score(y, new.argmax(axis=1)) == 1.0


def test_a_cut_is_the_best_one_along_the_longest_axis(rng):
    """All places of the cut tried, sums of squares by definition."""
    x = np.concatenate([rng.normal(size=20), rng.normal(size=9) + 7])
    weight = rng.random(29) + 0.5
    side, _ = _split(np.ones((29, 1)), 0, np.column_stack([x, 0 * x]), weight)

    def within(part):
        mean = np.average(x[part], weights=weight[part])
        return weight[part] @ (x[part] - mean) ** 2

    costs = [within(x <= cut) + within(x > cut) for cut in np.sort(x)[:-1]]
    assert within(side) + within(~side) == pytest.approx(min(costs))


@pytest.mark.parametrize("X", [np.zeros((5, 2)), np.ones((1, 2))], ids=["all alike", "one"])
def test_what_cannot_be_cut_has_no_births(X):
    resp = np.tile([1.0, 0.0], (len(X), 1))
    assert [kind for kind, _ in proposals(resp, X)] == []


# --- fits -------------------------------------------------------------------------------------


@MIXTURES
@pytest.mark.parametrize("max_iter", [20, "auto"])
@pytest.mark.parametrize(
    "more",
    [
        dict(engine="serial"), dict(engine="threads", n_jobs=2),
        dict(engine="simulated", cluster=VirtualCluster(n_workers=2, timing=SECOND)),
    ],
    ids=["serial", "threads", "simulated"],
)  # fmt: skip
def test_a_bad_start_is_mended(mixture, max_iter, more, rng, bad_start):
    X, y = clusters(rng)
    n = 3 if mixture is DPSVIGaussianMixture else 6
    settings = dict(init_params="kmeans", batch_size=60, max_iter=max_iter, random_state=0, **more)
    stuck = mixture(n, **settings).fit(X)
    assert adjusted_rand_score(y, stuck.predict(X)) < 0.8
    mended = mixture(n, restructure=True, **settings).fit(X)
    assert adjusted_rand_score(y, mended.predict(X)) == 1.0
    assert mended.moves_["birth"] >= 1 and mended.lower_bound_ > stuck.lower_bound_
    assert ((mended.weights_ * len(X)).round() >= 1).sum() == 3


@MIXTURES
@pytest.mark.parametrize("covariance_type", ["full", "diag"])
@pytest.mark.parametrize("data", ["plain", "weights", "gaps"])
def test_no_move_lowers_the_bound(mixture, covariance_type, data, rng, monkeypatch):
    """The sample is all there is here; what is not taken leaves everything, to the bit."""
    looks = followed(monkeypatch)
    X = rng.normal(size=(300, 3)) * 0.3 + rng.normal(size=(6, 3))[rng.integers(6, size=300)]
    weight = rng.random(300) * 2 if data == "weights" else None
    if data == "gaps":
        X[rng.random(X.shape) < 0.1] = np.nan
    for seed in range(2):
        mixture(
            6, covariance_type=covariance_type, init_params="random", max_iter=16, batch_size=100,
            random_state=seed, restructure=True,
        ).fit(X, sample_weight=weight)  # fmt: skip
    assert len(looks) == 2 * 4 and any(after[-1] > before[-1] for before, after in looks)
    for before, after in looks:
        assert after[2] == before[2]
        if after[-1] > before[-1]:
            assert after[3] > before[3]
        else:
            assert after[0] is before[0] and np.array_equal(after[1], before[1])


def test_a_good_fit_is_left_as_it_is(rng, monkeypatch):
    looks = followed(monkeypatch)
    X, y = clusters(rng)
    mixture = DPSVIGaussianMixture(3, max_iter=8, random_state=0, restructure=True).fit(X)
    assert adjusted_rand_score(y, mixture.predict(X)) == 1.0
    assert mixture.moves_ == dict.fromkeys(KINDS, 0) and len(looks) == 3
    assert all(np.array_equal(before[1], after[1]) for before, after in looks)


def test_noise_of_a_sample_is_no_reason_for_births(rng, monkeypatch):
    """Counted 25 times, 200 points of one component look like more."""
    monkeypatch.setattr(restructuring, "SAMPLE", 200)
    monkeypatch.setattr(
        estimator, "first_responsibilities", lambda X, n, *_: np.eye(n)[np.zeros(len(X), int)]
    )
    X = rng.normal(size=(5000, 2))
    alone = dict(init_params="kmeans", batch_size=5000, learning_rate=1.0, max_iter=8)
    mixture = DPSVIDPMixture(10, random_state=0, restructure=True, **alone).fit(X)
    assert mixture.moves_ == dict.fromkeys(KINDS, 0) and mixture.n_components_active_ == 1
    monkeypatch.setattr(restructuring, "count", lambda items: 5000)
    assert mixture.fit(X).moves_["birth"] > 0


def test_a_component_with_few_points_in_the_sample_stays(rng, monkeypatch):
    """Two of 200 are no evidence of anything, 50 of 5,000 are."""
    monkeypatch.setattr(restructuring, "SAMPLE", 200)
    X = rng.normal(size=(5000, 2))
    X[:50] += 9
    mixture = DPSVIGaussianMixture(2, max_iter=8, random_state=0, restructure=True).fit(X)
    assert mixture.weights_.min() == pytest.approx(0.01, rel=0.1)


def test_passes_and_streams_are_what_they_are_without(rng):
    X, _ = clusters(rng)
    one, other = (
        DPSVIGaussianMixture(3, max_iter=7, random_state=0, restructure=restructure)
        for restructure in (True, False)
    )
    assert one.fit(X).n_iter_ == other.fit(X).n_iter_ == 7
    assert [h["epoch"] for h in one.history_] == [h["epoch"] for h in other.history_]
    streams = [DPSVIGaussianMixture(3, random_state=0, restructure=r) for r in (True, False)]
    states = [mixture.partial_fit(X).partial_fit(X)._state.natural() for mixture in streams]
    assert np.array_equal(*states)


def test_what_it_cannot_be_combined_with():
    X = np.zeros((9, 2))
    with pytest.raises(ValueError, match="restructure=True needs incremental=False"):
        DPSVIGaussianMixture(2, restructure=True, incremental=True).fit(X)
    with pytest.raises((TypeError, ValueError), match="restructure must be .* got 'birth'"):
        DPSVIGaussianMixture(2, restructure="birth").fit(X)
