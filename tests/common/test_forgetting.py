"""Streams that change: `forgetting` follows them, and is the memory that it says."""

import members
import numpy as np
import pytest
import scipy.sparse
from members import every_member
from reference.mixtures import some_prior

from dpsvi import DPSVILDA, DPSVIGaussianMixture

MEMORY, SIZE = 100, 50


def after_the_break(data):
    """The same kind of data from another source: what a model of the old one gets wrong."""
    X = data["X"]
    if "y" in data:
        y = data["y"]
        return data | {"y": 1 - y if set(np.unique(y)) <= {0, 1} else -y}
    if scipy.sparse.issparse(X):
        return data | {"X": scipy.sparse.csr_array(X)[:, ::-1]}
    return data | {"X": X + 5.0}


@every_member
def test_streams_are_followed_after_a_break(name):
    """Forty chunks, then a break: four chunks later a memory of two chunks scores better."""
    member, scores = members.get(name), {}
    for forgetting in (None, MEMORY):
        rng = np.random.default_rng(0)
        estimator = member.estimator(batch_size=10, forgetting=forgetting)
        for _ in range(40):
            estimator.partial_fit(**member.data(rng, SIZE))
        for _ in range(4):
            estimator.partial_fit(**after_the_break(member.data(rng, SIZE)))
        items = estimator._read(**{"y": None} | after_the_break(member.data(rng, 400)), reset=False)
        scores[forgetting] = estimator._held_out_score(estimator._state, items)["score"]
    assert scores[MEMORY] > scores[None] + 0.05 * abs(scores[None])


def drifting(n, rng):
    """Points whose mean moves from 0 to 10."""
    return np.linspace(0.0, 10.0, n)[:, None] + rng.normal(size=(n, 1))


def test_a_mean_that_drifts_is_followed(rng):
    X, lag = drifting(20_000, rng), {}
    for forgetting in (None, 500):
        mixture = DPSVIGaussianMixture(
            1, mean_precision_prior=1e-3, batch_size=50, learning_decay=1.0, learning_offset=1.0,
            forgetting=forgetting,
        )  # fmt: skip
        for chunk in np.split(X, 100):
            mixture.partial_fit(chunk)
        lag[forgetting] = 10.0 - mixture.means_[0, 0]
    assert mixture.mean_precision_[0] == pytest.approx(500, rel=0.01)  # its mean is of so many
    assert lag[None] > 3
    assert abs(lag[500]) < 0.4  # 500 points behind, 0.25, and noise of 1 / sqrt(500)


def test_it_is_the_recursion_of_a_decaying_window(rng):
    """One component: old sums times (1 - S / m), plus those of the new points, each once."""
    X, prior = rng.normal(size=(3000, 2)) @ rng.normal(size=(2, 2)), some_prior(2, rng)
    mixture = DPSVIGaussianMixture(
        1, batch_size=20, forgetting=200, learning_decay=1.0, learning_offset=1.0, random_state=0,
        mean_prior=prior.mean, covariance_prior=prior.covariance,
    )  # fmt: skip
    for chunk in np.split(X[:2000], 20):
        mixture.partial_fit(chunk)
    kappa, mean = mixture.mean_precision_[0], mixture.means_[0]
    h = kappa * mean - prior.mean  # kappa_0 is 1
    mass = kappa - 1
    for chunk in np.split(X[2000:], 50):  # steps of 20, whatever their order
        mixture.partial_fit(chunk)
        mass, h = 0.9 * mass + 20, 0.9 * h + chunk.sum(axis=0)
        assert mixture.mean_precision_[0] == pytest.approx(1 + mass, rel=1e-9)
        np.testing.assert_allclose(mixture.means_[0], (prior.mean + h) / (1 + mass), rtol=1e-7)


@pytest.mark.parametrize("size", [1, 7, 50])
def test_a_third_is_left_however_a_stream_is_cut(size):
    """One component, 2,000 points at 0, then as many at 10 as the memory: 1/e of the first is left.

    Steps of 50 take 1 - (1 - 50 / 500) ** 10 of it, 65 per cent, single points 63.
    """
    mixture = DPSVIGaussianMixture(
        1, mean_prior=[0.0], covariance_prior=[[1.0]], forgetting=500, random_state=0
    ).partial_fit(np.zeros((2000, 1)))
    for first in range(0, 500, size):
        mixture.partial_fit(np.full((min(size, 500 - first), 1), 10.0))
    assert 1 - mixture.means_[0, 0] / 10 == pytest.approx(np.exp(-1), abs=0.02)
    assert mixture.mean_precision_[0] == pytest.approx(501)


@every_member
def test_items_count_the_same_alone_and_among_others(name):
    """Ten calls of one item, and one call of ten, leave about as much of what was there before."""
    member, left = members.get(name), []
    for size in (1, 10):
        rng, rates = np.random.default_rng(0), []
        estimator = member.estimator(
            batch_size=10, callbacks=[lambda event, rates=rates: rates.append(event.rate)]
        )
        for _ in range(20):
            estimator.partial_fit(**member.data(rng, 100))
        rates.clear()
        before = estimator._state.items
        while estimator._state.items < before + 10:
            estimator.partial_fit(**member.data(rng, size))
        left.append(np.prod(1 - np.array(rates)))
    alone, together = left
    assert 0 < alone < 1 and alone == pytest.approx(together, rel=0.02)


@pytest.mark.parametrize("begin", ["fit", "partial_fit"])
def test_a_point_changes_a_model_of_many_little(begin):
    """One of 2,001 moves a mean by no more than ten times its share; so does a last, short step."""
    X = np.random.default_rng(0).normal(size=(2000, 1))
    for points in ([[10.0]], np.vstack([np.zeros((256, 1)), [[10.0]]])):
        mixture = getattr(DPSVIGaussianMixture(1, random_state=0), begin)(X)
        before = mixture.means_[0, 0]
        mixture.partial_fit(points)
        assert abs(mixture.means_[0, 0] - before) < 10 * 10.0 / 2000


def test_what_it_does_not_go_with_is_refused(rng):
    X = rng.normal(size=(20, 2))
    with pytest.raises(ValueError, match="forgetting must be a number > 0"):
        DPSVIGaussianMixture(forgetting=0).partial_fit(X)
    with pytest.raises(ValueError, match="a constant learning_rate, got 0.1, forgets already"):
        DPSVIGaussianMixture(forgetting=10, learning_rate=0.1).partial_fit(X)


def test_fit_does_not_forget(X):
    plain, forgetful = (
        DPSVILDA(3, max_iter=2, random_state=0, forgetting=m).fit(X) for m in (None, 10)
    )
    np.testing.assert_array_equal(plain.components_, forgetful.components_)
