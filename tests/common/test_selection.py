"""Choosing the number of components, for every model that has one."""

import members
import numpy as np
import pytest
from sklearn.mixture import GaussianMixture

from dpsvi import DPSVILDA, DPSVIGaussianMixture, select_components

# Those that learn how many they need, and those that have no components.
LEARNED = ["dp_mixture", "hdp"]
WITHOUT = ["hierarchical_probit", "hierarchical_regression"]
CHOSEN = [name for name in members.names() if name not in LEARNED + WITHOUT]
CORNERS = np.array([[0.0, 0.0], [8.0, 0.0], [0.0, 8.0], [8.0, 8.0]])


@pytest.mark.parametrize("covariance_type", ["full", "diag"])
@pytest.mark.parametrize("seed", range(3))
def test_four_gaussians_are_four(covariance_type, seed):
    rng = np.random.default_rng(seed)
    X = CORNERS[rng.integers(4, size=400)] + rng.normal(size=(400, 2))
    mixture = DPSVIGaussianMixture(covariance_type=covariance_type, random_state=seed)
    found = select_components(mixture, X, range(1, 8))
    assert found.n_components == len(found.estimator.weights_) == 4
    assert mixture.n_components == 1 and not hasattr(mixture, "weights_")
    order = np.argsort(found.estimator.means_ @ [1, 10])
    np.testing.assert_allclose(found.estimator.means_[order], CORNERS, atol=0.5)


@pytest.mark.parametrize("covariance_type", ["full", "diag"])
def test_four_gaussians_are_four_by_the_elbo(covariance_type, rng):
    """Of all items; of components that are not needed the bound says what they cost."""
    X = CORNERS[rng.integers(4, size=400)] + rng.normal(size=(400, 2))
    mixture = DPSVIGaussianMixture(covariance_type=covariance_type, random_state=0)
    found = select_components(mixture, X, [2, 3, 4, 5, 7], criterion="elbo")
    assert found.n_components == 4 and found.estimator.validation_size is None
    assert found.scores[4] == found.estimator.lower_bound_
    again = found.estimator.set_params(n_components=7).fit(X)
    assert found.scores[7] == pytest.approx(again.lower_bound_, rel=1e-9)


@pytest.mark.parametrize("criterion", ["elbo", "bic"])
def test_topics_have_no_elbo_that_counts_topics(criterion):
    with pytest.raises(ValueError, match="criterion must be"):
        select_components(DPSVILDA(), np.eye(3, dtype=int), [1, 2], criterion=criterion)


def test_numbers_of_numpy_are_those_of_python(rng):
    found = select_components(DPSVIGaussianMixture(), rng.normal(size=(20, 2)), np.arange(1, 3))
    assert {type(value) for value in (found.n_components, *found.scores)} == {int}


@pytest.mark.parametrize("name", CHOSEN)
def test_scores_are_those_of_items_that_were_held_out(name, rng):
    member = members.get(name)
    data = member.data(rng, 120)
    estimator = member.estimator(max_iter=3, random_state=np.random.default_rng(1))
    found = select_components(estimator, values=[3, 1, 3], validation_size=30, **data)
    assert list(found.scores) == [3, 1] and np.isfinite(list(found.scores.values())).all()
    assert found.n_components == max(found.scores, key=found.scores.get)
    assert found.estimator.n_components == found.n_components
    assert found.estimator._state.items == 3 * 90
    # Nothing is learned after the last look at the same items, but priors of topics are.
    last = found.estimator.history_[-1]["score"]
    assert found.scores[found.n_components] == pytest.approx(last, rel=0.05 * (name == "lda"))


def test_topics_of_texts_that_come_once():
    texts = ["sun sea sand"] * 20 + ["snow ice frost"] * 20
    lda = DPSVILDA(doc_topic_prior=0.1, random_state=0, max_iter=30)
    found = select_components(lda, iter(texts), [1, 2])
    assert found.n_components == 2
    assert {frozenset(words) for words in found.estimator.top_words(3)} == {
        frozenset(["sun", "sea", "sand"]), frozenset(["snow", "ice", "frost"])
    }  # fmt: skip


@pytest.mark.parametrize("name", LEARNED + WITHOUT)
def test_others_are_refused(name, rng):
    member = members.get(name)
    reason = "is not selected but learned" if name in LEARNED else "has no parameter n_components"
    with pytest.raises(ValueError, match=f"{type(member.estimator()).__name__} {reason}"):
        select_components(member.estimator(), rng.normal(size=(9, 2)), [1, 2])


def test_what_cannot_be_compared_is_refused(rng, tmp_path):
    X, mixture = rng.normal(size=(20, 2)), DPSVIGaussianMixture()
    with pytest.raises(TypeError, match="a variational model of dpsvi, got GaussianMixture"):
        select_components(GaussianMixture(), X, [1])
    with pytest.raises(ValueError, match="values must hold numbers of components, got none"):
        select_components(mixture, X, [])
    with pytest.raises(TypeError, match=r"values must hold .* as \[5, 10\] does, got 5"):
        select_components(DPSVIGaussianMixture(), np.zeros((9, 1)), 5)
    with pytest.raises(ValueError, match="values must be an integer >= 1, got 0"):
        select_components(mixture, X, [2, 0])
    with pytest.raises(ValueError, match="validation_size must be > 0 and < 1.0, or a count"):
        select_components(mixture, X, [1], validation_size=1.5)
    with pytest.raises(TypeError, match="validation_size must be > 0 .* got None"):
        select_components(mixture, X, [1], validation_size=None)
    with pytest.raises(ValueError, match="checkpoint_dir must be None"):
        select_components(DPSVIGaussianMixture(checkpoint_dir=tmp_path), X, [1])
